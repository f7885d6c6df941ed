import bz2

import lz4.frame
import pytest

from avrt.logs.extents import BLOCK_BYTES, CHUNK_BYTES_MAX, File, uncompress

PACKERS = {
    "bz2": (bz2.compress, bz2.BZ2Decompressor),
    "lz4": (lz4.frame.compress, lz4.frame.LZ4FrameDecompressor),
}
BIG = 2_000_000


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 5000])
def test_a_frame_gives_what_was_packed(name, size):
    compress, decompressor = PACKERS[name]
    data = bytes(range(256)) * 20
    packed = compress(data[:size])
    assert uncompress(decompressor(), packed, size) == data[:size]


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("told", [0, 10, 999, 1001, CHUNK_BYTES_MAX + 1])
def test_a_frame_of_another_size_is_refused(name, told):
    compress, decompressor = PACKERS[name]
    with pytest.raises(ValueError, match=r"expected|ends before"):
        uncompress(decompressor(), compress(bytes(1000)), told)


@pytest.mark.parametrize("name", PACKERS)
def test_a_frame_that_is_cut_is_refused(name):
    compress, decompressor = PACKERS[name]
    packed = compress(bytes(range(256)) * 20)
    with pytest.raises(ValueError, match="ends before"):
        uncompress(decompressor(), packed[:-8], 5120)


@pytest.mark.parametrize("name", PACKERS)
def test_a_frame_that_holds_more_than_it_says_is_given_up_at_once(name):
    compress, decompressor = PACKERS[name]
    with pytest.raises(ValueError, match="found 1001"):
        uncompress(decompressor(), compress(bytes(BIG)), 1000)


@pytest.mark.parametrize(("offset", "length"), [(3, 1 << 60), (1 << 70, 8), (9, 1), (0, -1)])
def test_no_position_or_length_reads_more_than_there_is(tmp_path, offset, length):
    path = tmp_path / "a"
    path.write_bytes(b"nine byte")
    file = File(path)
    assert file.read_at(offset, length) == b"nine byte"[offset : max(0, offset + length)]
    file.close()


def test_a_pattern_is_found_where_blocks_meet(tmp_path):
    path = tmp_path / "a"
    places = [0, 7, BLOCK_BYTES - 2, BLOCK_BYTES + 5, 2 * BLOCK_BYTES - 1]
    content = bytearray(2 * BLOCK_BYTES + 2)
    for place in places:
        content[place : place + 3] = b"abc"
    path.write_bytes(content)
    file = File(path)
    assert list(file.find(b"abc", 0)) == places
    assert list(file.find(b"abc", 8)) == places[2:]
    file.close()
