"""A cloud that is written in any legal layout decodes to the same points; a cut one is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.logs import Channel, RawMessage
from avrt.logs.decode import decode
from avrt.logs.ros.message import DATATYPES, header
from avrt.logs.ros.types import CLOUD, known_types

STAMP_NS = 1_700_000_000_250_000_000
PADDING = 0xAB
WHOLE = st.integers(-100, 100)
NUMBERS = ("i1", "i2", "i4", "f4", "f8")
"""Types that hold all of WHOLE; a field of any of them is legal."""


@st.composite
def layouts(draw):
    """Return (message, points (N, 4), seconds after the stamp): all of it drawn."""
    height, width = draw(st.sampled_from([(1, 0), (0, 0), (2, 0), (1, 1), (1, 5), (3, 4)]))
    count = height * width
    rows = draw(st.lists(st.tuples(*[WHOLE] * 4), min_size=count, max_size=count))
    points = np.array(rows, np.float64).reshape(count, 4)
    names = draw(st.permutations(["x", "y", "z", "intensity", "t", "ring"]))
    kinds = {name: draw(st.sampled_from(NUMBERS)) for name in names} | {"t": "u4"}
    order = draw(st.sampled_from("<>"))
    offsets, step = {}, draw(st.integers(0, 3))
    for name in names:
        offsets[name] = step
        step += int(kinds[name][1]) + draw(st.integers(0, 5))
    listed = draw(st.permutations(names))
    dtype = np.dtype(
        {
            "names": names,
            "formats": [order + kinds[name] for name in names],
            "offsets": [offsets[name] for name in names],
            "itemsize": step,
        }
    )
    packed = np.zeros(count, dtype)
    for index, name in enumerate(["x", "y", "z", "intensity"]):
        packed[name] = points[:, index]
    packed["t"] = np.arange(count) * 1000
    row_step = width * step + draw(st.integers(0, 9))
    data = np.full((height, row_step), PADDING, np.uint8)
    data[:, : width * step] = np.frombuffer(packed.tobytes(), np.uint8).reshape(
        height, width * step
    )
    fields = [
        ros.sensor_msgs__msg__PointField(
            n, offsets[n], DATATYPES[kinds[n]], draw(st.integers(0, 1))
        )
        for n in listed
    ]
    message = ros.sensor_msgs__msg__PointCloud2(
        header(STAMP_NS, "lidar"), height, width, fields, order == ">", step, row_step,
        data.reshape(-1), draw(st.booleans()),
    )  # fmt: skip
    return message, points, np.arange(count) * 1e-6


def raw(message, *, little_endian=True):
    data = known_types().serialize_cdr(message, CLOUD, little_endian=little_endian)
    return RawMessage(Channel(1, "/points", CLOUD, "cdr"), 99, 99, 0, bytes(data))


@given(drawn=layouts(), little_endian=st.booleans())
def test_the_layout_changes_no_point(drawn, little_endian):
    message, points, seconds = drawn
    decoded = decode(raw(message, little_endian=little_endian), "lidar")
    cloud = decoded.payload
    assert cloud.xyz.tolist() == points[:, :3].tolist()
    assert cloud.intensity.tolist() == points[:, 3].tolist()
    assert cloud.seconds == pytest.approx(seconds, abs=1e-9)
    assert {cloud.xyz.dtype, cloud.intensity.dtype, cloud.seconds.dtype} == {np.dtype("f4")}
    assert cloud.rows == max(1, message.height)
    assert not decoded.lost_times


@given(drawn=layouts(), data=st.data())
def test_a_cloud_with_too_few_bytes_is_told_with_topic_expected_and_found(drawn, data):
    message, _, _ = drawn
    size = len(message.data)
    left = data.draw(st.integers(0, max(0, size - 1)))
    message.data = message.data[:left]
    whole = message.height == 1 and left == message.width * message.point_step
    if left == size or whole:
        assert decode(raw(message), "lidar").payload.count == message.height * message.width
        return
    expected = rf"^/points at 99 ns: expected {message.height} x {message.width} points"
    with pytest.raises(InputError, match=rf"{expected} .*, found {left} bytes$"):
        decode(raw(message), "lidar")


@given(drawn=layouts(), data=st.data())
def test_a_message_that_is_cut_anywhere_is_told_with_topic_expected_and_found(drawn, data):
    whole = raw(drawn[0])
    left = data.draw(st.integers(0, len(whole.data) - 1))
    cut = RawMessage(whole.channel, 99, 99, 0, whole.data[:left])
    with pytest.raises(InputError, match=f"^/points at 99 ns: expected a {CLOUD}, found {left} "):
        decode(cut, "lidar")


def cloud(height, width, row_step, size, count=1):
    """Return a cloud of x, y, z float32 whose rows and bytes are as given."""
    fields = [ros.sensor_msgs__msg__PointField(n, 4 * i, 7, count) for i, n in enumerate("xyz")]
    data = np.arange(size, dtype=np.uint8)
    return ros.sensor_msgs__msg__PointCloud2(
        header(STAMP_NS, "lidar"), height, width, fields, False, 12, row_step, data, True
    )


@pytest.mark.parametrize("row_step", [0, 24, 7])
def test_the_step_of_a_single_row_does_not_matter_where_its_bytes_are_its_points(row_step):
    assert decode(raw(cloud(1, 2, row_step, 24)), "lidar").payload.count == 2


@pytest.mark.parametrize(("height", "row_step", "size"), [(2, 0, 48), (2, 48, 48), (2, 24, 47)])
def test_rows_that_do_not_fill_the_bytes_are_told(height, row_step, size):
    with pytest.raises(InputError, match=f"rows of {row_step} bytes, found {size} bytes"):
        decode(raw(cloud(height, 2, row_step, size)), "lidar")


def test_a_field_that_is_there_twice_is_told():
    message = cloud(1, 2, 24, 24)
    message.fields.append(message.fields[0])
    with pytest.raises(InputError, match="expected fields x, y and z, found x, y, z, x"):
        decode(raw(message), "lidar")
