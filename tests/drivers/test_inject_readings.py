"""What goes wrong in front of a sensor: what each kind makes of a reading, and of nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from avrt.config.injections import ONLY_OF
from avrt.drivers.inject.readings import _drawn, misread
from avrt.model.campaign import Injection
from avrt.payload import Image, PointCloud, Speed, Targets

EDGE = 30.0


def fault(kind, **keys):
    return Injection(place="source", target="a", kind=kind, frame=0, **keys)


def rng():
    return np.random.default_rng(3)


def made(payload, kind, **keys):
    return misread(payload, fault(kind, **keys), rng())


@pytest.fixture
def image():
    pixels = np.random.default_rng(0).integers(1, 256, (20, 30, 3), np.uint8)
    return Image("bgr8", pixels.reshape(-1), 30, 20)


@pytest.fixture
def cloud():
    xyz = np.random.default_rng(1).normal(0, 20, (2000, 3)).astype(np.float32)
    seconds = np.linspace(0, 0.1, 2000, dtype=np.float32)
    return PointCloud(xyz, np.arange(2000, dtype=np.float32), seconds)


@pytest.fixture
def targets():
    two, one = np.ones((3, 2), np.float32), np.ones(3, np.float32)
    return Targets(two, two, one, two, one, np.arange(3), left_out=2)


@pytest.mark.parametrize("level", [0, 120, 255])
def test_a_filled_image_has_one_grey_level(image, level):
    found = made(image, "fill", by=float(level))
    assert (found.encoding, found.width_px, found.height_px) == ("bgr8", 30, 20)
    assert (found.pixels() == level).all()


def test_a_covered_image_is_black_below(image):
    found = made(image, "cover", share=0.4).pixels()
    assert (found[12:] == 0).all()
    assert (found[:12] == image.pixels()[:12]).all()


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "mono8", "jpeg", "png"])
def test_a_broken_image_keeps_its_encoding(image, encoding):
    pixels = np.repeat(image.pixels()[..., 1:2], 3, axis=2)
    blank = Image("png", np.zeros(0, np.uint8)) if encoding == "png" else image
    before = replace(_drawn(pixels, replace(blank, encoding=encoding)), info="kept")
    found = made(before, "shrink")
    assert (found.encoding, found.info) == (encoding, "kept")
    assert found.pixels().shape == (10, 15, 3)
    if encoding != "jpeg":
        assert (found.pixels() == pixels[::2, ::2]).all()


@pytest.mark.parametrize("count", [0, 1, 1999, 2000, 5000])
def test_a_cloud_has_as_many_points_as_are_asked_for(cloud, count):
    found = made(cloud, "points", by=float(count))
    assert found.count == len(found.intensity) == len(found.seconds) == count
    assert (found.intensity == np.arange(count) % 2000).all()
    empty = PointCloud(np.zeros((0, 3), np.float32))
    assert made(empty, "points", by=5.0).count == 0  # nothing to have again


def test_points_beyond_an_edge_lie_on_it(cloud):
    found = made(cloud, "edge", by=EDGE)
    before, after = (np.hypot(c.xyz[:, 0], c.xyz[:, 1]) for c in (cloud, found))
    assert (before > EDGE).sum() > 100
    assert np.allclose(after[before > EDGE], EDGE, rtol=1e-6)
    assert len(np.unique(after[before > EDGE])) > 2
    assert (found.xyz[before <= EDGE] == cloud.xyz[before <= EDGE]).all()
    assert (found.xyz[:, 2] == cloud.xyz[:, 2]).all()


def test_a_turned_cloud_keeps_its_distances(cloud):
    found = made(cloud, "turn", by=90.0)
    assert np.allclose(found.xyz[:, 0], -cloud.xyz[:, 1], atol=1e-4)
    assert np.allclose(found.xyz[:, 1], cloud.xyz[:, 0], atol=1e-4)


def test_a_missing_sector_is_one(cloud):
    found = made(cloud, "sector", share=0.2)
    left = np.sort(np.arctan2(found.xyz[:, 1], found.xyz[:, 0]))
    gaps = np.diff(left, append=left[0] + 2 * np.pi)
    assert gaps.max() == pytest.approx(0.4 * np.pi, abs=0.05)
    assert np.sort(gaps)[-2] < 0.1
    assert found.count == len(found.intensity) == len(found.seconds)


def test_shuffled_times_are_the_same_times(cloud):
    found = made(cloud, "shuffle")
    assert (np.sort(found.seconds) == cloud.seconds).all()
    assert (found.seconds != cloud.seconds).any()
    assert found.xyz is cloud.xyz


def test_a_share_of_the_times_is_off_by_four_seconds(cloud):
    found = made(cloud, "underflow", share=0.1)
    off = found.seconds - cloud.seconds
    assert set(np.round(off, 3)) == {0, np.float32(4.295)}
    assert 100 < (off > 0).sum() < 300


def test_ghosts_come_on_top(targets):
    found = made(targets, "ghosts", by=50.0)
    assert found.count == 53
    assert found.left_out == 2
    assert (found.xy[:3] == targets.xy).all()
    assert {column.dtype for column in (found.xy, found.range_rate)} == {np.dtype(np.float32)}
    assert (found.ids[3:] == -1).all()


@pytest.mark.parametrize("kind", sorted(ONLY_OF))
def test_readings_of_other_sensors_stay_as_they_are(kind, image, cloud, targets):
    own = {"fill": image, "cover": image, "shrink": image, "ghosts": targets}.get(kind, cloud)
    for payload in (image, cloud, targets, Speed(1.0, 0.0)):
        changed = made(payload, kind, by=7.0, share=0.5) is not payload
        assert changed == (payload is own)


@pytest.mark.parametrize("kind", ["fill", "cover"])
@pytest.mark.parametrize("encoding", ["png", "16UC1"])
def test_what_is_no_picture_stays_as_it_is(kind, encoding):
    given = Image(encoding, np.zeros(8, np.uint8), 2, 2)
    assert made(given, kind, by=7.0, share=0.5) is given


def test_without_times_there_are_none_to_spoil(cloud):
    bare = PointCloud(cloud.xyz)
    assert made(bare, "shuffle").seconds is None
    assert made(bare, "underflow").seconds is None
