"""CLEAR, Identity and HOTA are TrackEval's; shares and calibration are their definitions."""

# ruff: noqa: E501 - a row of reference values is one line

from __future__ import annotations

import sys
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from sequences import by_trackeval, sequence

from avrt.metrics.accuracy.clear import Clear, clear
from avrt.metrics.accuracy.existence import brier, calibration
from avrt.metrics.accuracy.hota import Hota, hota
from avrt.metrics.accuracy.identity import Identity, identity
from avrt.metrics.accuracy.matching import Frame, matched, nearness, overlap
from avrt.metrics.accuracy.share import Share, spread

ROOT = Path(__file__).parents[2]
KITTI = ROOT.parent / "shared/data/kitti_tracking_text"
# TrackEval 1.3.0, by seed: hits, missed, false, switches, fragments; MOTA, MOTP, IDF1, HOTA, DetA, AssA, LocA
REFERENCE = {
    1: (
        (145, 49, 37, 13, 58),
        0.489690722,
        0.789728016,
        0.585106383,
        0.406881700,
        0.491208680,
        0.337345140,
        0.818845024,
    ),
    2: (
        (147, 40, 49, 13, 49),
        0.454545455,
        0.797128171,
        0.553524804,
        0.387536645,
        0.513859143,
        0.293065670,
        0.818624812,
    ),
    3: (
        (150, 40, 43, 12, 54),
        0.500000000,
        0.797802657,
        0.584856397,
        0.403671272,
        0.507878519,
        0.321387726,
        0.815454844,
    ),
}


def found(frames):
    counts, _ = clear(frames)
    names = ("hits", "missed", "false", "switches", "fragments")
    higher = hota(frames)
    return (
        tuple(getattr(counts, name) for name in names),
        counts.mota,
        counts.motp,
        identity(frames).idf1,
        higher.hota,
        higher.det_a,
        higher.ass_a,
        higher.loc_a,
    )


def of_trackeval(results):
    clear_, higher = results["CLEAR"], results["HOTA"]
    names = ("CLR_TP", "CLR_FN", "CLR_FP", "IDSW", "Frag")
    return (
        tuple(int(clear_[name]) for name in names),
        clear_["MOTA"],
        clear_["MOTP"],
        results["Identity"]["IDF1"],
        *(float(np.mean(higher[name])) for name in ("HOTA", "DetA", "AssA", "LocA")),
    )


def equal(ours, theirs):
    return ours[0] == theirs[0] and ours[1:] == pytest.approx(theirs[1:], abs=1e-9)


@pytest.mark.parametrize("seed", REFERENCE)
def test_the_figures_are_those_that_trackeval_gave(seed):
    assert equal(found(sequence(seed)), REFERENCE[seed])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_sequences_score_as_in_trackeval(seed):
    pytest.importorskip("trackeval", reason="trackeval is not installed")
    frames = sequence(seed, frames=5 + seed % 40)
    assert equal(found(frames), of_trackeval(by_trackeval(frames)[1]))
    counts, theirs = clear(frames)[0], by_trackeval(frames)[1]["CLEAR"]
    assert (counts.mostly_tracked, counts.partly_tracked, counts.mostly_lost) == (
        theirs["MT"],
        theirs["PT"],
        theirs["ML"],
    )


@pytest.mark.slow
@pytest.mark.skipif(not KITTI.exists(), reason="../shared/data is not here")
def test_recorded_kitti_tracks_score_as_in_trackeval_together():
    pytest.importorskip("trackeval", reason="trackeval is not installed")
    sys.path.append(str(ROOT / "tools"))
    from score_tracking import read_labels  # noqa: PLC0415

    ours, theirs, metrics = [], {}, None
    for path in sorted((KITTI / "label_02").glob("*.txt")):
        true = read_labels(path)
        tracks = (read_labels(KITTI / "tracker_results" / path.name) + [{}] * len(true))[
            : len(true)
        ]
        frames = [
            Frame(
                tuple(then),
                tuple(now),
                nearness(
                    [(b.x, b.y) for _, b in then.values()], [(b.x, b.y) for _, b in now.values()]
                ),
            )
            for then, now in zip(true, tracks, strict=True)
        ]
        ours.append((clear(frames)[0], identity(frames), hota(frames)))
        metrics, theirs[path.stem] = by_trackeval(frames)
    counts, ids, higher = (reduce(add, part) for part in zip(*ours, strict=True))
    whole = {
        name: metric.combine_sequences({k: r[name] for k, r in theirs.items()})
        for name, metric in metrics.items()
    }
    assert counts.mota == pytest.approx(whole["CLEAR"]["MOTA"], abs=1e-9)
    assert counts.switches == whole["CLEAR"]["IDSW"] > 0
    assert ids.idf1 == pytest.approx(whole["Identity"]["IDF1"], abs=1e-9)
    for name, value in (("HOTA", higher.hota), ("AssA", higher.ass_a), ("LocA", higher.loc_a)):
        assert value == pytest.approx(float(np.mean(whole["HOTA"][name])), abs=1e-9)


def test_sequences_of_nothing_add_nothing():
    nothing = [Frame((), (), np.zeros((0, 0)))] * 3
    assert clear(nothing) == (Clear(), [[], [], []])
    assert identity(nothing) == Identity()
    assert hota(nothing).hota == Hota().hota == 0


def test_only_misses_and_only_false_tracks():
    frames = [Frame((1,), (), np.zeros((1, 0))), Frame((), (5,), np.zeros((0, 1)))]
    counts, pairs = clear(frames)
    assert (counts.missed, counts.false, counts.mota, pairs) == (1, 1, -1.0, [[], []])
    assert identity(frames) == Identity(0, 1, 1)
    assert hota(frames).det_a == 0


def test_nearness_ends_at_its_reach():
    near = nearness([(0.0, 0.0)], [(0.0, 0.0), (2.0, 0.0), (0.0, 5.0)])
    assert near.tolist() == [[1.0, 0.5, 0.0]]
    assert matched(near) == [(0, 0)]
    assert matched(near[:, 1:]) == [(0, 0)]
    assert matched(near[:, 2:]) == []


def test_overlap_is_that_of_areas():
    boxes = np.array([[0.0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 5, 9]])
    assert overlap(boxes[:1], boxes).tolist() == [[1.0, 1 / 7, 0.0]]


def test_wilsons_interval():
    low, high = Share(18, 28).interval
    assert (round(low, 3), round(high, 3)) == (0.458, 0.793)
    assert Share(0, 0).interval == (0.0, 1.0)
    assert Share(0, 0).value is None
    assert Share(0, 10).interval[0] == pytest.approx(0.0)
    assert Share(10, 10).interval[1] == pytest.approx(1.0)


def test_percentiles_are_values_that_were_there():
    assert spread([3.0, 1.0, 2.0]).data() == {
        "p50": 2.0,
        "p95": 3.0,
        "p99": 3.0,
        "max": 3.0,
        "count": 3,
    }
    assert spread([]).max is None


def test_calibration_and_its_score():
    said = [(0.95, True), (1.0, True), (0.9, False), (0.1, False)]
    low, high = calibration(said)
    assert (low.low, low.real) == (0.1, Share(0, 1))
    assert (high.low, high.real) == (0.9, Share(2, 3))
    assert brier(said) == pytest.approx((0.05**2 + 0.81 + 0.01) / 4)
    assert brier([]) is None
