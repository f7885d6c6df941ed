import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.logs import Channel, RawMessage
from avrt.logs.decode import READERS, decode
from avrt.logs.ros.message import cloud_message, header, twist
from avrt.logs.ros.types import (
    CLOUD,
    FIX,
    IMAGE,
    IMU,
    ODOMETRY,
    RADAR_SCAN,
    RADAR_TRACKS,
    SCAN,
    TWIST,
    TWIST_COVARIANCE,
    known_types,
)
from avrt.payload import Image

STORE = known_types()
STAMP_NS = 1_700_000_000_250_000_000
HEAD = header(STAMP_NS, "/sensor")
NAN = math.nan


def read(message, type_name, kind):
    data = STORE.serialize_cdr(message, type_name)
    return decode(RawMessage(Channel(1, "/t", type_name, "cdr"), 99, 99, 0, data), kind)


def cloud(columns, kind="lidar"):
    """Read a cloud of {field: (dtype, values)}."""
    rows = np.zeros(len(next(iter(columns.values()))[1]), [(n, d) for n, (d, _) in columns.items()])
    for name, (_, values) in columns.items():
        rows[name] = values
    return read(cloud_message(HEAD, rows), CLOUD, kind)


def at(x, y, z=None):
    return {"x": ("<f4", x), "y": ("<f4", y), "z": ("<f4", np.zeros(len(x)) if z is None else z)}


# Points and their times

AFTER = [0.0, 0.025, 0.05]


@pytest.mark.parametrize(
    ("name", "dtype", "values"),
    [
        ("t", "<u4", [0, 25_000_000, 50_000_000]),
        ("offset_time", "<u4", [0, 25_000_000, 50_000_000]),
        ("time_offset_ns", "<i4", [0, 25_000_000, 50_000_000]),
        ("point_time_offset", "<u4", [0, 25_000_000, 50_000_000]),
        ("ts", "<f4", AFTER),
        ("stamps", "<f8", AFTER),
        ("time", "<f4", AFTER),
        ("time_stamp", "<f8", AFTER),
        ("timestamp", "<f8", [STAMP_NS / 1e9 + s for s in AFTER]),
        ("timestamp", "<f8", [STAMP_NS + s * 1e9 for s in AFTER]),
    ],
)
def test_the_times_of_points_are_seconds_after_the_stamp(name, dtype, values):
    decoded = cloud({**at([1, 2, 3], [0, 0, 0]), name: (dtype, values)})
    assert decoded.payload.seconds.dtype == np.float32
    assert decoded.payload.seconds == pytest.approx(AFTER, abs=1e-6)
    assert not decoded.lost_times
    assert decoded.frame == "sensor"


@pytest.mark.parametrize("values", [[0.0, 0.1, 5.0], [0.0, NAN, 0.1], [1e9, 1e9, 1e9 + 1]])
def test_times_that_are_none_of_the_sweep_are_told_and_not_used(values):
    decoded = cloud({**at([1, 2, 3], [0, 0, 0]), "timestamp": ("<f8", values)})
    assert decoded.payload.seconds is None
    assert decoded.lost_times


@pytest.mark.parametrize("value", [0.0, 0.05, STAMP_NS / 1e9])
def test_one_time_for_all_points_is_told_and_not_used(value):
    decoded = cloud({**at([1, 2, 3], [0, 0, 0]), "timestamp": ("<f8", [value] * 3)})
    assert decoded.payload.seconds is None
    assert decoded.lost_times


def test_a_single_point_has_its_time():
    decoded = cloud({**at([1], [0]), "time": ("<f4", [0.05])})
    assert decoded.payload.seconds == pytest.approx([0.05])
    assert not decoded.lost_times


@pytest.mark.parametrize("nowhere", [NAN, math.inf])
@pytest.mark.parametrize("value", [NAN, 0.0, 1e300])
def test_the_time_of_a_point_that_is_nowhere_does_not_matter(nowhere, value):
    times = [STAMP_NS / 1e9, value, STAMP_NS / 1e9 + 0.05]
    decoded = cloud({**at([1, nowhere, 3], [0, 0, 0]), "timestamp": ("<f8", times)})
    assert decoded.payload.seconds == pytest.approx([0.0, NAN, 0.05], abs=1e-6, nan_ok=True)
    assert not decoded.lost_times


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("lidar_sec", "lidar_nsec"), lambda ns: (ns // 10**9, ns % 10**9)),
        (("t_lo", "t_hi"), lambda ns: (ns & 0xFFFFFFFF, ns >> 32)),
    ],
)
def test_two_fields_that_make_one_time_are_put_together(names, parts):
    at_ns = np.array([STAMP_NS + round(s * 1e9) for s in AFTER])
    columns = {name: ("<u4", part) for name, part in zip(names, parts(at_ns), strict=True)}
    decoded = cloud({**at([1, 2, 3], [0, 0, 0]), **columns})
    assert decoded.payload.seconds == pytest.approx(AFTER, abs=1e-9)
    lost = cloud({**at([1, 2, 3], [0, 0, 0]), **{name: ("<u4", [0, 1, 2]) for name in names}})
    assert lost.payload.seconds is None
    assert lost.lost_times


def test_a_point_of_no_range_was_not_measured():
    columns = {"range": ("<u4", [0, 1000, 2000]), "t": ("<u4", [0, 10, 20])}
    payload = cloud({**at([0, 1, 2], [0, 0, 0]), **columns}).payload
    assert payload.xyz[:, 0] == pytest.approx([NAN, 1, 2], nan_ok=True)
    assert payload.seconds == pytest.approx([NAN, 1e-8, 2e-8], nan_ok=True)


@pytest.mark.parametrize(
    ("dtype", "x", "expected"),
    [
        ("<f8", [1.1, 8191.9], np.float32),
        ("<f8", [1.1, math.inf], np.float32),
        ("<f8", [1.1, 8193.001], np.float64),
        ("<i4", [1, 5_412_345], np.float64),
        ("<f4", [1, 5_412_345], np.float32),
        ("<i2", [1, 30_000], np.float32),
    ],
)
def test_a_place_that_float32_does_not_tell_to_a_millimetre_is_float64(dtype, x, expected):
    payload = cloud({**at([0, 0], [0, 0]), "x": (dtype, x)}).payload
    assert payload.xyz.dtype == expected
    assert payload.xyz[:, 0].tolist() == np.array(x, expected).tolist()


def test_points_without_times_have_none():
    decoded = cloud(at([1, 2], [0, 0]))
    assert (decoded.payload.seconds, decoded.lost_times) == (None, False)


def scan(ranges, intensities=(), increment=0.001, first=0.0, step=math.pi / 4, span=(0.5, 10.0)):
    return ros.sensor_msgs__msg__LaserScan(
        HEAD, first, math.pi / 2, step, increment, 0.1, *span,
        np.array(ranges, np.float32), np.array(intensities, np.float32),
    )  # fmt: skip


def test_a_beam_that_met_nothing_gives_no_point():
    ranges = [1.0, math.inf, 2.0, NAN, 0.4, 10.5, 10.0]
    payload = read(scan(ranges, range(7)), SCAN, "lidar").payload
    assert payload.xyz == pytest.approx(np.array([[1, 0, 0], [0, 2, 0], [0, -10, 0]]), abs=1e-5)
    assert payload.intensity.tolist() == [0, 2, 6]
    assert payload.seconds == pytest.approx([0.0, 0.002, 0.006])


def test_a_scan_without_intensities_or_times_has_none():
    payload = read(scan([1.0, 2.0], increment=0.0), SCAN, "lidar").payload
    assert (payload.count, payload.intensity, payload.seconds) == (2, None, None)


def test_a_scan_with_too_few_intensities_is_refused():
    with pytest.raises(InputError, match="expected 3 intensities, or none, found 2"):
        read(scan([1.0, 2.0, 3.0], [1, 2]), SCAN, "lidar")


@pytest.mark.parametrize(
    "given",
    [
        {"first": NAN}, {"step": NAN}, {"step": math.inf}, {"step": 0.0},
        {"span": (NAN, 10.0)}, {"span": (0.5, NAN)}, {"span": (0.5, 0.0)},
    ],
    ids=str,
)  # fmt: skip
def test_a_scan_that_no_scanner_makes_is_refused(given):
    with pytest.raises(InputError, match="expected beams that differ in angle, and a range"):
        read(scan([1.0, 2.0], **given), SCAN, "lidar")


FLOATS = st.floats(width=32)


@given(
    ranges=st.lists(FLOATS, max_size=8),
    numbers=st.tuples(*[FLOATS] * 4),
    increment=FLOATS,
)
def test_every_point_of_a_scan_is_a_beam_within_range_or_the_scan_is_told(
    ranges, numbers, increment
):
    first, step, least, most = numbers
    message = scan(ranges, (), increment, first, step, (least, most))
    try:
        payload = read(message, SCAN, "lidar").payload
    except InputError as error:
        told = str(error)
        assert told.startswith("/t at 99 ns: expected beams that differ in angle, and a range")
        return
    counted = [one for one in ranges if math.isfinite(one) and least <= one <= most]
    assert payload.count == len(counted)
    if counted and abs(first) < 1e3 and abs(step) < 1e2 and max(map(abs, counted)) < 1e18:
        found = np.hypot(payload.xyz[:, 0], payload.xyz[:, 1])
        assert found == pytest.approx(np.abs(counted), rel=1e-3, abs=1e-30)


@given(data=st.data())
def test_a_scan_that_is_cut_anywhere_is_told_with_topic_expected_and_found(data):
    whole = bytes(STORE.serialize_cdr(scan([1.0, 2.0], [3, 4]), SCAN))
    left = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(InputError, match=f"^/t at 99 ns: expected a {SCAN}, found {left} bytes"):
        decode(RawMessage(Channel(1, "/t", SCAN, "cdr"), 99, 99, 0, whole[:left]), "lidar")


def test_a_single_beam_needs_no_step_and_a_range_may_have_no_end():
    assert read(scan([1.0], step=0.0), SCAN, "lidar").payload.count == 1
    assert read(scan([99.0], span=(0.0, math.inf)), SCAN, "lidar").payload.count == 1


@pytest.mark.parametrize("increment", [NAN, math.inf, 3.0])
def test_the_times_of_a_scan_that_are_none_of_it_are_told_and_not_used(increment):
    decoded = read(scan([1.0, 2.0], increment=increment), SCAN, "lidar")
    assert decoded.payload.seconds is None
    assert decoded.lost_times


def test_absolute_times_do_not_fit_into_a_float32():
    """They are 128 s apart, so all points of a sweep would share one time that is wrong."""
    seconds = STAMP_NS / 1e9 + np.array(AFTER)
    decoded = cloud({**at([1, 2, 3], [0, 0, 0]), "timestamp": ("<f4", seconds)})
    assert decoded.payload.seconds is None
    assert decoded.lost_times


# Motion


def imu(turn=(0.0, 0.0, 0.0, 1.0), first=(0.0, 0.0, 0.0)):
    """Return an Imu whose three covariances begin with `first`."""
    vector, covariances = ros.geometry_msgs__msg__Vector3, np.zeros((3, 9))
    covariances[:, 0] = first
    return ros.sensor_msgs__msg__Imu(
        HEAD, ros.geometry_msgs__msg__Quaternion(*turn), covariances[0],
        vector(0.1, 0.2, 0.3), covariances[1], vector(1.0, 2.0, 9.8), covariances[2],
    )  # fmt: skip


def test_an_imu_gives_what_it_measures():
    payload = read(imu(), IMU, "imu").payload
    assert payload.acceleration.tolist() == [1.0, 2.0, 9.8]
    assert payload.angular_rate.tolist() == [0.1, 0.2, 0.3]
    assert payload.orientation.tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "message", [imu(first=(-1, 0, 0)), imu((0.0, 0.0, 0.0, 0.0)), imu((NAN, 0.0, 0.0, 1.0))]
)
def test_an_imu_without_an_orientation_has_none(message):
    assert read(message, IMU, "imu").payload.orientation is None


def test_a_rate_or_acceleration_that_is_not_measured_is_nan():
    payload = read(imu(first=(0, -1, -1)), IMU, "imu").payload
    assert np.isnan(payload.angular_rate).all()
    assert np.isnan(payload.acceleration).all()


def fix(status=0, latitude=55.9, variances=(4.0, 9.0, 16.0), kind=2):
    return ros.sensor_msgs__msg__NavSatFix(
        HEAD, type(STATUS)(status, 1), latitude, -3.3, 200.0, np.diag(variances).ravel(), kind
    )


STATUS = STORE.types["sensor_msgs/msg/NavSatStatus"](status=0, service=1)


def test_a_fix_gives_its_standard_deviations():
    payload = read(fix(), FIX, "gnss").payload
    assert (payload.latitude, payload.longitude, payload.altitude) == (55.9, -3.3, 200.0)
    assert payload.sigma.tolist() == [2.0, 3.0, 4.0]
    assert payload.valid


def test_a_fix_of_unknown_accuracy_has_none():
    assert np.isnan(read(fix(kind=0), FIX, "gnss").payload.sigma).all()
    assert np.isnan(read(fix(variances=(-1, 4, 9)), FIX, "gnss").payload.sigma).tolist() == [
        True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [fix(status=-1), fix(status=-2), fix(latitude=NAN), fix(latitude=90.1), fix(latitude=1e300)],
)
def test_a_receiver_without_a_position_is_not_valid(message):
    assert not read(message, FIX, "gnss").payload.valid


def moving():
    return ros.geometry_msgs__msg__TwistWithCovariance(twist(12.5, -0.2), np.zeros(36))


def test_every_message_of_speed_gives_speed_and_yaw_rate():
    place = ros.geometry_msgs__msg__PoseWithCovariance(
        ros.geometry_msgs__msg__Pose(
            ros.geometry_msgs__msg__Point(0.0, 0.0, 0.0),
            ros.geometry_msgs__msg__Quaternion(0.0, 0.0, 0.0, 1.0),
        ),
        np.zeros(36),
    )
    messages = {
        TWIST: ros.geometry_msgs__msg__TwistStamped(HEAD, twist(12.5, -0.2)),
        TWIST_COVARIANCE: ros.geometry_msgs__msg__TwistWithCovarianceStamped(HEAD, moving()),
        ODOMETRY: ros.nav_msgs__msg__Odometry(HEAD, "base_link", place, moving()),
    }
    for name, message in messages.items():
        decoded = read(message, name, "can")
        assert (decoded.payload.speed, decoded.payload.yaw_rate) == (12.5, -0.2)
        assert decoded.frame == ("base_link" if name == ODOMETRY else "sensor")


# Radar

UUID = STORE.types["unique_identifier_msgs/msg/UUID"]


@pytest.mark.parametrize("rate", ["vrad", "vrel", "doppler", "Velocity", "range_rate"])
@pytest.mark.parametrize("power", ["amplitude", "RCS", "intensity", "power"])
def test_the_fields_of_a_radar_cloud_are_found_by_name(rate, power):
    columns = {**at([10, 20], [1, -2]), rate: ("<f4", [3, -4]), power: ("<f4", [30, 40])}
    payload = cloud(columns, "radar").payload
    assert payload.xy.tolist() == [[10, 1], [20, -2]]
    assert payload.range_rate.tolist() == [3, -4]
    assert payload.strength.tolist() == [30, 40]
    assert payload.ids.tolist() == [-1, -1]
    assert np.isnan(payload.velocity).all()
    assert np.isnan(payload.sigma).all()


def test_the_tracks_of_a_radar_have_velocities_and_numbers():
    columns = {
        **at([10, 20], [1, -2]),
        "vx": ("<f4", [3, 4]),
        "vy": ("<f4", [5, 6]),
        "objId": ("<f4", [52, NAN]),
    }
    payload = cloud(columns, "radar").payload
    assert payload.velocity.tolist() == [[3, 5], [4, 6]]
    assert payload.ids.tolist() == [52, -1]
    assert np.isnan(payload.range_rate).all()


def test_rows_in_the_sensor_or_nowhere_are_no_targets():
    columns = {**at([0, 10, NAN, 0], [0, 1, 2, 5]), "vrad": ("<f4", [1, 2, 3, 4])}
    payload = cloud(columns, "radar").payload
    assert payload.xy.tolist() == [[10, 1], [0, 5]]
    assert payload.range_rate.tolist() == [2, 4]
    assert cloud({**at([], [])}, "radar").payload.count == 0


def test_what_no_payload_can_hold_is_no_target_and_no_number():
    columns = {
        **{axis: ("<f8", [1e300, 1.0, 2.0]) for axis in "xyz"},
        "id": ("<f8", [1.0, 1e300, NAN]),
        "vrad": ("<f8", [1.0, 1e300, 3.0]),
    }
    payload = cloud(columns, "radar").payload
    assert payload.xy.tolist() == [[1, 1], [2, 2]]
    assert payload.ids.tolist() == [-1, -1]
    assert payload.range_rate.tolist() == [math.inf, 3]


def test_a_radar_scan_is_polar():
    make = STORE.types["radar_msgs/msg/RadarReturn"]
    returns = [make(10.0, math.pi / 2, 0.0, -3.0, 20.0), make(10.0, 0.0, math.pi / 3, 4.0, 30.0)]
    message = STORE.types[RADAR_SCAN](HEAD, returns)
    payload = read(message, RADAR_SCAN, "radar").payload
    assert payload.xy == pytest.approx(np.array([[0, 10], [5, 0]]), abs=1e-5)
    assert payload.range_rate.tolist() == [-3, 4]
    assert payload.strength.tolist() == [20, 30]
    assert read(STORE.types[RADAR_SCAN](HEAD, []), RADAR_SCAN, "radar").payload.count == 0


def test_radar_tracks_have_deviations_along_and_across_the_line_of_sight():
    vector = ros.geometry_msgs__msg__Vector3
    zero, six = vector(0.0, 0.0, 0.0), np.zeros(6, np.float32)
    spread = np.array([4, 0, 0, 9, 0, 0], np.float32)
    make = STORE.types["radar_msgs/msg/RadarTrack"]

    def track(x, y, number):
        uuid = UUID(np.full(16, number, np.uint8))
        point = ros.geometry_msgs__msg__Point(x, y, 0.0)
        return make(uuid, point, vector(1.0, 2.0, 0.0), zero, zero, 0, spread, six, six, six)

    message = STORE.types[RADAR_TRACKS](HEAD, [track(10.0, 0.0, 1), track(0.0, 10.0, 2)])
    payload = read(message, RADAR_TRACKS, "radar").payload
    assert payload.sigma == pytest.approx(np.array([[2, 3], [3, 2]]), abs=1e-5)
    assert payload.velocity.tolist() == [[1, 2], [1, 2]]
    assert 0 < payload.ids[0] < payload.ids[1]


@pytest.mark.parametrize(
    ("given", "ids"), [([1, 2, 3], [1, 2, 3]), ([0, 0, 0], [-1, -1, -1]), ([7, 0, 0], [7, -1, -1])]
)
def test_a_number_that_two_targets_share_is_none(given, ids):
    columns = {**at([10, 20, 30], [0, 0, 0]), "id": ("<u4", given)}
    assert cloud(columns, "radar").payload.ids.tolist() == ids


def test_a_polar_radar_image_stays_an_image():
    message = ros.sensor_msgs__msg__Image(HEAD, 1, 2, "mono8", 0, 2, np.zeros(2, np.uint8))
    assert isinstance(read(message, IMAGE, "radar").payload, Image)


def test_no_kind_of_source_reads_another_ones_messages():
    for kind, types in READERS.items():
        for name in {t for other in READERS.values() for t in other} - set(types):
            message = RawMessage(Channel(1, "/t", name, "cdr"), 1, 1, 0, b"")
            with pytest.raises(InputError, match="expected a CDR message of"):
                decode(message, kind)
