"""Times of points against their directions: what spins, what does not, and times mixed up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.payload import PointCloud
from avrt.safety.turning import SAMPLE_LEAST, SPINNING, Spin, turning

RINGS, COLUMNS = 16, 300


def sweep(seed=0, *, offsets=0.0, begin=0.0, view=360.0, backwards=False):
    """Return the cloud of a LiDAR that spins; its lasers look `offsets` degrees to either side."""
    rng = np.random.default_rng(seed)
    part = np.repeat(np.linspace(0, 1, COLUMNS, endpoint=False), RINGS)
    aside = np.tile(np.radians(rng.uniform(-offsets, offsets, RINGS)), COLUMNS)
    azimuth = np.radians(begin + (-view if backwards else view) * part) + aside
    reach = rng.uniform(2, 80, len(part))
    xyz = np.stack((reach * np.cos(azimuth), reach * np.sin(azimuth), rng.normal(size=len(part))))
    return PointCloud(xyz.T.astype(np.float32), None, (0.1 * part).astype(np.float32))


def chosen(cloud, rows):
    return replace(cloud, xyz=cloud.xyz[rows], seconds=cloud.seconds[rows])


def mixed(cloud, seed=0):
    return replace(cloud, seconds=np.random.default_rng(seed).permutation(cloud.seconds))


SWEEPS = st.builds(
    sweep,
    st.integers(0, 999),
    offsets=st.floats(0, 8),  # an HDL-64E has 8 degrees
    begin=st.floats(-180, 180),
    view=st.floats(120, 720),
    backwards=st.booleans(),
)


@settings(max_examples=30, deadline=None)
@given(cloud=SWEEPS, seed=st.integers(0, 999))
def test_a_sweep_turns_in_whatever_order_its_points_are_stored_and_mixed_times_do_not(cloud, seed):
    stored = np.random.default_rng(seed).permutation(cloud.count)
    assert turning(chosen(cloud, stored)) >= SPINNING
    assert abs(turning(mixed(cloud, seed))) < 0.3


@settings(max_examples=30, deadline=None)
@given(cloud=SWEEPS, share=st.floats(0, 0.6), seed=st.integers(0, 999))
def test_points_that_are_missing_or_no_numbers_change_nothing(cloud, share, seed):
    hit = np.random.default_rng(seed).random(cloud.count) < share
    broken = cloud.xyz.copy()
    broken[hit] = np.nan
    assert turning(chosen(cloud, ~hit)) >= SPINNING
    assert turning(replace(cloud, xyz=broken)) >= SPINNING


def test_a_narrow_view_is_told_like_a_wide_one():
    cloud = sweep(view=25.0)
    assert turning(cloud) >= SPINNING
    assert abs(turning(mixed(cloud))) < 0.3


def test_an_image_of_columns_is_not_looked_at_in_one_column_only():
    rows = np.arange(RINGS * COLUMNS).reshape(COLUMNS, RINGS).T.reshape(-1)
    assert turning(chosen(sweep(), rows)) >= SPINNING


@pytest.mark.parametrize(
    "cloud",
    [
        replace(sweep(), seconds=None),
        replace(sweep(), seconds=np.zeros(RINGS * COLUMNS, np.float32)),
        replace(sweep(), seconds=np.full(RINGS * COLUMNS, np.nan, np.float32)),
        replace(sweep(), xyz=np.ones((RINGS * COLUMNS, 3), np.float32)),
        chosen(sweep(), slice(0, SAMPLE_LEAST - 1)),
        chosen(sweep(), slice(0, 0)),
    ],
    ids=["no times", "one time", "NaN", "one direction", "few points", "empty"],
)
def test_of_what_shows_no_turn_nothing_is_said(cloud):
    assert turning(cloud) is None


def test_a_scan_in_lines_is_not_taken_for_a_turn():
    part = np.arange(4800)
    azimuth = np.radians(np.where(part % 2, 60, -60) + 0.01 * part)  # two mirrors in turns
    xyz = np.stack((np.cos(azimuth), np.sin(azimuth), part * 0), axis=1).astype(np.float32)
    found = turning(PointCloud(xyz, None, (part / 48000).astype(np.float32)))
    assert found < SPINNING
    spin = Spin(0.5, 3)
    assert not any(spin.is_broken_by(value) for value in [found, 0.0, found] * 5)


def test_what_spins_is_believed_after_a_while_and_for_good():
    spin = Spin(0.5, 3)
    told = [spin.is_broken_by(x) for x in (1.0, 1.0, 0.4, 1.0, 1.0, None, 1.0)]
    assert told == [False] * 7
    assert [spin.is_broken_by(x) for x in (0.6, 0.49, None, 0.0, 1.0)] == [
        False, True, False, True, False,
    ]  # fmt: skip
