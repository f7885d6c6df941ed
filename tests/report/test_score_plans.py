"""Who comes into the vehicle's way, and how soon the plan slows down for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from avrt.logs.truth import TrueScene
from avrt.model.frames import IDENTITY, Frames
from avrt.model.message import Message, Stamp
from avrt.payload import Box, Plan, PointCloud, TrueObject, Truth
from avrt.report.score.plans import score_plans
from avrt.report.score.scenes import Scenes, Sweeps, TrueWorld

MS = 1_000_000
CAR = TrueObject(1, "car", Box(20.0, 0.0, 0.0, 4.0, 2.0, 1.5, 0.0), 8.0, 0.0)


def scenes(*asides, x=20.0, label="car"):
    """Somebody at these distances aside, every 100 ms."""
    there = [
        TrueScene(
            k * 100 * MS,
            "vehicle",
            "/truth",
            Truth((replace(CAR, label=label, box=replace(CAR.box, x=x, y=y)),)),
        )
        for k, y in enumerate(asides)
    ]
    return Scenes(TrueWorld(there, 0), Sweeps(), Frames())


def plans(*accelerations, first_ms=10):
    """Plans published every 100 ms."""
    line = np.zeros(2)
    for k, acceleration in enumerate(accelerations):
        at_ns = (first_ms + 100 * k) * MS
        stamp = Stamp("plan", k, at_ns, at_ns, at_ns)
        push = np.array([0.0, acceleration])
        yield Message(
            stamp, Plan(line, np.zeros((2, 2)), line, line, push, line, "follow", None, None)
        )


def scored(asides, accelerations, **keys):
    return score_plans(list(plans(*accelerations)), scenes(*asides, **keys))


CUTS_IN = (3.5, 3.0, 2.5, 2.0, 1.0, 0.0, 0.0, 0.0)  # its side is 1 m nearer: it enters at 300 ms


def test_the_latency_is_from_the_entry_to_the_first_plan_that_slows_down():
    score = scored(CUTS_IN, (0, 0, 0, 0, 0, -1, -1, -1))
    (entry,) = score.entries
    assert (entry.id, entry.entered_ns, entry.distance) == (1, 300 * MS, 18.0)
    assert entry.latency_ns == 210 * MS
    assert score.latency.data()["max"] == 210 * MS


def test_what_was_foreseen_has_a_negative_latency():
    (entry,) = scored(CUTS_IN, (0, -1, -1, -1, -1, -1, -1, -1)).entries
    assert entry.latency_ns == (110 - 300) * MS


def test_a_plan_that_never_slows_down_has_none():
    (entry,) = scored(CUTS_IN, (0, 0, 0, 0, 0, -0.4, 1, 0)).entries
    assert (entry.decelerated_ns, entry.latency_ns) == (None, None)


@pytest.mark.parametrize(
    ("asides", "keys"),
    [
        ((0.0, 0.0, 0.0), {}),  # it was in the way from the beginning
        ((3.5, 3.0, 2.5), {}),  # it stays beside
        (CUTS_IN, {"x": 60.0}),  # too far ahead to matter
        (CUTS_IN, {"x": -20.0}),  # behind
        (CUTS_IN, {"label": "unknown"}),  # of no class
    ],
)
def test_nobody_else_enters(asides, keys):
    assert scored(asides, (0, 0, 0), **keys).entries == []


def test_messages_from_other_times_are_counted():
    score = score_plans(list(plans(0, 0, first_ms=5_000)), scenes(*CUTS_IN))
    assert (score.frames, score.without_truth, score.entries) == (0, 2, [])


def test_who_was_hidden_enters_when_it_can_be_seen():
    hidden = scenes(*CUTS_IN)
    box = np.array([[20.0, 0.0, 0.0]] * 5, np.float32)
    for at_ns in range(0, 800 * MS, 100 * MS):
        seen = box if at_ns >= 600 * MS else box + 99.0
        hidden.sweeps.add("lidar", at_ns, PointCloud(seen), IDENTITY, hidden.world)
    (entry,) = score_plans(list(plans(*([0] * 8))), hidden).entries
    assert entry.entered_ns == 600 * MS
