"""What the camera networks must find on real data: a KITTI sequence and five labelled frames.

The networks and the data are no part of avrt. `lead_distance.csv` tells how far ahead the rear of
the vehicle in front is; a box fits it if it has the size and the place of a car there (when it is
near, the image ends above the road). Limits leave one object of 28 for other versions of libraries.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_typestore

from avrt.payload import Image
from avrt.stages.camera.overlay import Detector
from avrt.stages.camera.road import RoadNetwork

DATA = Path(__file__).parents[3] / "shared" / "data"
SEQUENCE = DATA / "kitti_sfnd_seq"
LABELLED = DATA / "kitti_object_labelled" / "training"
MODELS = DATA / "models"
FOCAL, CENTRE_U, CENTRE_V = 721.54, 609.56, 172.85  # pixels: camera 2 of 2011_09_26
LIDAR_TO_CAMERA = 0.27  # metres ahead

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.exists(), reason="../shared/data is not here"),
]


def sequence():
    store = get_typestore(Stores.ROS2_HUMBLE)
    with (SEQUENCE / "kitti_sfnd_7p8s.mcap").open("rb") as file:
        for schema, _, raw in make_reader(file).iter_messages():
            if schema.name.endswith("CompressedImage"):
                yield Image("jpeg", store.deserialize_cdr(raw.data, schema.name).data)


def distances():
    with (SEQUENCE / "lead_distance.csv").open() as file:
        return [float(row["near_face_m"]) - LIDAR_TO_CAMERA for row in csv.DictReader(file)]


def frames():
    return sorted((LABELLED / "image_2").glob("*.png"))


def shown(sent, path):
    return sent(Image("png", np.fromfile(path, np.uint8)))


def fits(box, distance):
    """Tell whether a box may be the rear of a car straight ahead at a distance in metres."""
    left, _, right, bottom = box
    wide = 1.4 < (right - left) * distance / FOCAL < 1.8
    low = 1.0 < (bottom - CENTRE_V) * distance / FOCAL < 1.9  # bumper or road; the camera: 1.65 m
    return left < CENTRE_U < right and wide and low


def test_the_vehicle_ahead_is_found_once_in_each_frame(sent):
    detector = Detector(model=str(MODELS / "yolox_nano.onnx"), tiles=3)
    for image, distance in zip(sequence(), distances(), strict=True):
        found = detector.process(sent(image))
        boxes = zip(found.boxes.tolist(), found.labels, strict=True)
        ahead = [label for box, label in boxes if fits(box, distance)]
        assert ahead == ["car"]


def test_two_runs_are_equal_bit_for_bit(sent):
    first, second = (Detector(model=str(MODELS / "yolox_nano.onnx"), tiles=3) for _ in range(2))
    for path in frames():
        one, other = (stage.process(shown(sent, path)) for stage in (first, second))
        assert one.boxes.tobytes() == other.boxes.tobytes()
        assert one.scores.tobytes() == other.scores.tobytes()
        assert one.labels == other.labels


@pytest.mark.parametrize(
    ("model", "whole", "tiled"),
    [("yolox_nano.onnx", 11, 17), ("nanodet_m_320.onnx", 9, 17), ("FastestDet.onnx", 6, 14)],
)
def test_labelled_road_users_are_found_and_more_of_them_in_tiles(sent, model, whole, tiled):
    assert len(frames()) == 5
    for tiles, least in ((1, whole), (3, tiled)):
        detector = Detector(model=str(MODELS / model), tiles=tiles)
        hits = sum(recalled(detector.process(shown(sent, path)), path) for path in frames())
        assert hits >= least


def recalled(found, path):
    """Return how many labelled objects of 25 pixels or more a box of their kind overlaps."""
    kinds = {"Car": "car truck", "Van": "car truck", "Truck": "car truck"}
    kinds |= {"Pedestrian": "pedestrian cyclist", "Cyclist": "pedestrian cyclist"}
    hits = 0
    for line in (LABELLED / "label_2" / f"{path.stem}.txt").read_text().splitlines():
        kind, *values = line.split()
        box = np.array(values[3:7], np.float32)
        alike = [label in kinds.get(kind, "") for label in found.labels]
        low, high = np.maximum(found.boxes[:, :2], box[:2]), np.minimum(found.boxes[:, 2:], box[2:])
        shared = np.clip(high - low, 0, None).prod(axis=1)
        areas = (found.boxes[:, 2:] - found.boxes[:, :2]).prod(axis=1)
        iou = shared / (areas + (box[2:] - box[:2]).prod() - shared)
        hits += bool((iou[alike] >= 0.5).any()) and box[3] - box[1] >= 25
    return hits


def test_the_published_weights_see_the_road_ahead_and_none_in_the_sky(sent):
    stage = RoadNetwork(model=str(MODELS / "TwinLiteNet_best.pth"))
    mask = stage.process(sent(next(sequence())))
    assert mask.drivable[330:350, 250:400].mean() > 0.9
    assert mask.lane[230:320, 235:290].sum() > 100
    for seen in (mask.drivable, mask.lane):
        assert not seen[:180].any()
