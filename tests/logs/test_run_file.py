"""Damage of a run record is always told, whatever byte it hits."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avrt.errors import InputError
from avrt.logs import Channel, RawMessage
from avrt.logs.record.run_file import RunFile, read_outputs
from avrt.logs.record.run_record import RunRecord
from avrt.model.message import Message, Stamp
from avrt.payload import Tracks

ZERO_NS = 10**18
ENTRIES = 150
STEP_NS = 20_000_000
RAW = Channel(1, "/sensor", "x/msg/Y", "cdr", "ros2msg", b"int32 a")
FLIPS = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.mcap"
    with RunRecord(path, zero_ns=ZERO_NS, conditions={"a": "b"}, pipeline_json="{}") as record:
        for k in range(ENTRIES):
            record.journal(f'{{"index":{k},"text":"abcdefgh"}}', k * STEP_NS)
            if k % 40 == 0:
                record.input("/sensor", RawMessage(RAW, ZERO_NS + k, ZERO_NS + k, k, b"12345"))
        record.output("fuse", Message(Stamp("fuse", 0, 1, 1, 2), Tracks((), 1.0)))
        record.close({"met": "1"})
    return path.read_bytes()


def read(path, data):
    """Return (everything read, flagged, damage); None for what is unreadable."""
    path.write_bytes(data)
    try:
        with RunFile(path) as run:
            lines = list(run.journal())
            content = (
                dict(run.conditions),
                run.result,
                run.pipeline_json,
                run.zero_ns,
                [(line.index, line.at_ns, line.text) for line in lines],
            )
            return content, any(line.damaged for line in lines), run.damage
    except InputError as error:
        return None, True, [error]


def test_an_undamaged_record_reads_without_a_word(tmp_path, good):
    content, flagged, damage = read(tmp_path / "run.mcap", good)
    assert [index for index, _, _ in content[-1]] == list(range(ENTRIES))
    assert not flagged
    assert not damage


@given(data=st.data())
@FLIPS
def test_no_flipped_byte_changes_what_is_read_in_silence(tmp_path, good, data):
    offset = data.draw(st.integers(0, len(good) - 1))
    flip = data.draw(st.integers(1, 255))
    bad = good[:offset] + bytes([good[offset] ^ flip]) + good[offset + 1 :]
    content, _, damage = read(tmp_path / "run.mcap", bad)
    expected, _, _ = read(tmp_path / "run.mcap", good)
    if content != expected:
        assert damage


@pytest.mark.slow
@pytest.mark.parametrize("flip", [1, 0x80, 0xFF])
def test_no_byte_of_all_changes_what_is_read_in_silence(tmp_path, good, flip):
    path = tmp_path / "run.mcap"
    expected, _, _ = read(path, good)
    for offset in range(flip % 11, len(good), 11):
        content, _, damage = read(
            path, good[:offset] + bytes([good[offset] ^ flip]) + good[offset + 1 :]
        )
        assert content == expected or damage, offset


@given(data=st.data())
@FLIPS
def test_any_beginning_of_a_record_gives_the_entries_it_has(tmp_path, good, data):
    length = data.draw(st.integers(0, len(good) - 1))
    content, flagged, damage = read(tmp_path / "run.mcap", good[:length])
    assert damage
    if content is not None:
        assert not flagged
        whole = read(tmp_path / "run.mcap", good)[0][-1]
        assert content[-1] == whole[: len(content[-1])]


@given(cut=st.integers(0, 100_000), offset=st.integers(0, 100_000), flip=st.integers(1, 255))
@FLIPS
def test_cut_and_damaged_at_once_raises_nothing_foreign(tmp_path, good, cut, offset, flip):
    bad = bytearray(good[: max(1, cut % len(good))])
    bad[offset % len(bad)] ^= flip
    read(tmp_path / "run.mcap", bytes(bad))


def test_entries_of_a_damaged_chunk_come_flagged_and_the_others_do_not(tmp_path, good):
    offset = good.index(b'{"index":70,') + 20
    path = tmp_path / "run.mcap"
    path.write_bytes(good[:offset] + b"X" + good[offset + 1 :])
    with RunFile(path) as run:
        lines = list(run.journal())
    assert [line.index for line in lines] == list(range(ENTRIES))
    flagged = [line.index for line in lines if line.damaged]
    assert flagged == list(range(64, 128))
    assert "X" in lines[70].text
    assert all("X" not in line.text for line in lines if line.index != 70)


def test_a_damaged_output_is_refused(tmp_path, good):
    offset = good.index(b'"ego_speed":1.0') + 12
    path = tmp_path / "run.mcap"
    path.write_bytes(good[:offset] + b"7" + good[offset + 1 :])
    with pytest.raises(InputError, match="output 0 of fuse"):
        read_outputs(path, "fuse")
