"""What ego motion must reach on real drives; `tools/score_ego.py` measures it.

A comma2k19 segment has poses to compare with. A KITTI sequence and a RADIATE log have none: there
sweeps far apart must fit where the motion puts them, and LiDAR and satellites must agree.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
COMMA = DATA / "comma2k19_example1"
KITTI = DATA / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap"
RADIATE = DATA / "radiate_tiny_foggy" / "radiate_tiny_foggy.mcap"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("score_ego", ROOT / "tools" / "score_ego.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("inputs", "speed", "yaw_rate"),
    [
        (("imu", "gnss", "speed"), 0.09, 0.003),
        (("imu", "speed"), 0.14, 0.003),
        (("imu", "gnss"), 0.28, 0.003),
        (("gnss",), 0.31, 0.007),
    ],
)
def test_comma_speed_and_yaw_rate(tool, inputs, speed, yaw_rate):
    found = tool.score(COMMA, inputs)
    assert found["speed_error"]["n"] > 500
    assert found["speed_error"]["rmse"] < speed
    assert found["yaw_rate_error"]["rmse"] < yaw_rate
    assert found["after_10_s"]["metres"]["p50"] < 1.3


def test_kitti_sweeps_fit_where_the_motion_puts_them(tool):
    found = tool.score_kitti(KITTI)
    for pair in found["apart"].values():
        assert pair["odometry"][:2] == pytest.approx(pair["direct"][:2], abs=0.05)
    assert found["speed"]["1.0"] == pytest.approx(2.3, abs=0.2)
    assert max(abs(found["speed"][at]) for at in ("6.0", "6.5", "7.0", "7.5")) < 0.15
    assert found["way_m"] == pytest.approx(8.0, abs=0.2)


def test_radiate_lidar_and_satellites_agree_but_for_their_clocks(tool):
    found = tool.score_radiate(RADIATE)
    assert found["speed_rms_at_shift"] < 0.3
    assert found["clock_shift_s"] == pytest.approx(65.7, abs=0.3)
    assert all(8.9 < speed < 13.2 for speed in found["satellites_and_imu"].values())
