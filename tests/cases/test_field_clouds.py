"""Reports from the field of point clouds that were read shifted, swapped, or full of nothing."""

import numpy as np
import pytest

from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.model.guard import GuardSpec
from avrt.model.message import Message, Stamp
from avrt.model.spec import SourceSpec
from avrt.payload import Detections, EgoMotion
from avrt.safety.content import inspect
from avrt.stages.lidar.deskew import Deskew
from avrt.stages.lidar.detector import Detector
from cases import field

REPORTS = (
    "PCL-01", "PCL-03", "PCL-05", "PCL-07", "PCL-09", "PCL-11", "PCL-13", "PCL-15", "PCL-17",
)  # fmt: skip
LIDAR = SourceSpec(name="lidar", type="lidar", topic="/points")
FAST = EgoMotion(0.0, 0.0, 0.0, 14.0, 0.1, np.diag([0.01, 0.01]), ("can",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return field.generated(tmp_path_factory.mktemp("clouds"), "gen_a_pcl.py", REPORTS)


@pytest.fixture
def read(folder):
    """Return a function that reads the clouds of a report, and what was odd about them."""

    def clouds_of(report):
        (path,) = folder.glob(f"{report}_*.mcap")
        with open_log(path) as log:
            merged = MergedLog(log, [LIDAR])
            messages = list(merged)
        assert all(count.lost == 0 for count in merged.topics().values())
        return messages, merged.anomalies

    return clouds_of


def sent(message, payload=None):
    """Return a message as a stage gets it."""
    captured_ns = message.capture_ns
    stamp = Stamp(message.source, message.sequence, captured_ns, captured_ns, message.log_ns)
    return Message(stamp, message.payload if payload is None else payload)


@pytest.mark.parametrize("report", ["PCL-01", "PCL-03", "PCL-05"])
def test_points_are_exact_whatever_their_layout(folder, read, report):
    answer = field.answer(folder, report)
    (message,), odd = read(report)
    cloud = message.payload
    assert cloud.xyz.tolist() == answer["xyz"]
    assert cloud.xyz.dtype.isnative
    if "intensity" in answer:
        assert cloud.intensity.tolist() == answer["intensity"]
        assert cloud.intensity.dtype.isnative
    assert odd == []


def test_pcl_07_a_sweep_without_points_is_one_without_objects(folder, read):
    messages, odd = read("PCL-07")
    counts = [message.payload.count for message in messages]
    assert counts == field.answer(folder, "PCL-07")["points"]
    one, none, _ = (message.payload for message in messages)
    assert none.xyz.shape == (0, 3)
    assert (none.xyz.dtype, none.intensity.dtype) == (one.xyz.dtype, one.intensity.dtype)
    deskew, detector = Deskew(direction="clockwise"), Detector()
    for message in messages:
        still = deskew.process(sent(message), sent(message, FAST))
        assert still.xyz.shape == message.payload.xyz.shape
        assert detector.process(sent(message, still)) == Detections()
    assert odd == []


def test_pcl_09_points_that_are_no_numbers_are_counted_and_reach_no_output(folder, read):
    answer = field.answer(folder, "PCL-09")
    (message,), _ = read("PCL-09")
    kept, content = inspect(message.payload, GuardSpec(nonfinite=0.5))
    assert (content.size, content.nonfinite) == (10, answer["invalid"])
    assert kept.count == answer["valid"]
    assert np.isfinite(kept.xyz).all()
    assert kept.xyz[:, 0].tolist() == [0, 1, 3, 4, 6, 9]
    assert Detector().process(sent(message)) == Detector().process(sent(message, kept))


def test_pcl_11_padding_between_rows_is_left_out_and_the_rows_are_known(folder, read):
    answer = field.answer(folder, "PCL-11")
    (message,), odd = read("PCL-11")
    cloud = message.payload
    assert cloud.xyz[:, :2].tolist() == answer["xy"]
    assert cloud.grid.shape[:2] == tuple(answer["shape"])
    assert cloud.grid[2, 1].tolist() == [2, 1, 0]
    assert cloud.intensity.tolist() == [10 * row + column for row, column in answer["xy"]]
    assert odd == []


def test_pcl_13_places_on_a_map_keep_their_millimetres_and_points_their_times(folder, read):
    answer = field.answer(folder, "PCL-13")
    (message,), odd = read("PCL-13")
    cloud = message.payload
    local = cloud.xyz - cloud.xyz[0]
    assert np.diff(local[:, 0]) == pytest.approx(answer["dx_m"], abs=answer["tol_m"])
    assert len(set(cloud.seconds.tolist())) == answer["distinct_times"]
    assert np.diff(cloud.seconds) == pytest.approx(1e-4, abs=1e-6)
    assert Detector().process(sent(message)) == Detections()
    assert odd == []


def test_pcl_15_one_time_for_all_points_is_told_and_moves_none_of_them(folder, read):
    messages, odd = read("PCL-15")
    assert [(anomaly.kind, anomaly.count) for anomaly in odd] == [("point_times", 2)]
    for message in messages:
        moved = Deskew().process(sent(message), sent(message, FAST))
        assert moved.xyz.tolist() == message.payload.xyz.tolist()
        assert not moved.compensated
    assert field.answer(folder, "PCL-15") == {"deskew": "identity", "nan": 0}


def test_pcl_17_cells_that_were_not_measured_are_no_points_and_have_no_time(folder, read):
    answer = field.answer(folder, "PCL-17")
    (message,), odd = read("PCL-17")
    cloud = message.payload
    _, content = inspect(cloud, GuardSpec())
    assert cloud.grid.shape == (4, 32, 3)
    assert (content.size, content.nonfinite) == (answer["valid_points"], 0)
    assert content.size / cloud.count == answer["complete"]
    assert np.isnan(cloud.grid[:, [0, 3, 16, 19]]).all()
    assert np.isfinite(cloud.seconds).sum() == answer["valid_points"]
    first_ns = message.raw_header_ns + float(np.nanmin(cloud.seconds)) * 1e9
    assert first_ns == pytest.approx(answer["first_time_ns"], abs=1000)
    moved = Deskew().process(sent(message), sent(message, FAST))
    assert np.isfinite(moved.xyz).all(axis=1).sum() == answer["valid_points"]
    assert odd == []
