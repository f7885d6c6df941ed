"""Which activations are bad, and when they are too many."""

from types import SimpleNamespace

import pytest

from avrt.model.spec import RedundancySpec
from avrt.safety.windows import BAD_MOST, OPEN_MAX, WINDOW_ACTIVATIONS, Windows


@pytest.fixture
def windows():
    """Return windows over stages of one copy, `one`, and of three, `three`."""
    stages = [
        SimpleNamespace(name="one", redundancy=None),
        SimpleNamespace(name="three", redundancy=RedundancySpec(copies=3)),
    ]
    return Windows(SimpleNamespace(stages=stages))


def count(windows, stage, *activations):
    """Count activations, each a text of the fates of its jobs: `x` is bad."""
    for release_ns, jobs in enumerate(activations):
        for job in jobs:
            windows.count(stage, release_ns, is_bad=job == "x")


@pytest.mark.parametrize(
    ("activations", "are_many"),
    [
        ("xx", False),
        ("xxx", True),
        ("x" + "." * (WINDOW_ACTIVATIONS - 3) + "xx", True),
        ("x" + "." * (WINDOW_ACTIVATIONS - 2) + "xx", False),
    ],
)
def test_three_bad_ones_of_the_last_ten_are_many(windows, activations, are_many):
    count(windows, "one", *activations)
    assert windows.are_many is are_many


@pytest.mark.parametrize(
    ("jobs", "are_many"),
    [("..x", False), ("x..", False), (".x.", False), (".xx", True), ("xx.", True), ("xxx", True)],
)
def test_copies_are_bad_when_too_few_are_left_to_agree(windows, jobs, are_many):
    count(windows, "three", *[jobs] * BAD_MOST)
    assert windows.are_many is are_many


def test_copies_of_different_releases_are_not_added_up(windows):
    count(windows, "three", "x", *["..."] * 20, "x", "x", "x")
    assert not windows.are_many


def test_releases_that_are_never_settled_are_forgotten(windows):
    count(windows, "three", *["x"] * (OPEN_MAX + 1))
    windows.count("three", 0, is_bad=True)
    windows.count("three", OPEN_MAX, is_bad=True)
    windows.count("three", OPEN_MAX - 1, is_bad=True)
    assert not windows.are_many
    windows.count("three", OPEN_MAX - 2, is_bad=True)
    assert windows.are_many
