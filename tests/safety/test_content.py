"""What is read of a payload, odd ones included."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image as PillowImage

from avrt.config.guard import DEFAULTS
from avrt.payload import Fix, Image, Imu, PointCloud, Speed, Targets
from avrt.safety.content import SECTORS, STRIDE, Content, inspect

CAMERA, LIDAR, RADAR = (DEFAULTS[kind] for kind in ("camera", "lidar", "radar"))
BLOCK = 25


def picture(width=320, height=240, seed=0):
    """Return (h, w, 3) uint8 with something everywhere."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def encoded(pixels, kind="jpeg"):
    file = io.BytesIO()
    PillowImage.fromarray(pixels).save(file, kind)
    return Image(kind, np.frombuffer(file.getvalue(), np.uint8))


def raw(pixels, kind="rgb8"):
    data = pixels if kind == "rgb8" else pixels[..., 0]
    return Image(kind, data.reshape(-1), pixels.shape[1], pixels.shape[0])


def cloud(points=1000, nonfinite=0, **more):
    xyz = np.random.default_rng(1).normal(size=(points, 3)).astype(np.float32)
    xyz[:nonfinite, 1] = np.nan
    return PointCloud(xyz, **more)


def content_of(payload, spec=CAMERA):
    return inspect(payload, spec)[1]


@pytest.mark.parametrize(
    ("make", "kind"), [(raw, "rgb8"), (raw, "mono8"), (encoded, "jpeg"), (encoded, "png")]
)
def test_an_image_is_seen_alike_however_it_is_sent(make, kind):
    pixels = np.repeat(np.repeat(picture(40, 30), 8, axis=0), 8, axis=1)
    content = content_of(make(pixels, kind))
    assert content.size == 320 * 240
    assert 100 < content.level < 155
    assert content.spread > 30
    assert len(content.spreads) == BLOCK
    assert content.share_uniform(CAMERA.contrast) == 0.0


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("make", [raw, encoded])
def test_a_uniform_image_has_no_spread(make, level):
    content = content_of(make(np.full((240, 320, 3), level, np.uint8)))
    assert (round(content.level), content.spread) == (level, 0.0)
    assert content.share_uniform(CAMERA.contrast) == 1.0


def test_a_covered_part_is_a_share_of_the_blocks():
    pixels = np.repeat(np.repeat(picture(40, 30), 8, axis=0), 8, axis=1)
    pixels[:, :128] = 30
    assert content_of(raw(pixels)).share_uniform(2.0) == 0.4


@pytest.mark.parametrize(
    "data", [b"", b"no image", encoded(picture()).data.tobytes()[:400],
             encoded(picture(), "png").data.tobytes()[:9000]]
)  # fmt: skip
def test_an_image_that_is_none_is_damaged(data):
    assert content_of(Image("jpeg", np.frombuffer(data, np.uint8))).damaged


def test_a_raw_image_of_another_size_is_damaged_and_an_empty_one_is_empty():
    assert content_of(Image("rgb8", np.zeros(10, np.uint8), 4, 4)).damaged
    assert content_of(Image("rgb8", np.zeros(0, np.uint8), 0, 4)).size == 0
    assert content_of(Image("mono8", np.zeros(0, np.uint8), 4, 0)).size == 0


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (4, 700)])
def test_a_tiny_image_has_no_more_blocks_than_pixels(size):
    content = content_of(raw(picture(*size)))
    assert content.size == size[0] * size[1]
    assert 1 <= len(content.spreads) <= BLOCK


def test_the_image_of_a_radar_is_not_decoded():
    content = content_of(Image("png", np.frombuffer(b"any", np.uint8)), RADAR)
    assert (content.level, content.damaged) == (None, False)


def test_equal_content_has_an_equal_fingerprint():
    large = picture(1500, 1000)
    changed = large.copy()
    changed.reshape(-1)[STRIDE * 1234] ^= 1
    prints = [content_of(raw(p)).fingerprint for p in (large, large.copy(), changed)]
    assert prints[0] == prints[1] != prints[2]
    clouds = [cloud(200_000), cloud(200_000), PointCloud(cloud(200_000).xyz + 1)]
    prints = [content_of(c, LIDAR).fingerprint for c in clouds]
    assert prints[0] == prints[1] != prints[2]


def test_a_view_of_a_message_has_the_fingerprint_of_its_points():
    wide = np.zeros((500, 8), np.float32)
    wide[:, :3] = cloud(500).xyz
    views = [PointCloud(wide[:, :3]), PointCloud(wide[:, :3].copy())]
    assert len({content_of(view, LIDAR).fingerprint for view in views}) == 1


def test_few_points_that_are_no_numbers_are_dropped_with_all_that_belongs_to_them():
    given = cloud(1000, 20, intensity=np.arange(1000, dtype=np.float32))
    payload, content = inspect(given, LIDAR)
    assert (content.size, content.nonfinite) == (1000, 20)
    assert payload.count == 980
    assert np.array_equal(payload.xyz, given.xyz[20:])
    assert np.array_equal(payload.intensity, given.intensity[20:])
    assert payload.seconds is None
    assert given.count == 1000


def test_a_cloud_of_numbers_is_the_same_object_and_a_bad_one_is_not_changed():
    for given in (cloud(), cloud(1000, 501), cloud(0)):
        assert inspect(given, LIDAR)[0] is given


def test_empty_cells_of_an_organised_cloud_are_no_fault_and_no_points():
    """Half of a sweep looks at the sky; a sensor that sees nothing at all has no points."""
    given = cloud(1000, shape=(10, 100))
    given.xyz[:700] = np.nan
    payload, content = inspect(given, LIDAR)
    assert (content.size, content.nonfinite) == (300, 0)
    assert payload is given
    given.xyz[700, 1] = np.nan
    assert content_of(given, LIDAR).nonfinite == 1
    given.xyz[:] = np.nan
    assert content_of(given, LIDAR).size == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_every_kind_of_no_number_is_found(value):
    given = cloud()
    given.xyz[3, 2] = value
    given.xyz[9, 0] = -value
    assert content_of(given, LIDAR).nonfinite == 2


def test_huge_numbers_are_numbers():
    given = cloud()
    given.xyz[:] = np.finfo(np.float32).max
    assert content_of(given, LIDAR).nonfinite == 0


def test_no_points_have_no_fingerprint():
    assert content_of(cloud(0), LIDAR) == Content(0)


def test_the_directions_of_a_cloud_are_counted():
    turns = np.radians(np.arange(0, 360, 0.25))
    ring = np.stack((np.cos(turns), np.sin(turns), 0 * turns), axis=1).astype(np.float32) * 9
    assert content_of(PointCloud(ring), LIDAR).sectors == SECTORS
    assert content_of(PointCloud(ring[: 4 * 90]), LIDAR).sectors == SECTORS // 4
    assert content_of(PointCloud(np.tile(ring, (50, 1))), LIDAR).sectors == SECTORS
    assert content_of(PointCloud(ring), replace(LIDAR, covered=0.0)).sectors is None
    assert content_of(PointCloud(ring[:359]), LIDAR).sectors is None
    ring[:, 0] = np.nan
    assert content_of(PointCloud(ring), LIDAR).sectors == 0


def test_points_of_another_time_are_dropped_like_those_that_are_no_numbers():
    seconds = np.linspace(-0.05, 0.05, 1000).astype(np.float32)
    assert content_of(cloud(seconds=seconds), LIDAR).nonfinite == 0
    seconds[10:20] += np.float32(2**32 / 1e9)
    seconds[20] = np.nan
    mended, content = inspect(cloud(nonfinite=3, seconds=seconds), LIDAR)
    assert content.nonfinite == 14
    assert mended.count == 1000 - 14
    assert np.abs(mended.seconds).max() <= 0.05


def test_a_radar_that_sees_nothing_is_never_stuck():
    def targets(count):
        two = np.ones((count, 2), np.float32)
        one = np.ones(count, np.float32)
        return Targets(two, two, one, two, one, np.arange(count))

    assert content_of(targets(0), RADAR).fingerprint is None
    assert content_of(targets(3), RADAR).fingerprint is not None


def test_small_readings_are_told_apart():
    def imu(x):
        return Imu(np.array([x, 0, 9.8]), np.zeros(3))

    def fix(x):
        return Fix(x, 8.0, 100.0, np.ones(3), valid=True)

    for make in (imu, fix, Speed):
        same, again, other = (content_of(make(x), RADAR).fingerprint for x in (1.0, 1.0, 1.5))
        assert same == again != other


def test_a_payload_of_the_users_own_is_let_through():
    assert inspect({"any": 1}, RADAR) == ({"any": 1}, Content())


def targets_of(positions):
    """Return radar targets at these positions, numbered."""
    xy = np.asarray(positions, np.float32)
    two, one = np.full((len(xy), 2), np.nan, np.float32), np.arange(len(xy), dtype=np.float32)
    return Targets(xy, two, one, two, one, np.arange(len(xy)), left_out=2)


def test_few_targets_that_are_nowhere_are_dropped_and_told():
    """What a radar does not measure is NaN too, and nothing is wrong with it."""
    given = targets_of([(1, 2), (math.nan, 2), (3, 4), (5, math.inf), (7, 8)])
    payload, content = inspect(given, RADAR)
    assert (content.size, content.nonfinite) == (5, 2)
    assert payload.ids.tolist() == [0, 2, 4]
    assert payload.xy.tolist() == [[1, 2], [3, 4], [7, 8]]
    assert payload.range_rate.tolist() == payload.strength.tolist() == [0, 2, 4]
    assert payload.left_out == 4
    many = targets_of([(1, 2), (math.nan, 2), (5, math.inf)])
    assert inspect(many, RADAR)[0] is many


@pytest.mark.parametrize("column", ["sigma", "range_rate", "velocity", "strength"])
def test_a_target_of_which_less_is_told_than_of_the_others_is_dropped(column):
    two, one = np.ones((5, 2), np.float32), np.ones(5, np.float32)
    given = Targets(two, two, one, two, one, np.arange(5))
    spoilt = getattr(given, column).copy()
    spoilt[3] = math.nan
    payload, content = inspect(replace(given, **{column: spoilt}), RADAR)
    assert (content.nonfinite, payload.ids.tolist(), payload.left_out) == (1, [0, 1, 2, 4], 1)
    whole = replace(given, **{column: np.full_like(spoilt, math.nan)})
    assert inspect(whole, RADAR)[0] is whole


@pytest.mark.parametrize(
    ("payload", "share"),
    [
        (Speed(math.nan), 1.0),
        (Speed(3.0), 0.0),
        (Fix(48.0, math.nan, 0.0, np.zeros(3), valid=True), 1.0),
        (Fix(math.nan, math.nan, math.nan, np.zeros(3), valid=False), 0.0),
        (Fix(48.0, 11.0, math.nan, np.zeros(3), valid=True), 0.0),
        (Imu(np.zeros(3), np.array([0.0, math.inf, 0.0])), 1.0),
        (Imu(np.zeros(3), np.zeros(3)), 0.0),
    ],
)
def test_a_reading_that_is_no_number_is_all_of_its_message(payload, share):
    assert content_of(payload, RADAR).share_nonfinite == share
