import numpy as np
import pytest

from avrt.errors import SpecError
from avrt.logs import open_log
from avrt.logs.decode import decode
from avrt.logs.merge import MergedLog
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec
from avrt.payload import Fix, Imu, PointCloud, Speed, Targets

START_NS = 1_700_000_000_000_000_000
NAN2 = np.full((2, 2), np.nan, np.float32)
TARGETS = Targets(
    np.array([[10, 1], [20, -2]], np.float32),
    NAN2,
    np.array([3, np.nan], np.float32),
    np.array([[1, 2], [3, 4]], np.float32),
    np.array([20, 30], np.float32),
    np.array([7, -1]),
)
TURN = np.array([0.0, 0.0, 0.6, 0.8])
SENSORS = {
    "imu": ("imu", Imu(np.array([0.0, 0.1, 9.8]), np.array([0.0, 0.0, 0.1]), TURN)),
    "bare_imu": ("imu", Imu(np.zeros(3), np.ones(3))),
    "fix": ("gnss", Fix(55.9, -3.3, 200.0, np.array([1.0, 2.0, 3.0]), valid=True)),
    "no_fix": ("gnss", Fix(0.0, 0.0, 0.0, np.full(3, np.nan), valid=False)),
    "speed": ("can", Speed(12.5, -0.1)),
    "bare_speed": ("can", Speed(-1.0)),
    "targets": ("radar", TARGETS),
}


def fields(payload):
    return [getattr(payload, name) for name in type(payload).__slots__]


@pytest.mark.parametrize("name", SENSORS)
def test_what_is_written_is_read_back(tmp_path, name):
    kind, payload = SENSORS[name]
    path = tmp_path / "log.mcap"
    with LogWriter(path) as log:
        log.add("/topic", "frame", START_NS, payload, START_NS + 5)
    with open_log(path) as log:
        (message,) = log.messages()
        decoded = decode(message, kind)
    assert (message.log_ns, decoded.header_ns, decoded.frame) == (START_NS + 5, START_NS, "frame")
    for written, read in zip(fields(payload), fields(decoded.payload), strict=True):
        assert (written is None) == (read is None)
        assert written is None or np.allclose(written, read, equal_nan=True)


def test_what_no_sensor_measures_is_refused(tmp_path):
    with (
        LogWriter(tmp_path / "log.mcap") as log,
        pytest.raises(SpecError, match="payload of its type, found dict"),
    ):
        log.add("/topic", "frame", START_NS, {"x": 1.0}, START_NS)


def test_a_sweep_keeps_what_it_has(tmp_path):
    xyz, intensity = np.ones((2, 3), np.float32), np.array([1, 2], np.float32)
    with LogWriter(tmp_path / "log.mcap") as log:
        log.add_cloud("/lidar", "frame", START_NS, xyz, intensity)
    with open_log(tmp_path / "log.mcap") as log:
        (payload,) = (decode(m, "lidar").payload for m in log.messages())
    assert isinstance(payload, PointCloud)
    assert payload.intensity.tolist() == [1, 2]


def test_a_log_that_cannot_be_created_is_the_users_to_mend(tmp_path):
    with pytest.raises(SpecError, match="cannot create the log"):
        LogWriter(tmp_path / "none" / "log.mcap")


def test_messages_in_another_encoding_are_refused_to_a_source(tmp_path):
    with LogWriter(tmp_path / "log.mcap") as log:
        log.add_raw("/imu", "sensor_msgs/msg/Imu", START_NS, b"{}", encoding="json")
    source = SourceSpec(name="imu", type="imu", topic="/imu")
    with (
        open_log(tmp_path / "log.mcap") as log,
        pytest.raises(SpecError, match="expected messages in CDR, found encoding 'json'"),
    ):
        MergedLog(log, [source])
