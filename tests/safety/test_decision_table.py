"""The table of decisions, one situation a row, and what holds for all votes."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from driven import plan
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.drivers.inject.edits import swerved
from avrt.safety.agreement import Choice, Scalar, Tolerance
from avrt.safety.trajectory import Trajectory
from avrt.safety.vote import OPEN, Ballot, Rules, decide

NAN = math.nan
ALIKE, APART = ("gpu", "gpu", "gpu"), ("gpu", "cpu", "host")
PAIR_AND_ONE = ("gpu", "gpu", "cpu")


def rules(domains=ALIKE, agreement=None, **keys):
    return Rules(agreement=agreement or Scalar(absolute=1.0), domains=domains, **keys)


def ballots(*values):
    """Return one ballot each: a number, or why there is none."""
    return [
        Ballot(i, abstains=value) if isinstance(value, str) else Ballot(i, value)
        for i, value in enumerate(values)
    ]


def below_100(value, _previous):
    return value < 100


def never(_value, _previous):
    return False


TABLE = [
    ("all agree", ballots(5.0, 5.0, 5.0), {}, "unanimous", 0, {}),
    ("all agree, the middle one is nearest", ballots(5.0, 5.9, 5.5), {}, "unanimous", 2, {}),
    ("one is wrong", ballots(9.0, 5.0, 5.0), {}, "majority", 1, {0: 1.0}),
    ("a chain", ballots(5.0, 5.8, 6.6), {}, "majority", 1, {}),
    ("one is late", ballots("late", 5.0, 5.0), {}, "majority_of_two", 1, {0: 0.5}),
    ("one is not a number", ballots(5.0, "nonfinite", 5.0), {}, "majority_of_two", 0, {1: 1.0}),
    ("one crashed", ballots(5.0, 5.0, "crashed"), {}, "majority_of_two", 0, {2: 3.0}),
    ("two disagree", ballots(5.0, 9.0, "late"), {}, "tie", None, {0: 0.25, 1: 0.25, 2: 0.5}),
    ("one is left", ballots(5.0, "late", "crashed"), {}, "single", None, {1: 0.5, 2: 3.0}),
    (
        "one is left and good enough",
        ballots(5.0, "late", "late"),
        {"accept": below_100, "allow_single": True},
        "single",
        0,
        {1: 0.5, 2: 0.5},
    ),
    (
        "one is left and fails",
        ballots(500.0, "late", "late"),
        {"accept": below_100, "allow_single": True},
        "single",
        None,
        {1: 0.5, 2: 0.5},
    ),
    (
        "one is left and not allowed",
        ballots(5.0, "late", "late"),
        {"accept": below_100},
        "single",
        None,
        {1: 0.5, 2: 0.5},
    ),
    ("all disagree", ballots(1.0, 5.0, 9.0), {}, "no_majority", None, {0: 0.25, 1: 0.25, 2: 0.25}),
    ("none is valid", ballots("late", "crashed", "range"), {}, "none", None, {0: 0.5, 1: 3, 2: 1}),
    (
        "a pair of one domain that passes",
        ballots(5.0, 5.0, 9.0),
        {"domains": PAIR_AND_ONE, "accept": below_100},
        "weak_majority",
        0,
        {},
    ),
    (
        "a pair of one domain without a test",
        ballots(5.0, 5.0, 9.0),
        {"domains": PAIR_AND_ONE},
        "no_majority",
        None,
        {0: 0.25, 1: 0.25, 2: 0.25},
    ),
    (
        "a pair of one domain that fails, where the third passes",
        ballots(500.0, 500.0, 9.0),
        {"domains": PAIR_AND_ONE, "accept": below_100},
        "arbitrated",
        2,
        {0: 0.25, 1: 0.25, 2: 0.25},
    ),
    ("a pair of two domains", ballots(9.0, 5.0, 5.0), {"domains": APART}, "majority", 1, {0: 1.0}),
    ("common mode", ballots(500.0, 500.0, 500.0), {"accept": below_100}, "rejected", None, {}),
    (
        "two disagree and one passes",
        ballots(5.0, 900.0, "late"),
        {"accept": below_100},
        "arbitrated",
        0,
        {0: 0.25, 1: 0.25, 2: 0.5},
    ),
    (
        "all disagree, the least is safe",
        ballots(7.0, 3.0, 11.0),
        {"agreement": Scalar(absolute=1.0, safe="least")},
        "no_majority",
        1,
        {0: 0.25, 1: 0.25, 2: 0.25},
    ),
    (
        "one is quarantined, the others disagree",
        ballots(5.0, 9.0, "quarantined"),
        {},
        "tie",
        None,
        {0: 0.25, 1: 0.25},
    ),
    ("two copies agree", ballots(5.0, 5.0), {"domains": ("a", "b")}, "unanimous", 0, {}),
    (
        "of five, three agree",
        ballots(1.0, 7.0, 7.1, 3.0, 7.2),
        {"domains": ("a", "b", "c", "d", "e"), "quorum": 3},
        "majority",
        2,
        {0: 1.0, 3: 1.0},
    ),
    (
        "of five, two agree and that is not enough",
        ballots(1.0, 7.0, 7.1, 3.0, 9.0),
        {"domains": ("a", "b", "c", "d", "e"), "quorum": 3},
        "no_majority",
        None,
        dict.fromkeys(range(5), 0.25),
    ),
]


@pytest.mark.parametrize(
    ("given", "keys", "verdict", "choice", "blame"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_each_situation_has_its_decision_whatever_the_order(given, keys, verdict, choice, blame):
    for order in permutations(given):
        found = decide(order, rules(**keys), None, is_last=True)
        assert (found.verdict, found.choice, found.merged) == (verdict, choice, None)
        assert dict(found.blame) == blame


def test_outputs_that_agree_one_with_the_next_only_are_told_as_a_chain():
    assert decide(ballots(5.0, 5.8, 6.6), rules(), None, is_last=True).is_chain
    assert not decide(ballots(5.0, 5.1, 5.2), rules(), None, is_last=True).is_chain


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        (ballots(5.0), {}),
        (ballots(5.0, 9.0), {}),
        (ballots(5.0, "nonfinite"), {}),
        (ballots(500.0, 500.0), {"accept": below_100}),
        (ballots(5.0, 5.0), {"domains": PAIR_AND_ONE}),
    ],
)
def test_before_the_last_time_what_is_not_clear_stays_open(given, keys):
    assert decide(given, rules(**keys), None, is_last=False) is OPEN


def test_before_the_last_time_two_that_agree_decide_and_nobody_is_blamed():
    found = decide([Ballot(2, 5.0), Ballot(0, 5.0)], rules(), None, is_last=False)
    assert (found.verdict, found.choice, dict(found.blame)) == ("majority_of_two", 0, {})


def test_the_test_is_given_what_was_accepted_before():
    seen = []
    accept = lambda value, previous: bool(seen.append((value, previous))) or True  # noqa: E731
    decide(ballots(5.0, 5.0, 5.0), rules(accept=accept), 4.0, is_last=True)
    assert seen == [(5.0, 4.0)]


def test_of_classes_that_differ_the_most_conservative_is_safest():
    order = ("red", "amber", "unknown", "green")
    signals = [Ballot(0, "green"), Ballot(1, "amber"), Ballot(2, "unknown")]
    found = decide(signals, rules(agreement=Choice(order)), None, is_last=True)
    assert (found.verdict, found.choice) == ("no_majority", 1)


VALUES = st.one_of(st.floats(-10, 10), st.sampled_from(["late", "crashed", "nonfinite"]))


@settings(max_examples=300)
@given(
    st.lists(VALUES, min_size=2, max_size=5),
    st.sampled_from([None, below_100, never]),
    st.booleans(),
    st.booleans(),
    st.randoms(),
)
def test_the_output_is_always_one_of_a_valid_replica_and_order_changes_nothing(
    values, accept, allow_single, is_last, random
):
    given = ballots(*values)
    domains = tuple(f"d{i % 2}" for i in range(len(values)))
    made = rules(domains, accept=accept, allow_single=allow_single, quorum=len(values) // 2 + 1)
    found = decide(given, made, None, is_last=is_last)
    if found.choice is not None:
        assert not given[found.choice].abstains
        assert accept is not never
    assert found.merged is None
    shuffled = list(given)
    random.shuffle(shuffled)
    assert decide(shuffled, made, None, is_last=is_last) == found
    for replica, points in found.blame.items():
        assert 0 <= replica < len(values)
        assert points > 0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.floats(2.5, 3.5)), min_size=2, max_size=5))
def test_of_plans_that_pass_on_two_sides_one_is_selected_whole(ways):
    """A thing of 4 m by 2 m stands 30 m ahead; the mean of two that pass it may not pass it."""
    plans = [swerved(plan(), side * aside) for side, aside in ways]
    made = rules(("a",) * len(plans), Trajectory(), quorum=len(plans) // 2 + 1)
    found = decide(ballots(*plans), made, None, is_last=True)
    assert found.merged is None
    assert clearance(plans[found.choice]) >= min(map(clearance, plans)) > 0
    if found.verdict in {"unanimous", "majority", "majority_of_two"}:
        side = ways[found.choice][0]
        assert sum(other == side for other, _ in ways) >= made.quorum


def test_the_mean_of_plans_that_pass_on_two_sides_hits():
    left, right = swerved(plan(), 3.0), swerved(plan(), -3.0)
    assert clearance(replace(left, xy=(left.xy + right.xy) / 2)) == 0


def clearance(driven):
    """Return the distance of a plan's points, from 28 m to 32 m ahead, to what is 1 m aside."""
    near = driven.xy[np.abs(driven.xy[:, 0] - 30) <= 2]
    return max(0.0, float((np.abs(near[:, 1]) - 1).min()))


@settings(max_examples=100)
@given(st.lists(st.floats(-5, 5, width=32), min_size=4, max_size=4), st.floats(1e-7, 1e-2))
def test_tensors_may_differ_by_a_share_of_their_own_largest_magnitude(numbers, share):
    agreement = Tolerance(share)
    array = np.array(numbers, np.float32)
    top = float(np.abs(array).max())
    if top < 1e-3:
        return
    inside, outside = array.copy(), array.copy()
    inside[0] += 0.4 * share * top
    outside[0] += 4 * share * top + 1e-5 * top
    assert agreement.distance(array, array) == 0
    assert agreement.distance(array, inside) <= 1 + 1e-6 / share
    assert agreement.distance(array, outside) > 1
