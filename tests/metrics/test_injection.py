"""What a fault did to a run: each class by its smallest example, and that there is always one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.metrics.campaign import RowResult, coverage, unmet
from avrt.metrics.injection import judge
from avrt.metrics.observed import Detection, Observed, Output, Rules
from avrt.model.campaign import OUTCOMES, Expected, Injection, Row
from avrt.model.message import Origin

STEP = 100
RULES = Rules(
    lambda _stage, known, found: known != found,
    {"full": frozenset({"plan"}), "less": frozenset({"plan"}), "stop": frozenset()},
    {"full": frozenset({"plan"}), "less": frozenset(), "stop": frozenset()},
    silent_ns=300,
    told_ns=50,
    near_ns={"lidar": 50},
)


def output(number, payload="good", *, late=0, degraded=False, rests_on=None):
    capture_ns = number * STEP
    newest_ns = capture_ns if rests_on is None else rests_on
    origins = {"lidar": Origin(newest_ns, newest_ns)}
    return Output(capture_ns, capture_ns + 10 + late, payload, degraded, origins)


def run(outputs, detections=(), levels=(), crash="", injected_ns=(300,)):
    given = list(detections), list(levels), list(injected_ns)
    return Observed({"plan": list(outputs)}, *given, crash, "d")


GOLDEN = run([output(n) for n in range(10)], injected_ns=())
TOLD = [Detection(310, "vote", "x")]


def with_outputs(**changed):
    """The golden outputs with some of them changed, or None for one that is missing."""
    by_number = {int(key[1:]): value for key, value in changed.items()}
    made = [by_number.get(n, output(n)) for n in range(10)]
    return [item for item in made if item is not None]


def blocked(outputs, *sensors):
    """Return a run with two faults, the first of which is told, and states of sensors."""
    return replace(run(outputs, TOLD, injected_ns=(300, 600)), sensors=list(sensors))


CASES = {
    "all is good": (run(with_outputs()), "masked", 0, 0),
    "told, and all is good": (run(with_outputs(), TOLD), "masked", 0, 0),
    "one is late": (run(with_outputs(_4=output(4, late=30))), "masked", 0, 0),
    "a stamp jitters": (
        run(with_outputs(_4=replace(output(4), capture_ns=420))),
        "masked",
        0,
        0,
    ),
    "one is missing": (run(with_outputs(_4=None)), "recovered", 1, 0),
    "one is wrong and nobody was told": (
        run(with_outputs(_4=output(4, "bad"))),
        "silent_corruption",
        0,
        1,
    ),
    "one is wrong and somebody was told": (
        run(with_outputs(_4=output(4, "bad")), TOLD),
        "recovered",
        0,
        1,
    ),
    "wrong before somebody was told": (
        run(with_outputs(_4=output(4, "bad")), [Detection(411, "vote", "x")]),
        "silent_corruption",
        0,
        1,
    ),
    "told before the fault": (
        run(with_outputs(_4=output(4, "bad")), [Detection(299, "vote", "x")]),
        "silent_corruption",
        0,
        1,
    ),
    "told of another fault, before this one": (
        run(with_outputs(_6=output(6, "bad")), TOLD, injected_ns=(300, 600)),
        "silent_corruption",
        0,
        1,
    ),
    "told of another fault, shortly before this one": (
        run(
            with_outputs(_6=output(6, "bad")), [Detection(590, "vote", "x")], injected_ns=(300, 600)
        ),
        "recovered",
        0,
        1,
    ),
    "a sensor is known to be blocked since another fault": (
        blocked(with_outputs(_6=output(6, "bad")), (320, "lidar", False)),
        "recovered",
        0,
        1,
    ),
    "a sensor is known to be ok again": (
        blocked(with_outputs(_6=output(6, "bad")), (320, "lidar", False), (500, "lidar", True)),
        "silent_corruption",
        0,
        1,
    ),
    "a wrong one that says so": (
        run(with_outputs(_4=output(4, "bad", degraded=True))),
        "degraded",
        0,
        0,
    ),
    "one that rests on the same inputs, their stamps a little off": (
        run(with_outputs(_4=output(4, "bad", rests_on=360))),
        "silent_corruption",
        0,
        1,
    ),
    "one that rests on older inputs": (
        run(with_outputs(_4=output(4, "other", rests_on=300))),
        "degraded",
        0,
        0,
    ),
    "one that rests on newer inputs": (
        run(with_outputs(_4=output(4, "other", late=89, rests_on=460))),
        "masked",
        0,
        0,
    ),
    "one that rests on what has not come": (
        run(with_outputs(_4=output(4, rests_on=1000))),
        "silent_corruption",
        0,
        1,
    ),
    "one of a time that is none": (
        run([*with_outputs(), replace(output(9), capture_ns=9_000)]),
        "silent_corruption",
        0,
        1,
    ),
    "another level computes otherwise": (
        run(with_outputs(_5=output(5, "other")), TOLD, [(450, "less")]),
        "degraded",
        0,
        0,
    ),
    "the last level": (run(with_outputs()[:4], TOLD, [(450, "stop")]), "safe_stop", 1, 0),
    "wrong to the end": (
        run([*with_outputs()[:4], *(output(n, "bad") for n in range(4, 10))], TOLD),
        "degraded",
        0,
        6,
    ),
    "silent to the end": (run(with_outputs()[:5], TOLD), "hang", 5, 0),
    "raised": (run(with_outputs()[:2], crash="boom"), "crash", 7, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_what(name):
    faulty, outcome, lost, incorrect = CASES[name]
    found = judge(GOLDEN, faulty, RULES)
    assert (found.outcome, found.lost, found.incorrect) == (outcome, lost, incorrect)


def test_times_count_from_the_injection():
    faulty = run(with_outputs(_4=None, _5=output(5, "bad")), [Detection(340, "log", "x"), *TOLD])
    found = judge(GOLDEN, faulty, RULES)
    assert (found.detected.by, found.detected_ns) == ("vote", 10)
    assert found.recovered_ns == 610 - 300
    assert found.gap_ns == 200
    assert judge(GOLDEN, run(with_outputs()), RULES).recovered_ns == 0
    assert judge(GOLDEN, run(with_outputs()[:5]), RULES).recovered_ns is None


def test_what_is_odd_about_the_log_anyway_tells_of_no_fault():
    odd = Detection(350, "log", "/lidar: stamp_gap")
    golden = replace(GOLDEN, detections=[odd])
    faulty = run(with_outputs(_4=output(4, "bad")), [odd])
    assert judge(golden, faulty, RULES).detected is None
    assert judge(golden, faulty, RULES).outcome == "silent_corruption"
    assert judge(GOLDEN, faulty, RULES).outcome == "recovered"


def test_a_stage_that_a_level_leaves_out_is_not_silent():
    levels = [(350, "stop"), (650, "full")]
    back = run([*with_outputs()[:4], *with_outputs()[7:]], TOLD, levels)
    found = judge(GOLDEN, back, RULES)
    assert (found.outcome, found.lost) == ("degraded", 0)
    assert found.gap_ns == 100
    assert found.levels == ("stop", "full")


times = st.integers(0, 1200)
outputs = st.builds(
    Output,
    times,
    times,
    st.sampled_from(["good", "bad"]),
    st.booleans(),
    st.builds(lambda at: {"lidar": Origin(at, at)}, times),
)
observed = st.builds(
    Observed,
    st.builds(lambda own: {"plan": sorted(own, key=lambda o: o.publish_ns)}, st.lists(outputs)),
    st.lists(st.builds(Detection, times, st.sampled_from(["vote", "log"]), st.just("x"))),
    st.builds(
        sorted,
        st.lists(st.tuples(times, st.sampled_from(["full", "less", "stop"])), max_size=4),
    ),
    st.builds(sorted, st.lists(times, max_size=3)),
    st.sampled_from(["", "boom"]),
    st.just("d"),
)


@given(observed, observed)
def test_every_run_has_exactly_one_class_and_figures_that_make_sense(golden, faulty):
    found = judge(golden, faulty, RULES)
    assert found.outcome in OUTCOMES
    assert found.lost >= 0 <= found.incorrect
    assert found.gap_ns >= 0
    assert found.recovered_ns is None or found.recovered_ns >= 0
    assert found.detected_ns is None or found.detected_ns >= 0
    assert (found.outcome == "crash") == bool(faulty.crash)


@given(observed)
def test_a_run_is_never_worse_than_itself(golden):
    golden = replace(golden, crash="", levels=[])
    found = judge(golden, golden, RULES)
    assert found.lost == 0
    assert found.outcome in {"masked", "hang", "silent_corruption", "degraded", "recovered"}
    if len({o.capture_ns for o in golden.outputs["plan"]}) == len(golden.outputs["plan"]):
        future = any(o.origins["lidar"].newest_ns > o.publish_ns for o in golden.outputs["plan"])
        assert found.incorrect == 0 or future


# What was expected


JUDGED = judge(GOLDEN, run(with_outputs(_4=None), TOLD), RULES)


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        (Expected(), []),
        (Expected(outcomes=("masked",)), ["expected masked, it is recovered"]),
        (Expected(silent=True), ["expected no alarm, found vote (x)"]),
        (
            Expected(detected_by=("fault", "miss")),
            ["expected fault or miss to tell of it first, it was vote (x)"],
        ),
        (Expected(detected_by=("vote",), detected_ns=10), []),
        (Expected(detected_ns=9), ["expected to be told within 9 ns, it took 10 ns"]),
        (Expected(levels=("stop",)), ["expected levels stop, found none"]),
        (Expected(lost=0), ["expected at most 0 outputs lost, found 1"]),
        (Expected(gap_ns=150), ["expected a gap of at most 150 ns, found 200 ns"]),
        (
            Expected(recover_ns=200),
            ["expected all to be good again within 200 ns, it was after 210 ns"],
        ),
    ],
)
def test_what_is_not_as_expected_is_a_sentence(expect, told):
    assert list(unmet(expect, JUDGED)) == told


FAULT = Injection(place="source", target="lidar", kind="drop", frame=3)


def result(expect, *, gap="", judged=JUDGED):
    row = Row(id="A", about="it", faults=(FAULT,), expect=expect, gap=gap)
    return RowResult(row, 0, (FAULT,), False, judged, tuple(unmet(expect, judged)))


def test_a_known_gap_is_a_failure_once_it_is_closed():
    assert result(Expected(lost=0), gap="a guard").failure == ""
    assert "remove 'gap'" in result(Expected(), gap="a guard").failure
    assert result(Expected(lost=0)).failure == "expected at most 0 outputs lost, found 1"


def test_coverage_counts_what_was_told_of_in_time_among_what_had_to_be():
    quiet = judge(GOLDEN, run(with_outputs()), RULES)
    rows = [
        result(Expected(detected_by=("vote",))),
        result(Expected(detected_by=("vote",)), judged=quiet),
        result(Expected(detected_by=("vote",)), gap="known", judged=quiet),
        result(Expected(detected_ns=5)),
        result(Expected()),
    ]
    found = coverage(rows)
    assert [(c.by, c.detected, c.injected) for c in found] == [("vote", 1, 2), ("anything", 0, 1)]
    assert found[0].share.low == pytest.approx(0.0126, abs=1e-4)
    assert found[0].share.high == pytest.approx(0.9874, abs=1e-4)


# Over time


def test_every_output_is_there_once_by_what_became_of_it():
    wrong, less = output(4, "bad"), output(5, degraded=True)
    faulty = run(with_outputs(_4=wrong, _5=less, _6=None), TOLD, [(750, "less")])
    course = judge(GOLDEN, faulty, RULES).course
    at = {quality: list(times_ns) for quality, times_ns in course.outputs["plan"].items()}
    assert at == {
        "good": [10, 110, 210, 310, 710],
        "other": [810, 910],
        "less": [510],
        "wrong": [410],
        "lost": [610],
    }
    assert list(course.levels) == [(0, "full"), (750, "less")]
    assert (course.last, course.end_ns) == ("stop", 910)


@given(observed, observed)
def test_a_course_has_every_output_and_is_what_is_counted(golden, faulty):
    found = judge(golden, faulty, RULES)
    own = found.course.outputs["plan"]
    published = sorted(at_ns for q, times_ns in own.items() if q != "lost" for at_ns in times_ns)
    assert published == [output.publish_ns for output in faulty.outputs["plan"]]
    assert (len(own["lost"]), len(own["wrong"])) == (found.lost, found.incorrect)
    bad = [*own["less"], *own["wrong"], *own["lost"]]
    assert (found.recovered_ns == 0) == (not bad)
