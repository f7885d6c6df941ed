"""From a stage to its rules: kinds, domains, and nothing that raises."""

import math
import warnings

import numpy as np
import pytest

from avrt.model.spec import RedundancySpec, StageSpec
from avrt.payload import Plan, Tracks
from avrt.safety.rules import domains_of, rules_of

THREE = RedundancySpec(copies=3, runs=("a:x", "a:y", "a:x"))


def stage(redundancy=THREE, **keys):
    return StageSpec(
        name="s", device="cpu", wcet_ns=1, deadline_ns=9, run="a:x", redundancy=redundancy, **keys
    )


def test_copies_of_one_code_on_one_device_are_one_domain():
    first, second, third = domains_of(stage())
    assert first == third != second
    assert len(set(domains_of(stage(RedundancySpec(copies=3))))) == 1
    spread = RedundancySpec(copies=3, devices=("cpu", "gpu", "cpu"))
    first, second, third = domains_of(stage(spread))
    assert first == third != second


def test_more_than_half_must_agree():
    assert [rules_of(stage(RedundancySpec(copies=n))).quorum for n in (2, 3, 4, 5)] == [2, 2, 3, 3]


def test_only_outputs_that_come_at_once_supersede():
    assert rules_of(stage()).supersedes
    assert not rules_of(stage(publish="at_deadline")).supersedes


@pytest.mark.parametrize("vote", ["kind", "exact", "tolerance"])
def test_payloads_of_different_kinds_never_agree(vote):
    agreement = rules_of(stage(RedundancySpec(copies=2, vote=vote))).agreement
    assert agreement.distance([1.0], 1.0) == math.inf
    assert agreement.distance(1.0, 1.0) == 0


def odd():
    return [
        Tracks(None, 1.0),
        Plan([0, 1], [[0, 0], [0, 0]], *[[0.0, 0.0]] * 4, "cruise", None, None),
        Plan(*[np.array(["a", "b"])] * 6, "cruise", None, None),
        object(),
    ]


@pytest.mark.parametrize("payload", odd(), ids=["tracks", "lists", "texts", "object"])
def test_a_payload_of_a_shape_that_nobody_expected_ends_nothing(payload):
    agreement = rules_of(stage()).agreement
    assert agreement.problem(payload) in {"", "schema"}
    assert agreement.distance(payload, payload) >= 0
    agreement.settle([payload, payload])


def raising(_output, _previous):
    raise RuntimeError("boom")


@pytest.mark.parametrize("accept", [raising, lambda _output, _previous: np.zeros(3)])
def test_an_acceptance_test_that_raises_refuses(accept):
    assert rules_of(stage(), accept).accept(1.0, None) is False


@pytest.mark.parametrize("vote", ["tolerance", "kind"])
def test_numbers_that_cannot_be_subtracted_do_not_agree_and_warn_of_nothing(vote):
    """Flipped exponent bits make them; a warning would be text on stderr in every frame."""
    redundancy = RedundancySpec(copies=3, vote=vote)
    stage = StageSpec(name="s", device="d", wcet_ns=1, deadline_ns=1, redundancy=redundancy)
    agreement = rules_of(stage).agreement
    huge = np.array([1e308, 1.0])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not agreement.distance(huge, -huge) <= 1
        assert agreement.problem(huge) == ""
    assert told == []
