"""Formats of compressed images: what they are taken for, what is refused, and what comes out."""

import contextlib
import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PillowImage

from avrt.payload import Image
from avrt.payload.compressed import encoding_of

RGB = np.zeros((4, 6, 3), np.uint8)
RGB[:, :3], RGB[:, 3:] = (250, 10, 20), (10, 20, 250)
LEVELS = (np.arange(24).reshape(4, 6) * 2700).astype(np.uint16)
HEADER = struct.Struct("<iff")
NONE = np.zeros(0, np.uint8)


def saved(array, codec="png", **options):
    file = io.BytesIO()
    PillowImage.fromarray(array).save(file, codec, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def depth(body, a=0.0, b=0.0):
    return np.frombuffer(HEADER.pack(0, a, b) + bytes(body), np.uint8)


def opened(text, data):
    return Image(encoding_of(text, data), data)


@pytest.mark.parametrize("codec", ["jpeg", "png", "tiff", "webp"])
@pytest.mark.parametrize(
    "text",
    ["", "{}", "{} ", "rgb8; {} compressed bgr8", "bgr8; {} compressed rgb8", "bgr8;{}", "h264"],
)
def test_the_first_bytes_tell_the_codec_and_the_file_its_colours(codec, text):
    exact = {"quality": 95, "subsampling": 0} if codec == "jpeg" else {"lossless": True}
    image = opened(text.format(codec.upper()), saved(RGB, codec, **exact))
    assert image.encoding == codec
    assert np.abs(image.pixels().astype(int) - RGB).max() <= (20 if codec == "jpeg" else 0)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("jpg", "jpeg"),
        ("mono16; png compressed", "png"),
        ("16UC1; png compressed ", "16UC1; png"),
        ("bayer_rggb8; jpeg compressed", "bayer_rggb8; jpeg"),
        ("bayer_rggb8; png", "bayer_rggb8; png"),
        ("16UC1; compressedDepth", "16UC1; compressedDepth png"),
        ("16UC1; compressedDepth png", "16UC1; compressedDepth png"),
        ("mono16; compressedDepth rvl", "16UC1; compressedDepth rvl"),
        ("32FC1;compressedDepth  RVL", "32FC1; compressedDepth rvl"),
        ("16UC1", "16UC1; compressedDepth png"),
        ("32FC1", "32FC1; compressedDepth png"),
        ("rgb8; compressedDepth png", None),
        ("compressedDepth png", None),
        ("16UC1; compressedDepth lz4", None),
        ("h264", None),
        ("", None),
    ],
)
def test_the_words_of_a_format_tell_the_rest(text, encoding):
    assert encoding_of(text, NONE) == encoding
    if encoding is not None:
        assert encoding_of(encoding, NONE) == encoding


def test_sixteen_bits_of_grey_are_not_cut_off_at_255():
    image = opened("mono16; png compressed mono16", saved(LEVELS))
    assert np.array_equal(image.values(), LEVELS)
    assert image.values().dtype == np.uint16
    assert np.array_equal(image.pixels()[..., 0], LEVELS >> 8)
    grey, size = image.grey(100)
    assert np.array_equal(grey, LEVELS >> 8)
    assert size == 24


def test_a_mosaic_that_was_compressed_as_grey_is_a_mosaic():
    mosaic = np.tile(np.array([[200, 100], [100, 50]], np.uint8), (3, 4))
    image = opened("bayer_rggb8; png compressed ", saved(mosaic))
    assert (image.pixels() == [200, 100, 50]).all()
    deep = opened("bayer_rggb16; png compressed ", saved(mosaic.astype(np.uint16) << 8))
    assert (deep.pixels() == [200, 100, 50]).all()
    assert np.array_equal(opened("bayer_rggb8; png compressed bgr8", saved(RGB)).pixels(), RGB)


def test_distances_in_a_plain_png_are_no_picture():
    image = opened("16UC1; png compressed", saved(LEVELS))
    assert np.array_equal(image.values(), LEVELS)
    with pytest.raises(ValueError, match="it holds distances and no picture"):
        image.pixels()
    assert image.grey(100)[1] == 24


def test_floating_point_numbers_are_values_and_no_picture():
    metres = np.array([[0.5, 2.0]], np.float32)
    image = opened("tiff", saved(metres, "tiff"))
    assert image.values().tolist() == metres.tolist()
    with pytest.raises(ValueError, match="found floating-point numbers"):
        image.pixels()


def test_numbers_wider_than_sixteen_bits_are_refused():
    with pytest.raises(ValueError, match="expected numbers of 16 bits, found wider ones"):
        opened("tiff", saved(np.array([[70_000]], np.int32), "tiff")).values()


@pytest.mark.parametrize("data", [saved(RGB)[:60], saved(RGB)[:20], NONE, np.zeros(40, np.uint8)])
@pytest.mark.parametrize(
    "text", ["png", "16UC1; png", "bayer_rggb8; png", "32FC1; compressedDepth"]
)
def test_what_is_broken_is_an_os_error_or_a_value_error(text, data):
    image = opened(text, data)
    for call in (image.pixels, image.values, lambda: image.grey(4)):
        with pytest.raises((OSError, ValueError)):
            call()


def test_a_broken_chunk_of_a_png_is_a_value_error():
    """Pillow raises SyntaxError, which is none of an image's errors elsewhere."""
    data = saved(RGB).copy()
    data[29] ^= 1
    with pytest.raises((OSError, ValueError)):
        opened("png", data).pixels()


def test_pillows_other_formats_are_not_opened():
    with pytest.raises(OSError, match="cannot identify"):
        Image("jpeg", saved(RGB, "bmp")).pixels()


ALTERED = {"jpeg": saved(RGB, "jpeg"), "png": saved(RGB), "webp": saved(RGB, "webp")}


@given(
    codec=st.sampled_from(list(ALTERED)),
    places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=4),
    left=st.integers(0, 10**6),
)
def test_no_altered_or_cut_picture_gives_a_foreign_exception(codec, places, left):
    data = ALTERED[codec].copy()
    for place, change in places:
        data[place % len(data)] ^= change
    image = Image(codec, data[: len(data) - left % len(data) // 2])
    for call in (image.pixels, image.values, lambda: image.grey(4)):
        with contextlib.suppress(OSError, ValueError):
            assert call() is not None


# Distances


def rvl(numbers):
    """Return numbers (H, W) uint16 as RVL: a slow writer, group by group, after the paper."""
    groups = []

    def write(number):
        more = True
        while more:
            group, number = number & 7, number >> 3
            more = number > 0
            groups.append(group | (8 if more else 0))

    flat, at, last = numbers.ravel().astype(int).tolist(), 0, 0
    while at < len(flat):
        zeros = next((k for k, n in enumerate(flat[at:]) if n), len(flat) - at)
        at += zeros
        others = next((k for k, n in enumerate(flat[at:]) if not n), len(flat) - at)
        write(zeros)
        write(others)
        for number in flat[at : at + others]:
            step = number - last
            write(2 * step if step >= 0 else -2 * step - 1)
            last = number
        at += others
    groups += [0] * (-len(groups) % 8)
    words = [
        int("".join(f"{g:x}" for g in groups[k : k + 8]), 16) for k in range(0, len(groups), 8)
    ]
    return struct.pack(f"<II{len(words)}I", numbers.shape[1], numbers.shape[0], *words)


NUMBERS = st.tuples(st.integers(0, 5), st.integers(1, 7)).flatmap(
    lambda size: st.lists(
        st.one_of(st.just(0), st.integers(0, 65535), st.integers(990, 1010)),
        min_size=size[0] * size[1],
        max_size=size[0] * size[1],
    ).map(lambda flat: np.array(flat, np.uint16).reshape(size))
)


@given(numbers=NUMBERS)
def test_rvl_gives_the_millimetres_that_were_written(numbers):
    image = opened("16UC1; compressedDepth rvl", depth(rvl(numbers)))
    assert np.array_equal(image.values(), numbers)
    assert image.values().shape == numbers.shape


@given(numbers=NUMBERS, data=st.data())
def test_rvl_that_is_cut_or_altered_gives_no_foreign_exception(numbers, data):
    body = bytearray(rvl(numbers))
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(8, max(8, len(body) - 1))) % len(body)] = data.draw(
            st.integers(0, 255)
        )
    body = body[: data.draw(st.integers(0, len(body)))]
    image = opened("16UC1; compressedDepth rvl", depth(body))
    try:
        found = image.values()
    except ValueError as error:
        told = str(error)
        assert told.startswith("expected")
    else:
        assert found.dtype == np.uint16


@pytest.mark.parametrize("codec", ["png", "rvl"])
def test_inverse_distances_are_metres(codec):
    """The writer's numbers: a = z0 (z0 + 1), b = 1 - a / max, number = a / metres + b."""
    a = 100.0 * 101.0
    b = 1.0 - a / 10.0
    metres = np.array([[1.0, 2.5, np.nan], [9.9, 0.9, np.nan]])
    numbers = np.nan_to_num(a / metres + b).astype(np.uint16)
    body = rvl(numbers) if codec == "rvl" else saved(numbers)
    image = opened(f"32FC1; compressedDepth {codec}", depth(body, a, b))
    assert image.values() == pytest.approx(metres, rel=0.01, nan_ok=True)
    assert image.values().dtype == np.float32
    with pytest.raises(ValueError, match="it holds distances and no picture"):
        image.pixels()


def test_distances_in_a_png_of_eight_bits_are_refused():
    with pytest.raises(ValueError, match="expected a PNG with 16 bits a pixel, found mode RGB"):
        opened("16UC1; compressedDepth png", depth(saved(RGB))).values()


def test_a_huge_size_is_refused_before_memory_is_asked_for():
    body = struct.pack("<III", 1 << 20, 1 << 20, 0)
    with pytest.raises(ValueError, match="pixels at most, found 1048576 x 1048576"):
        opened("16UC1; compressedDepth rvl", depth(body)).values()
