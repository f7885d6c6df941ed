"""Every layout of raw pixels gives the picture that was put into it, and says what it cannot be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PillowImage

from avrt.payload import Image
from avrt.payload.layout import LAYOUTS, drawn
from avrt.payload.mosaic import PATTERNS, demosaiced

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4)).map(lambda s: (2 * s[0], 2 * s[1]))


def random(shape, top=256, dtype=np.uint8):
    return np.random.default_rng(3).integers(0, top, shape).astype(dtype)


def image(encoding, array):
    height, width = array.shape[:2]
    return Image(encoding, np.ascontiguousarray(array).view(np.uint8).reshape(-1), width, height)


COLOURS = {"rgb": [0, 1, 2], "bgr": [2, 1, 0], "rgba": [0, 1, 2, 3], "bgra": [2, 1, 0, 3]}


@pytest.mark.parametrize("name", COLOURS)
@pytest.mark.parametrize("bits", [8, 16])
def test_colours_are_red_green_and_blue_in_any_order(name, bits):
    channels = random((3, 5, 4), 1 << bits, np.dtype(f"<u{bits // 8}"))
    sent = image(f"{name}{bits}", channels[..., COLOURS[name]])
    assert np.array_equal(sent.pixels(), channels[..., :3] >> (bits - 8))
    grey, size = sent.grey(100)
    assert np.array_equal(grey, channels[..., 1] >> (bits - 8))
    assert size == 15
    with pytest.raises(ValueError, match="it has colours, not one number a pixel"):
        sent.values()


@pytest.mark.parametrize(("name", "bits"), [("mono8", 8), ("8UC1", 8), ("mono16", 16)])
def test_grey_levels_are_values_and_a_picture_of_their_upper_byte(name, bits):
    levels = random((4, 6), 1 << bits, np.dtype(f"<u{bits // 8}"))
    sent = image(name, levels)
    assert np.array_equal(sent.values(), levels)
    assert sent.values().dtype == levels.dtype
    upper = levels >> (bits - 8)
    assert np.array_equal(sent.pixels(), np.stack([upper] * 3, axis=-1))
    assert np.array_equal(sent.grey(100)[0], upper)


def differences(rgb):
    """Return luma and the differences of blue and red, as JPEG has them."""
    return np.asarray(PillowImage.fromarray(rgb).convert("YCbCr"))


def packed(name, ycc):
    """Return (H, W) bytes twice, of pixels that share their differences in pairs."""
    luma, both = ycc[..., 0], ycc[:, ::2, 1:]
    quads = np.empty((*both.shape[:2], 4), np.uint8)
    at = 1 if name in {"uyvy", "yuv422"} else 0
    quads[..., at], quads[..., at + 2] = luma[:, ::2], luma[:, 1::2]
    quads[..., 1 - at], quads[..., 3 - at] = both[..., 0], both[..., 1]
    return quads.reshape(-1)


def planar(name, ycc):
    order = slice(None, None, -1 if name == "nv21" else 1)
    return np.concatenate([ycc[..., 0].ravel(), ycc[::2, ::2, 1:][..., order].ravel()])


@pytest.mark.parametrize("name", ["uyvy", "yuv422", "yuyv", "yuv422_yuy2", "nv12", "nv21"])
def test_luma_and_differences_give_their_colours(name):
    """Blocks of two by two pixels of one colour lose nothing by sharing their differences."""
    rgb = random((3, 4, 3)).repeat(2, axis=0).repeat(2, axis=1)
    data = (planar if name.startswith("nv") else packed)(name, differences(rgb))
    sent = Image(name, data, 8, 6)
    assert np.abs(sent.pixels().astype(int) - rgb).max() <= 3
    assert np.array_equal(sent.grey(100)[0], differences(rgb)[..., 0])


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", PATTERNS)
@given(size=SIZES, colour=st.tuples(*[st.integers(0, 255)] * 3))
def test_a_mosaic_of_one_colour_is_that_colour(pattern, bits, size, colour):
    rgb = np.broadcast_to(np.array(colour, np.uint8), (*size, 3))
    mosaic = np.empty(size, np.uint8)
    for place, name in enumerate(pattern):
        row, column = divmod(place, 2)
        mosaic[row::2, column::2] = colour["rgb".index(name)]
    numbers = mosaic if bits == 8 else mosaic.astype("<u2") << 8 | 0xFF
    sent = image(f"bayer_{pattern}{bits}", numbers)
    assert np.array_equal(sent.pixels(), rgb)
    assert (sent.grey(100)[0] == colour[1]).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_mosaic_keeps_what_was_measured_and_puts_the_mean_between(pattern):
    mosaic = random((5, 7))
    picture = demosaiced(mosaic, pattern)
    for row in range(5):
        for column in range(7):
            measured = "rgb".index(pattern[2 * (row % 2) + column % 2])
            assert picture[row, column, measured] == mosaic[row, column]
            if measured != 1 and 0 < row < 4 and 0 < column < 6:
                rows, columns = (
                    [row - 1, row + 1, row, row],
                    [column, column, column - 1, column + 1],
                )
                mean = (int(mosaic[rows, columns].astype(int).sum()) + 2) // 4
                assert picture[row, column, 1] == mean


@pytest.mark.parametrize(("name", "dtype"), [("16UC1", "<u2"), ("32FC1", "<f4")])
def test_distances_are_values_and_no_picture(name, dtype):
    distances = np.array([[0, 1000, 65535]], dtype)
    sent = image(name, distances)
    assert np.array_equal(sent.values(), distances)
    with pytest.raises(ValueError, match="it holds distances and no picture"):
        sent.pixels()
    grey, size = sent.grey(100)
    assert (grey.shape, size, grey[0, 0]) == ((1, 3), 3, 0)


def test_near_distances_differ_and_none_is_black():
    metres = np.array([[np.nan, np.inf, 0.0, 1.0, 2.0, 25.0, 100.0, 1e9, -1.0]], np.float32)
    grey = drawn(metres)
    assert grey.tolist() == [[0, 0, 0, 25, 36, 127, 255, 255, 0]]
    assert np.array_equal(drawn(np.array([[1000, 25000]], np.uint16)), grey[:, [3, 5]])


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_does_not_fit_is_a_value_error(name):
    for sent in (
        Image(name, np.zeros(7, np.uint8), 4, 4),
        Image(name, np.zeros(0, np.uint8), 4, 4),
    ):
        for call in (sent.pixels, sent.values, lambda sent=sent: sent.grey(4)):
            with pytest.raises(ValueError, match=r"reshape|divisor|distances|colours"):
                call()


def test_a_plain_picture_is_a_view():
    sent = image("rgb8", random((2, 3, 3)))
    assert np.shares_memory(sent.pixels(), sent.data)
    assert np.shares_memory(image("bgra8", random((2, 3, 4))).pixels(), sent.data) is False
