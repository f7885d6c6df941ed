"""Guards on recorded drives: silent where nothing is wrong, and in time where a camera is black."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
KITTI = DATA / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap"
COMMA = DATA / "comma2k19_example1"
RADIATE = DATA / "radiate_tiny_foggy" / "radiate_tiny_foggy.mcap"
TOPIC = "/camera/front_left/image/compressed"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


@pytest.fixture
def tool(monkeypatch):
    """Return a function that imports a module of tools/."""
    monkeypatch.syspath_prepend(ROOT / "tools")

    def find(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return find


@pytest.mark.parametrize(
    ("log", "pipeline", "least"), [(KITTI, "kitti_camera", 156), (COMMA, "comma", 13_000)]
)
def test_a_sound_log_raises_no_alarm(tool, log, pipeline, least):
    figures, counts, _ = tool("guard_alarms").passed(log, ROOT / "pipelines" / f"{pipeline}.yaml")
    assert counts.total() >= least
    assert len(figures.sensors) == len(counts)
    assert all(sensor.is_flawless for sensor in figures.sensors.values())


@pytest.mark.parametrize(("seed", "fault"), [(0, "blind"), (1, "stuck")])
def test_a_camera_that_fails_in_fog_is_out_with_the_third_image(tool, tmp_path, seed, fault):
    log = tmp_path / "log.mcap"
    spoil = tool("spoilt_camera").write_spoilt
    first, count, first_ns = spoil(RADIATE, log, TOPIC, seed, fault)
    figures, _, _ = tool("guard_alarms").passed(log, ROOT / "pipelines" / "radiate.yaml")
    sensor = figures.sensors["camera"]
    assert sensor.rejected == {fault: count - first}
    (out,) = [change for change in sensor.changes if change.state == fault]
    assert 130e6 < out.at_ns - first_ns < 140e6  # two periods of 15 Hz
    assert figures.sensors["lidar"].rejected == figures.sensors["radar_image"].rejected == {}
