"""What the radar detector must reach on a recorded foggy drive: 18 scans with annotated vehicles.

The boxes are in the pixels of a picture from above: the radar at (575.5, 575.5), ahead is up.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_typestore
from scipy.spatial import cKDTree

from avrt.model.message import Message, Stamp
from avrt.payload import EgoMotion, Image
from avrt.stages.mounting import Mount
from avrt.stages.radar.detector import CfarDetector

DATA = Path(__file__).parents[3] / "shared" / "data" / "radiate_tiny_foggy"
TOPIC = "/radar/navtech/polar/compressed"
PIXEL, CENTRE = 0.17361, 575.5
EGO = EgoMotion(0.0, 0.0, 0.0, 9.8, -0.025, np.zeros((2, 2)), ("gnss",))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


@pytest.fixture(scope="module")
def scans():
    store = get_typestore(Stores.ROS2_HUMBLE)
    found = []
    with (DATA / "radiate_tiny_foggy.mcap").open("rb") as file:
        for schema, _, raw in make_reader(file).iter_messages(topics=[TOPIC]):
            message = store.deserialize_cdr(raw.data, schema.name)
            at = message.header.stamp
            at_ns = at.sec * 10**9 + at.nanosec
            stamp = Stamp("radar", len(found), at_ns, at_ns, at_ns, "navtech")
            found.append(Message(stamp, Image("png", message.data)))
    return found


def in_box(xy, box):
    """Return whether any target lies in a box of the picture, half a metre wider on each side."""
    left, top, width, height = box["position"]
    u, v = CENTRE - xy[:, 1] / PIXEL, CENTRE - xy[:, 0] / PIXEL
    u, v = u - left - width / 2, v - top - height / 2
    turn = math.radians(-box["rotation"])
    along, aside = u * math.cos(turn) + v * math.sin(turn), v * math.cos(turn) - u * math.sin(turn)
    margin = 0.5 / PIXEL
    return ((np.abs(along) <= width / 2 + margin) & (np.abs(aside) <= height / 2 + margin)).any()


def test_every_annotated_vehicle_holds_a_target(scans):
    things = json.loads((DATA / "annotations.json").read_text())
    detector = CfarDetector()
    hits, boxes = 0, 0
    for index, scan in enumerate(scans):
        targets = detector.process(scan)
        assert 200 <= targets.count <= 512
        for box in filter(None, (thing["bboxes"][index] for thing in things)):
            left, top, width, height = box["position"]
            middle = math.hypot(left + width / 2 - CENTRE, top + height / 2 - CENTRE)
            if middle * PIXEL < 99:
                boxes += 1
                hits += in_box(targets.xy, box)
    assert boxes == 42
    assert hits >= 40


@pytest.mark.parametrize(("seconds", "least", "most"), [(1, 0.5, 1.0), (0, 0.0, 0.3)])
def test_targets_come_again_where_the_vehicle_has_driven(scans, seconds, least, most):
    """Half of them do within a metre once the vehicle's own way is taken into account."""
    detector = CfarDetector()
    ego = Message(scans[0].stamp, EGO)
    found = [detector.process(scan, ego).xy.astype(np.float64) for scan in scans]
    again, count = 0, 0
    for index in range(len(scans) - 1):
        passed = scans[index + 1].stamp.capture_ns - scans[index].stamp.capture_ns
        moved = Mount().moved_on(
            found[index], np.full(len(found[index]), seconds * passed / 1e9), EGO
        )
        again += np.count_nonzero(cKDTree(found[index + 1]).query(moved)[0] < 1.0)
        count += len(moved)
    assert least <= again / count <= most
