"""An image of any encoding and padding decodes to its bytes; one that is cut or unknown is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.logs import Channel, RawMessage, open_log
from avrt.logs.decode import decode
from avrt.logs.ros.message import header
from avrt.logs.ros.types import COMPRESSED_IMAGE, IMAGE, known_types
from avrt.logs.writer import LogWriter
from avrt.payload import Image
from avrt.payload.layout import LAYOUTS

HEAD = header(12_000_000_034, "camera")
PADDING = 0xEE


def raw(message, type_name=IMAGE):
    data = known_types().serialize_cdr(message, type_name)
    return RawMessage(Channel(1, "/cam", type_name, "cdr"), 99, 99, 0, bytes(data))


def sent(encoding, width, height, step, data, *, big=False):
    return ros.sensor_msgs__msg__Image(HEAD, height, width, encoding, int(big), step, data)


@st.composite
def images(draw):
    """Return (message, what its payload is): encoding, size, padding and byte order drawn."""
    encoding = draw(st.sampled_from(list(LAYOUTS)))
    layout = LAYOUTS[encoding]
    width, height = (2 * draw(st.integers(1, 4)) for _ in range(2))
    row, rows = layout.row_bytes(width), layout.rows(height)
    content = np.frombuffer(draw(st.binary(min_size=row * rows, max_size=row * rows)), np.uint8)
    big = draw(st.booleans())
    step = row + draw(st.integers(0, 5))
    data = np.full((rows, step), PADDING, np.uint8)
    ordered = content.reshape(-1, layout.sample_bytes)[:, :: -1 if big else 1]
    data[:, :row] = ordered.reshape(rows, row)
    message = sent(encoding, width, height, step, data.reshape(-1), big=big)
    return message, Image(encoding, content, width, height)


@given(drawn=images())
def test_neither_padding_nor_byte_order_change_an_image(drawn):
    message, expected = drawn
    image = decode(raw(message), "camera").payload
    assert image.data.tobytes() == expected.data.tobytes()
    assert (image.encoding, image.width_px, image.height_px) == (
        expected.encoding, expected.width_px, expected.height_px,
    )  # fmt: skip
    grey, size = image.grey(100)
    assert size == image.width_px * image.height_px
    assert grey.dtype == np.uint8
    if LAYOUTS[image.encoding].kind != "distance":
        pixels = image.pixels()
        assert (pixels.shape, pixels.dtype) == ((image.height_px, image.width_px, 3), np.uint8)


@given(drawn=images(), data=st.data())
def test_an_image_with_too_few_bytes_is_told_with_topic_expected_and_found(drawn, data):
    message, _ = drawn
    left = data.draw(st.integers(0, len(message.data) - 1))
    message.data = message.data[:left]
    expected = rf"^/cam at 99 ns: expected \d+ rows of {message.step} bytes, .* found {left} bytes$"
    with pytest.raises(InputError, match=expected):
        decode(raw(message), "camera")


@given(drawn=images(), data=st.data())
def test_a_message_that_is_cut_anywhere_is_told_with_topic_expected_and_found(drawn, data):
    whole = raw(drawn[0])
    left = data.draw(st.integers(0, len(whole.data) - 1))
    cut = RawMessage(whole.channel, 99, 99, 0, whole.data[:left])
    with pytest.raises(InputError, match=f"^/cam at 99 ns: expected a {IMAGE}, found {left} "):
        decode(cut, "camera")


@given(drawn=images())
def test_an_image_that_is_written_again_reads_the_same(drawn, tmp_path_factory):
    _, image = drawn
    path = tmp_path_factory.mktemp("log") / "log.mcap"
    with LogWriter(path) as log:
        log.add_image("/cam", "camera", 1, image)
    with open_log(path) as log:
        (found,) = [decode(message, "camera").payload for message in log.messages()]
    assert found.encoding == image.encoding
    assert found.data.tobytes() == image.data.tobytes()


@pytest.mark.parametrize(
    "encoding", ["8UC3", "8UC4", "nv24", "32FC3", "64FC1", "RGB8", "rgb 8", ""]
)
def test_an_encoding_that_is_not_read_is_told_with_those_that_are(encoding):
    message = sent(encoding, 2, 2, 8, np.zeros(16, np.uint8))
    with pytest.raises(
        InputError, match=r"expected an image in rgb8, .*, 32FC1, found '"
    ) as caught:
        decode(raw(message), "camera")
    assert str(caught.value).endswith(repr(encoding))


@pytest.mark.parametrize(
    ("encoding", "width", "height", "what"),
    [
        ("uyvy", 3, 2, "an even width in uyvy, found 3 x 2"),
        ("nv12", 2, 3, "an even width and height in nv12, found 2 x 3"),
        ("bayer_rggb8", 1, 4, "two rows and columns at least in bayer_rggb8, found 1 x 4"),
        ("16UC1", 0, 4, "a pixel at least in 16UC1, found 0 x 4"),
    ],
)
def test_a_size_that_an_encoding_cannot_have_is_told(encoding, width, height, what):
    layout = LAYOUTS[encoding]
    step = layout.row_bytes(width)
    data = np.zeros(layout.rows(height) * step, np.uint8)
    with pytest.raises(InputError, match=f"expected an image of {what}"):
        decode(raw(sent(encoding, width, height, step, data)), "camera")


@pytest.mark.parametrize("text", ["h264", "", "16UC1; compressedDepth lz4", "compressedDepth png"])
def test_a_format_that_is_not_read_is_told_with_its_bytes_and_those_that_are(text):
    data = np.frombuffer(b"\0\0\0\1gM\0\x1f\xac", np.uint8)
    message = ros.sensor_msgs__msg__CompressedImage(HEAD, text, data)
    expected = "^/cam at 99 ns: expected an image in jpeg, png, tiff, webp, compressedDepth png or "
    with pytest.raises(InputError, match=expected) as caught:
        decode(raw(message, COMPRESSED_IMAGE), "camera")
    assert str(caught.value).endswith(f"found format {text!r} and bytes 00 00 00 01 67 4d 00 1f")
