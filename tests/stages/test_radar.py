"""Reflectors in generated radar pictures are found where they are; bad pictures are refused."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as PillowImage

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.model.message import Message, Stamp
from avrt.payload import EgoMotion, Image
from avrt.stages.radar.detector import CfarDetector

BINS, AZIMUTHS = 120, 90
METRES, DEGREES, BEAM = 0.5, 4.0, 8.0
SMALL = {
    "bins": BINS,
    "azimuths": AZIMUTHS,
    "range_resolution": METRES,
    "beam_width": BEAM,
    "range_max": 60.0,
    "window": 8,
}


def picture(reflectors=(), seed=0, noise_db=20.0, shape=(BINS, AZIMUTHS)):
    """Return (R, A) uint8 in half decibels.

    Args:
        reflectors: of each its metres, degrees to the right of straight ahead, and dB.
        seed: of the noise.
        noise_db: its mean power.
        shape: rows and columns.
    """
    bins, azimuths = shape
    power = np.random.default_rng(seed).exponential(10 ** (noise_db / 10), shape)
    distance = (np.arange(bins) + 0.5)[:, None] * METRES
    turned = (np.arange(azimuths) + 0.5)[None, :] * (360 / azimuths)
    for metres, degrees, decibel in reflectors:
        aside = (turned - degrees + 180) % 360 - 180
        shape_db = -3 * (2 * aside / BEAM) ** 2 - 12 * ((distance - metres) / METRES) ** 2
        power += 10 ** ((decibel + shape_db) / 10)
    return np.clip(np.round(20 * np.log10(np.maximum(power, 1))), 0, 255).astype(np.uint8)


def sent(level, frame="radar"):
    image = Image("mono8", level.reshape(-1), level.shape[1], level.shape[0])
    return Message(Stamp("radar", 0, 0, 0, 0, frame), image)


def moving(speed, yaw_rate=0.0):
    ego = EgoMotion(0.0, 0.0, 0.0, speed, yaw_rate, np.zeros((2, 2)), ("wheels",))
    return Message(Stamp("ego", 0, 0, 0, 0, "base_link"), ego)


def found(level, ego=None, **params):
    return CfarDetector(**(SMALL | params)).process(sent(level), ego)


@given(st.floats(10.0, 50.0), st.floats(0.0, 359.9), st.integers(0, 99))
@settings(max_examples=30)
def test_a_reflector_is_found_within_half_a_cell_and_half_a_beam(metres, degrees, seed):
    targets = found(picture([(metres, degrees, 60.0)], seed))
    best = int(np.argmax(targets.strength))
    x, y = targets.xy[best].tolist()
    assert math.hypot(x, y) == pytest.approx(metres, abs=METRES / 2)
    assert abs((-math.degrees(math.atan2(y, x)) - degrees + 180) % 360 - 180) < BEAM / 2
    assert targets.strength[best] == pytest.approx(60.0, abs=4.0)


def test_one_reflector_is_one_target_on_both_sides_of_the_seam():
    for degrees in (358.0, 359.9, 0.0, 1.0):
        targets = found(picture([(30.0, degrees, 60.0)]), pfa=1e-8)
        assert targets.count == 1
        assert targets.xy[0] == pytest.approx(
            [30.0, -30.0 * math.sin(math.radians(degrees))], abs=1.0
        )


@pytest.mark.parametrize(
    ("direction", "first", "x", "y"),
    [
        ("clockwise", 0.0, 0.0, -30.0),
        ("counterclockwise", 0.0, 0.0, 30.0),
        ("clockwise", 90.0, 30.0, 0.0),
        ("counterclockwise", 90.0, -30.0, 0.0),
    ],
)
def test_columns_turn_as_told(direction, first, x, y):
    level = picture([(30.0, 90.0, 60.0)])
    targets = found(level, pfa=1e-8, direction=direction, azimuth_first=first)
    assert targets.xy[0] == pytest.approx([x, y], abs=1.0)


def test_a_target_says_what_the_sensor_can_tell():
    targets = found(picture([(30.0, 90.0, 60.0)]), pfa=1e-8)
    assert targets.sigma[0] == pytest.approx(
        [METRES / 12**0.5, 30.0 * math.radians(BEAM) / 12**0.5], abs=0.05
    )
    assert np.isnan(targets.range_rate).all()
    assert np.isnan(targets.velocity).all()
    assert targets.ids.tolist() == [-1]
    assert targets.left_out == 0


def test_two_reflectors_in_line_are_two_targets():
    targets = found(picture([(30.0, 90.0, 70.0), (33.0, 90.0, 50.0)]), pfa=1e-8)
    assert np.hypot(*targets.xy.T) == pytest.approx([30.0, 33.0], abs=METRES)


def test_only_noise_shows_next_to_nothing():
    assert found(picture(), pfa=1e-8).count == 0


def test_targets_come_nearest_first_and_the_others_are_counted():
    ring = [(12.0 + 2 * i, 36.0 * i, 60.0) for i in range(10)]
    level = picture(ring)
    everything = found(level, pfa=1e-8)
    capped = found(level, pfa=1e-8, targets_max=4)
    assert everything.count == 10
    assert np.array_equal(capped.xy, everything.xy[:4])
    assert (np.diff(np.hypot(*everything.xy.T)) >= 0).all()
    assert capped.left_out == 6


def test_range_limits_hold():
    level = picture([(12.0, 10.0, 60.0), (30.0, 100.0, 60.0), (48.0, 200.0, 60.0)])
    targets = found(level, pfa=1e-8, range_min=20.0, range_max=40.0)
    assert np.hypot(*targets.xy.T) == pytest.approx([30.0], abs=METRES)


def test_the_own_vehicle_is_no_target_but_what_lies_beside_it_is():
    level = picture([(12.0, 180.0, 60.0), (12.0, 90.0, 60.0)])
    targets = found(level, pfa=1e-8, own_vehicle=[-14.0, 2.0, -2.0, 2.0])
    assert targets.xy[0] == pytest.approx([0.0, -12.0], abs=1.0)
    assert targets.count == 1
    assert found(level, pfa=1e-8, own_vehicle=[0.0, 0.0, 0.0, 0.0]).count == 2


def test_what_was_seen_early_in_the_scan_has_come_nearer_by_its_stamp():
    level = picture([(30.0, 10.0, 60.0), (30.0, 350.0, 60.0)])
    at_rest, driven = found(level, pfa=1e-8), found(level, moving(10.0), pfa=1e-8)
    right, left = driven.xy[driven.xy[:, 1] < 0][0], driven.xy[driven.xy[:, 1] > 0][0]
    assert at_rest.xy[:, 0] == pytest.approx([29.5, 29.5], abs=METRES)
    assert right[0] == pytest.approx(29.5 - 2.43, abs=METRES)
    assert left[0] == pytest.approx(29.5 - 0.07, abs=METRES)


def test_a_motion_that_is_not_known_moves_nothing():
    level = picture([(30.0, 10.0, 60.0)])
    doubted = EgoMotion(0.0, 0.0, 0.0, 10.0, 0.0, np.diag([25.0, 0.0]), ())
    told = Message(Stamp("ego", 0, 0, 0, 0, "base_link"), doubted)
    assert found(level, told, pfa=1e-8).xy.tolist() == found(level, pfa=1e-8).xy.tolist()


def test_stamps_of_the_start_move_the_other_way():
    level = picture([(30.0, 10.0, 60.0), (30.0, 350.0, 60.0)])
    driven = found(level, moving(10.0), pfa=1e-8, stamped="start")
    right, left = driven.xy[driven.xy[:, 1] < 0][0], driven.xy[driven.xy[:, 1] > 0][0]
    assert right[0] == pytest.approx(29.5 + 0.07, abs=METRES)
    assert left[0] == pytest.approx(29.5 + 2.43, abs=METRES)


def test_turning_left_moves_the_world_to_the_right():
    level = picture([(30.0, 4.0, 60.0)])
    before, after = found(level, pfa=1e-8), found(level, moving(0.0, 0.4), pfa=1e-8)
    turned = math.atan2(*after.xy[0][::-1]) - math.atan2(*before.xy[0][::-1])
    assert turned == pytest.approx(-0.4 * 0.25, abs=0.005)


def test_the_vehicles_motion_is_turned_into_the_axes_of_the_radar():
    backwards = (-1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    detector = CfarDetector(**SMALL, pfa=1e-8, vehicle_frame="base_link")
    detector.calibrate(Frames([TransformSpec(parent="base_link", child="radar", matrix=backwards)]))
    targets = detector.process(sent(picture([(30.0, 4.0, 60.0)])), moving(10.0))
    assert targets.xy[0, 0] == pytest.approx(29.9 + 2.5, abs=METRES)


def test_a_radar_of_an_unknown_frame_is_a_fault_once_the_vehicles_frame_is_told():
    detector = CfarDetector(**SMALL, vehicle_frame="base_link")
    with pytest.raises(DataFault, match="base_link"):
        detector.process(sent(picture()), moving(1.0))


def test_png_and_raw_pictures_are_the_same():
    level = picture([(30.0, 90.0, 60.0)])
    file = io.BytesIO()
    PillowImage.fromarray(level).save(file, "png")
    data = np.frombuffer(file.getvalue(), np.uint8)
    targets = CfarDetector(**SMALL).process(Message(sent(level).stamp, Image("png", data)))
    assert np.array_equal(targets.xy, found(level).xy)


def test_a_damaged_picture_is_a_fault():
    file = io.BytesIO()
    PillowImage.fromarray(picture()).save(file, "png")
    data = np.frombuffer(file.getvalue()[:2000], np.uint8)
    with pytest.raises(DataFault, match="damaged_image"):
        CfarDetector(**SMALL).process(Message(sent(picture()).stamp, Image("png", data)))


@pytest.mark.parametrize("shape", [(AZIMUTHS, BINS), (BINS, AZIMUTHS - 1), (1, 1)])
def test_a_picture_of_another_size_is_a_fault_that_names_both(shape):
    level = np.arange(shape[0] * shape[1]).reshape(shape).astype(np.uint8)
    expected = f"120 rows of 90 azimuths, found {shape[0]} rows of {shape[1]}"
    with pytest.raises(DataFault, match=expected):
        found(level)


@pytest.mark.parametrize("value", [0, 255])
def test_a_picture_without_noise_was_not_measured(value):
    with pytest.raises(DataFault, match="90 of 90"):
        found(np.full((BINS, AZIMUTHS), value, np.uint8))


def test_a_scan_that_lacks_a_sector_is_refused_but_a_few_azimuths_are_not():
    level = picture([(30.0, 300.0, 60.0)])
    level[:, :9] = 0
    assert found(level, pfa=1e-8).count == 1
    level[:, :10] = 0
    with pytest.raises(DataFault, match="10 of 90"):
        found(level)


def test_a_picture_that_is_bright_everywhere_stays_bounded():
    level = np.random.default_rng(0).integers(0, 256, (BINS, AZIMUTHS)).astype(np.uint8)
    targets = found(level, pfa=0.4, cells_min=1, targets_max=50)
    assert targets.count == 50
    assert targets.left_out > 0


def test_warming_changes_nothing():
    level = picture([(30.0, 90.0, 60.0)])
    detector = CfarDetector(**SMALL)
    detector.warm()
    assert np.array_equal(detector.process(sent(level)).xy, found(level).xy)


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"pfa": 0.0}, "pfa"),
        ({"method": "mean"}, "method"),
        ({"direction": "left"}, "direction"),
        ({"stamped": "middle"}, "stamped"),
        ({"bins": 36}, "bins"),
        ({"azimuths": 2}, "azimuths"),
        ({"window": 0}, "window"),
        ({"beam_width": 90.0}, "beam_width"),
        ({"bins": 0}, "bins"),
        ({"cells_min": 0}, "cells_min"),
        ({"targets_max": 0}, "targets_max"),
        ({"range_min": 100.0}, "range_min"),
        ({"own_vehicle": [1.0, 2.0]}, "own_vehicle"),
        ({"own_vehicle": [2.0, 1.0, 0.0, 0.0]}, "own_vehicle"),
        ({"own_vehicle": ["a", 1.0, 0.0, 0.0]}, "own_vehicle"),
        ({"decibel": -0.5}, "decibel"),
        ({"azimuth_first": math.nan}, "azimuth_first"),
    ],
)
def test_impossible_parameters_are_refused_by_name(params, key):
    with pytest.raises(SpecError) as caught:
        CfarDetector(**params)
    assert caught.value.key == (key,)
