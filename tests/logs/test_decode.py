import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.logs import Channel, RawMessage, open_log
from avrt.logs.decode import INFO, decode
from avrt.logs.ros.types import CAMERA_INFO, CLOUD, COMPRESSED_IMAGE, IMAGE, SCAN
from avrt.logs.writer import LogWriter
from avrt.payload import CameraInfo, Image, PointCloud
from avrt.payload.digest import digest_of

STORE = get_typestore(Stores.ROS2_JAZZY)
KINDS = {CLOUD: "lidar", COMPRESSED_IMAGE: "camera", IMAGE: "camera", CAMERA_INFO: INFO}
HEADER = ros.std_msgs__msg__Header(ros.builtin_interfaces__msg__Time(12, 34), "frame")
FLOAT32, UINT8, FLOAT64 = 7, 2, 8


def raw(message, type_name, *, little_endian=True):
    data = STORE.serialize_cdr(message, type_name, little_endian=little_endian)
    return RawMessage(Channel(1, "/t", type_name, "cdr"), 99, 99, 0, data)


def read(message):
    return decode(message, KINDS.get(message.type, "lidar"))


def cloud(fields, step, width, data, **options):
    """Return a PointCloud2; `fields` are (name, offset, datatype)."""
    return ros.sensor_msgs__msg__PointCloud2(
        header=HEADER,
        height=options.get("height", 1),
        width=width,
        fields=[ros.sensor_msgs__msg__PointField(n, o, t, 1) for n, o, t in fields],
        is_bigendian=options.get("big", False),
        point_step=step,
        row_step=options.get("row_step", width * step),
        data=np.frombuffer(bytes(data), np.uint8),
        is_dense=False,
    )


XYZ = [("x", 0, FLOAT32), ("y", 4, FLOAT32), ("z", 8, FLOAT32)]
POINTS = np.array([[1, 2, 3], [4, np.nan, 6], [7, 8, 9]], np.float32)


@pytest.mark.parametrize("step", [12, 14, 16, 22, 32])
@pytest.mark.parametrize("little_endian", [True, False])
def test_xyz_is_a_view_at_any_point_step(step, little_endian):
    data = np.zeros((3, step), np.uint8)
    data[:, :12] = POINTS.view(np.uint8).reshape(3, 12)
    message = raw(cloud(XYZ, step, 3, data), CLOUD, little_endian=little_endian)
    payload = read(message).payload
    assert np.array_equal(payload.xyz, POINTS, equal_nan=True)
    if little_endian:
        assert np.shares_memory(payload.xyz, np.frombuffer(message.data, np.uint8))
    assert payload.intensity is None


def test_other_types_orders_and_byte_orders_are_converted():
    dtype = np.dtype({"names": ["z", "x", "y", "intensity"], "formats": [">f8", ">f8", ">f4", "u1"],
                      "offsets": [0, 8, 16, 21], "itemsize": 24})  # fmt: skip
    points = np.zeros(3, dtype)
    points["x"], points["y"], points["z"] = POINTS.T
    points["intensity"] = [1, 2, 255]
    fields = [("z", 0, FLOAT64), ("x", 8, FLOAT64), ("y", 16, FLOAT32), ("intensity", 21, UINT8)]
    message = cloud(fields, 24, 3, points.tobytes(), big=True)
    payload = read(raw(message, CLOUD)).payload
    assert np.array_equal(payload.xyz, POINTS, equal_nan=True)
    assert payload.xyz.dtype == np.float32
    assert payload.intensity.tolist() == [1, 2, 255]
    assert payload.intensity.dtype == np.float32


def test_padding_between_rows_is_left_out():
    rows = np.full((2, 30), 255, np.uint8)
    rows[:, :24] = np.arange(12, dtype=np.float32).view(np.uint8).reshape(2, 24)
    message = cloud(XYZ, 12, 2, rows, height=2, row_step=30)
    payload = read(raw(message, CLOUD)).payload
    assert payload.xyz.tolist() == np.arange(12).reshape(4, 3).tolist()


def test_a_cloud_without_points_is_a_cloud():
    payload = read(raw(cloud(XYZ, 12, 0, b""), CLOUD)).payload
    assert payload.count == 0


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (cloud(XYZ, 12, 3, bytes(35)), "expected 1 x 3 points of 12 bytes .*, found 35 bytes"),
        (cloud(XYZ, 12, 3, bytes(37)), "found 37 bytes"),
        (cloud(XYZ, 12, 2, bytes(40), height=2, row_step=20), "rows of 20 bytes, found 40 bytes"),
        (cloud(XYZ, 11, 1, bytes(11)), "expected field z within 11 bytes"),
        (cloud(XYZ, 0, 1, b""), "expected field x within 0 bytes"),
        (cloud([*XYZ, ("t", 0, 99)], 12, 1, bytes(12)), "field t .*, found type 99"),
        (cloud(XYZ[:2], 12, 1, bytes(12)), "expected fields x, y and z, found x, y"),
        (cloud([], 12, 1, bytes(12)), "found no fields"),
    ],
)
def test_a_cloud_whose_layout_and_bytes_disagree_is_refused(message, expected):
    with pytest.raises(InputError, match=f"^/t at 99 ns: .*{expected}"):
        read(raw(message, CLOUD))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("jpeg", "jpeg"), ("JPG", "jpeg"), ("rgb8; jpeg compressed bgr8", "jpeg"), ("png", "png")],
)
def test_a_compressed_image_is_a_view_and_stays_compressed(text, encoding):
    data = np.arange(20, dtype=np.uint8)
    message = raw(ros.sensor_msgs__msg__CompressedImage(HEADER, text, data), COMPRESSED_IMAGE)
    decoded = read(message)
    assert decoded.frame == "frame"
    assert decoded.header_ns == 12_000_000_034
    assert decoded.stamp_valid
    assert isinstance(decoded.payload, Image)
    assert decoded.payload.encoding == encoding
    assert np.array_equal(decoded.payload.data, data)
    assert np.shares_memory(decoded.payload.data, np.frombuffer(message.data, np.uint8))


def test_a_raw_image_loses_the_padding_of_its_rows():
    data = np.arange(2 * 8, dtype=np.uint8)
    message = ros.sensor_msgs__msg__Image(HEADER, 2, 2, "rgb8", 0, 8, data)
    payload = read(raw(message, IMAGE)).payload
    assert (payload.width_px, payload.height_px) == (2, 2)
    assert payload.pixels().tolist() == data.reshape(2, 8)[:, :6].reshape(2, 2, 3).tolist()


@pytest.mark.parametrize(
    ("encoding", "size", "expected"),
    [
        ("rgb8", 15, "2 rows of 8 bytes, .* found 15 bytes"),
        ("8UC3", 16, "expected an image in rgb8, .*, found '8UC3'"),
    ],
)
def test_a_raw_image_that_does_not_fit_is_refused(encoding, size, expected):
    data = np.zeros(size, np.uint8)
    message = ros.sensor_msgs__msg__Image(HEADER, 2, 2, encoding, 0, 8, data)
    with pytest.raises(InputError, match=expected):
        read(raw(message, IMAGE))


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 2), (2, 0)])
def test_a_raw_image_without_a_pixel_is_refused(width, height):
    """A width of zero would make it count as compressed."""
    data = np.zeros(6 * width * height, np.uint8)
    message = ros.sensor_msgs__msg__Image(HEADER, height, width, "rgb8", 0, 3 * width, data)
    with pytest.raises(InputError, match="expected an image of a pixel at least"):
        read(raw(message, IMAGE))


@pytest.mark.parametrize("little_endian", [True, False])
def test_camera_info_gives_size_and_projection(little_endian):
    p = np.arange(12.0)
    message = ros.sensor_msgs__msg__CameraInfo(
        HEADER, 480, 640, "plumb_bob", np.zeros(5), np.zeros(9), np.zeros(9), p, 0, 0,
        ros.sensor_msgs__msg__RegionOfInterest(0, 0, 0, 0, do_rectify=False),
    )  # fmt: skip
    payload = read(raw(message, CAMERA_INFO, little_endian=little_endian)).payload
    assert isinstance(payload, CameraInfo)
    assert (payload.width_px, payload.height_px) == (640, 480)
    assert payload.projection.tolist() == p.reshape(3, 4).tolist()


def camera_info(model="plumb_bob", d=(), **changed):
    """Return a CameraInfo of 640 x 480 whose lens has these coefficients."""
    k = np.array([400.0, 0, 320, 0, 410, 240, 0, 0, 1])
    p = np.array([380.0, 0, 330, -38, 0, 390, 250, 0, 0, 0, 1, 0])
    roi = ros.sensor_msgs__msg__RegionOfInterest(
        changed.get("x", 0), changed.get("y", 0), changed.get("high", 0), changed.get("wide", 0),
        do_rectify=False,
    )  # fmt: skip
    return ros.sensor_msgs__msg__CameraInfo(
        HEADER, 480, 640, model, np.array(d, float), changed.get("k", k), np.eye(3).ravel(),
        changed.get("p", p), changed.get("x_bin", 0), changed.get("y_bin", 0), roi,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "count"),
    [
        ("plumb_bob", 5), ("plumb_bob", 4), ("rational_polynomial", 8), ("equidistant", 4),
        ("a driver's own", 3),
    ],
)  # fmt: skip
def test_camera_info_gives_the_lens(model, count):
    payload = read(raw(camera_info(model, range(1, 1 + count)), CAMERA_INFO)).payload
    assert payload.lens.model == model
    assert payload.lens.coefficients.tolist() == [1, 2, 3, 4, 5, 6, 7, 8][:count]
    assert payload.lens.matrix[0].tolist() == [400, 0, 320]
    assert payload.lens.rectification.tolist() == np.eye(3).tolist()
    assert payload.projection[0].tolist() == [380, 0, 330, -38]


@pytest.mark.parametrize("d", [(), (0.1, 0.2, 0.3, 0.4)])
def test_a_camera_model_that_is_written_again_reads_the_same(d, tmp_path):
    info = read(raw(camera_info("equidistant", d), CAMERA_INFO)).payload
    with LogWriter(tmp_path / "log.mcap") as log:
        log.add_camera_info("/info", "camera", 1, info)
    with open_log(tmp_path / "log.mcap") as log:
        (found,) = [read(message).payload for message in log.messages()]
    assert digest_of(found) == digest_of(info)


@pytest.mark.parametrize("d", [(), np.zeros(5), np.zeros(4)])
def test_a_lens_of_zeros_bends_nothing(d):
    assert read(raw(camera_info(d=d), CAMERA_INFO)).payload.lens is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (camera_info("plumb_bob", range(8)), "4 or 5 coefficients of a plumb_bob lens, found 8"),
        (camera_info("rational_polynomial", range(5)), "8 or 12 or 14 coefficients .*, found 5"),
        (camera_info("equidistant", range(5)), "4 coefficients of a equidistant lens, found 5"),
        (camera_info(d=[np.nan] * 5), "finite numbers in P, K, R and D"),
        (camera_info(p=np.full(12, np.inf)), "finite numbers in P, K, R and D"),
    ],
)
def test_a_camera_model_that_contradicts_itself_is_refused(message, told):
    with pytest.raises(InputError, match=f"^/t at 99 ns: expected {told}"):
        read(raw(message, CAMERA_INFO))


def test_the_model_is_that_of_the_part_of_the_image_that_is_sent():
    part = {"x": 100, "y": 50, "wide": 400, "high": 200, "x_bin": 2, "y_bin": 4}
    payload = read(raw(camera_info(**part), CAMERA_INFO)).payload
    whole = read(raw(camera_info(), CAMERA_INFO)).payload
    assert (payload.width_px, payload.height_px) == (200, 50)
    point = np.array([2.0, -1.0, 9.0, 1.0])
    (u, v), (x, y) = (
        (seen[:2] / seen[2]).tolist()
        for seen in (payload.projection @ point, whole.projection @ point)
    )
    assert (u, v) == pytest.approx(((x - 100) / 2, (y - 50) / 4))


@pytest.mark.parametrize(
    ("sec", "nanosec", "valid"),
    [
        (0, 0, False),
        (-1, 5, False),
        (0, 1, True),
        (3, 1_000_000_000, False),
        (3, 999_999_999, True),
    ],
)
def test_stamps_that_can_be_none_are_told(sec, nanosec, valid):
    header = replace(HEADER, stamp=ros.builtin_interfaces__msg__Time(sec, nanosec))
    message = ros.sensor_msgs__msg__CompressedImage(header, "jpeg", np.zeros(1, np.uint8))
    decoded = read(raw(message, COMPRESSED_IMAGE))
    assert decoded.stamp_valid is valid
    assert decoded.header_ns == sec * 1_000_000_000 + nanosec


@pytest.mark.parametrize(
    "channel",
    [Channel(1, "/t", "sensor_msgs/msg/Imu", "cdr"), Channel(1, "/t", CLOUD, "json")],
)
def test_a_type_or_encoding_that_is_not_read_is_refused(channel):
    with pytest.raises(InputError, match="expected a CDR message of"):
        read(RawMessage(channel, 1, 1, 0, b""))


@given(
    data=st.binary(max_size=200),
    kind=st.sampled_from([CLOUD, SCAN, COMPRESSED_IMAGE, IMAGE, CAMERA_INFO]),
)
def test_no_bytes_give_a_foreign_exception(data, kind):
    message = RawMessage(Channel(1, "/t", kind, "cdr"), 1, 1, 0, b"\0\1\0\0" + data)
    with contextlib.suppress(InputError):
        read(message)


@given(st.data())
def test_no_flipped_byte_of_a_cloud_gives_a_foreign_exception(data):
    good = bytes(raw(cloud([*XYZ, ("intensity", 12, FLOAT32)], 16, 4, bytes(64)), CLOUD).data)
    offset = data.draw(st.integers(4, len(good) - 1))
    flip = data.draw(st.integers(1, 255))
    bad = good[:offset] + bytes([good[offset] ^ flip]) + good[offset + 1 :]
    try:
        decoded = read(RawMessage(Channel(1, "/t", CLOUD, "cdr"), 1, 1, 0, bad))
    except InputError:
        return
    assert isinstance(decoded.payload, PointCloud)


@pytest.mark.slow
def test_kitti_points_and_stamps_are_those_that_rosbags_reads(shared):
    with open_log(shared / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap") as log:
        for message in log.messages():
            decoded = read(message)
            reference = STORE.deserialize_cdr(message.data, message.type)
            assert decoded.header_ns == message.log_ns
            assert decoded.frame == reference.header.frame_id
            if message.type == CLOUD:
                points = reference.data.view(np.float32).reshape(-1, 4)
                assert np.array_equal(decoded.payload.xyz, points[:, :3])
                assert np.array_equal(decoded.payload.intensity, points[:, 3])


@pytest.mark.slow
def test_radiate_points_of_fourteen_bytes_read(shared):
    with open_log(shared / "radiate_tiny_foggy" / "radiate_tiny_foggy.mcap") as log:
        clouds = [read(m).payload for m in log.messages(["/lidar/top/points"])]
    assert len(clouds) == 42
    assert all(19_000 < c.count < 24_500 and np.isfinite(c.xyz).all() for c in clouds)
    assert all(c.intensity.min() >= 0 and c.intensity.max() <= 255 for c in clouds)
