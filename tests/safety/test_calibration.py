"""How far copies differ is measured of all that gave an output, and what is calibrated holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.model.spec import RedundancySpec, StageSpec
from avrt.payload import Tracks
from avrt.safety.agreement import SHARE, Scalar, Tolerance
from avrt.safety.calibration import FACTOR, MeasuringVoter
from avrt.safety.vote import Ballot

RUNS = ("a:x", "a:y", "a:z")


def voter(vote="kind", *, copies=3, accept=None, **keys):
    redundancy = RedundancySpec(copies=copies, vote=vote, runs=RUNS[:copies], **keys)
    stage = StageSpec(name="s", device="cpu", wcet_ns=1, deadline_ns=9, redundancy=redundancy)
    return MeasuringVoter(stage, accept)


def measured(made, *frames):
    """Vote over frames of outputs, None for one that crashed; return what was answered."""
    answers = []
    for number, outputs in enumerate(frames):
        ballots = [
            Ballot(copy, output, abstains="crashed" if output is None else "")
            for copy, output in enumerate(outputs)
        ]
        early = made.vote(number, ballots[:2], "early", number)
        answers.append((early, made.vote(number, ballots, "over", number)))
    return answers


def array(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("vote", "frames", "by", "largest"),
    [
        ("number", [(1.0, 1.5, 1.25), (4.0, 4.0, 4.25)], "within", 0.5),
        ("angle", [(3.0, -3.0, 3.0)], "within", 2 * math.pi - 6),
        ("tolerance", [([100.0], [99.0], [100.0])], "tolerance", 0.01),
        ("kind", [(array(0, 100), array(1, 100), array(0, 100))], "tolerance", 0.01),
        ("exact", [(1.0, 1.0, 1.0)], "", 0.0),
        ("choice", [("red", "red", "red")], "", 0.0),
    ],
)
def test_what_is_measured_is_what_the_key_allows(vote, frames, by, largest):
    made = voter(vote)
    measured(made, *frames)
    assert made.spread.by == by
    assert made.spread.largest == pytest.approx(largest, rel=1e-6)
    assert (made.spread.frames, made.spread.unlike) == (len(frames), 0)


def test_nobody_is_blamed_however_far_apart_copies_are():
    made = voter("number", within=1e-6)
    answers = measured(made, *[(float(n), n + 50.0, n - 9.0) for n in range(20)])
    assert {early.verdict for early, _ in answers} == {"majority_of_two"}
    assert [over.blamed for _, over in answers] == [()] * 20
    assert made.replicas.active == [0, 1, 2]


def test_a_frame_counts_if_every_copy_gave_a_valid_output():
    made = voter("number")
    measured(made, (1.0, 5.0, None), (1.0, math.nan, 1.0), (1.0, 5.0, "x"), (1.0, 2.0, 1.0))
    assert (made.spread.frames, made.spread.largest) == (1, 1.0)


def test_spare_copies_need_not_have_run():
    made = voter("number", spare=1)
    measured(made, (1.0, 2.0, None))
    assert made.spread.frames == 1


def test_frames_that_differ_by_more_than_numbers_are_counted_apart():
    made = voter()
    measured(made, ([1.0], [1.0, 2.0], [1.0]), ([1.0], [1.1], [1.0]), ([1.0], [2], [1.0]))
    assert (made.spread.frames, made.spread.unlike) == (3, 2)
    assert made.spread.largest == pytest.approx(0.1 / 1.1)


def test_object_lists_are_measured_by_what_they_mean_and_calibrate_nothing():
    made = voter()
    measured(made, (Tracks((), 10.0),) * 3)
    assert (made.spread.by, made.spread.calibrated, made.spread.frames) == ("", None, 1)


def test_copies_that_are_alike_keep_the_usual_tolerance():
    made = voter()
    measured(made, ([1.0], [1.0], [1.0]))
    assert made.spread.calibrated == SHARE


number = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(number, number, number), min_size=1, max_size=8))
def test_what_was_measured_agrees_with_what_is_calibrated_from_it(frames):
    made, arrays = voter("number"), voter("tolerance")
    measured(made, *frames)
    measured(arrays, *([[one] for one in frame] for frame in frames))
    assert made.spread.largest == max(max(frame) - min(frame) for frame in frames)
    scalar, share = Scalar(made.spread.calibrated), Tolerance(arrays.spread.calibrated, 0.0)
    for frame in frames:
        for one in frame:
            assert scalar.distance(one, frame[0]) <= (1 + 1e-9) / FACTOR
            assert share.distance([one], [frame[0]]) <= 1
