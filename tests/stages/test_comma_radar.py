"""A minute of recorded motorway traffic, followed by a production radar alone (comma2k19, MIT).

The radar gives some six of its own tracks every 50 ms: place and range rate. The vehicle's speed is
from its bus, its yaw rate from a phone's gyroscope.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from avrt.model.message import Message, Stamp
from avrt.payload import EgoMotion, Targets
from avrt.stages.fusion.tracker import Tracker

LOG = Path(__file__).parents[3] / "shared" / "data" / "comma2k19_example1" / "processed_log"
CYCLE_GAP = 0.02  # seconds: rows of one cycle share a stamp, or nearly

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LOG.exists(), reason="../shared/data is not here"),
]


def column(name):
    return np.load(LOG / name, allow_pickle=False)


def run():
    """Yield the radar's rows and the tracks of each cycle."""
    at, rows = column("CAN/radar/t"), column("CAN/radar/value")
    speed_at, speed = column("CAN/speed/t"), column("CAN/speed/value")[:, 0]
    gyro_at, gyro = column("IMU/gyro/t"), column("IMU/gyro/value")
    tracker = Tracker(radar_view=60.0)
    starts = [0, *(np.nonzero(np.diff(at) > CYCLE_GAP)[0] + 1).tolist(), len(at)]
    for k, (first, last) in enumerate(pairwise(starts)):
        t, some = at[last - 1], rows[first:last]
        at_ns = round((t - at[0]) * 1e9)
        stamp = Stamp("radar", k, at_ns, at_ns, at_ns, "radar")
        moving = float(np.interp(t, speed_at, speed)), -float(np.interp(t, gyro_at, gyro[:, 2]))
        ego = EgoMotion(0.0, 0.0, 0.0, *moving, np.eye(2), ("can", "imu"))
        radar, own = Message(stamp, targets(some)), Message(stamp, ego)
        yield some, tracker.process(radar=radar, ego=own)


def targets(rows):
    count = len(rows)
    return Targets(
        xy=rows[:, :2].astype(np.float32),
        sigma=np.full((count, 2), np.nan, np.float32),  # it does not tell
        range_rate=rows[:, 2].astype(np.float32),
        velocity=np.full((count, 2), np.nan, np.float32),
        strength=np.zeros(count, np.float32),
        ids=rows[:, 5].astype(np.int64),
    )


@pytest.fixture(scope="module")
def cycles():
    return list(run())


@pytest.fixture(scope="module")
def leads(cycles):
    """Return the nearest confirmed track in the own lane at each cycle, or None."""
    ahead = (
        [one for one in tracks.objects if one.confirmed and abs(one.box.y) < 1.5 and one.box.x > 0]
        for _, tracks in cycles
    )
    return [min(some, key=lambda one: one.box.x, default=None) for some in ahead]


def test_the_vehicle_ahead_is_followed_for_a_minute(leads):
    """The first one turns into the next lane after 8 s; then the one before it is the next."""
    assert len(leads) == 1200
    assert leads.count(None) <= 10
    assert len({one.id for one in leads if one is not None}) == 2


def test_it_is_where_the_radar_has_it(cycles, leads):
    apart = [
        min(abs(row[0] - lead.nearest_x) for row in rows)
        for (rows, _), lead in zip(cycles, leads, strict=True)
        if lead is not None and len(rows)
    ]
    assert np.median(apart) < 0.2
    assert np.percentile(apart, 95) < 1.0


def test_its_speed_over_ground_is_smooth(leads):
    speed = np.array([one.vx for one in leads if one is not None and one.id == leads[-1].id])
    assert np.abs(np.diff(speed)).max() < 1.0
    assert 5 < speed.min() < speed.max() < 22


def test_few_things_are_taken_for_vehicles(cycles):
    assert np.mean([len(tracks.objects) for _, tracks in cycles]) < 8
