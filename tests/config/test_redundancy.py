"""The key `redundancy`: what it reads, and what it refuses."""

from contextlib import nullcontext

import pytest

from avrt.config.pipeline import from_keys
from avrt.config.redundancy import check_copies
from avrt.errors import SpecError
from avrt.model.spec import RedundancySpec
from avrt.safety.rules import rules_of

RUNS = ["a:one", "a:two", "b.py:three"]


def read(**redundancy):
    stage = {"run": "a:one", "inputs": {"cloud": "lidar"}, "wcet": "1 ms", "deadline": "10 ms"}
    keys = {
        "devices": {"cpu": {"type": "cpu", "slots": 3}},
        "sources": {"lidar": {"type": "lidar", "topic": "/lidar", "rate": "10 Hz"}},
        "stages": {"see": {**stage, "redundancy": redundancy}},
    }
    return from_keys({"pipeline": "p", **keys}).stage("see")


def test_all_keys_are_read():
    stage = read(
        copies=3, vote="tolerance", tolerance=1e-3, decide_before="2 ms", runs=RUNS, single=True
    )
    assert stage.redundancy == RedundancySpec(
        copies=3,
        vote="tolerance",
        tolerance=1e-3,
        decide_ns=2_000_000,
        runs=tuple(RUNS),
        single=True,
    )
    assert stage.task_names == ("see.0", "see.1", "see.2")
    assert [stage.copy(number).run for number in range(3)] == RUNS


def test_one_code_for_all_copies_is_taken_if_the_file_says_so():
    stage = read(copies=2, one_domain=True)
    assert [stage.copy(number).run for number in range(2)] == ["a:one", "a:one"]


def test_copies_on_several_devices_are_several_domains():
    keys = {
        "devices": {name: {"type": "simulated"} for name in ("a", "b", "c")},
        "sources": {"lidar": {"type": "lidar", "topic": "/lidar", "rate": "10 Hz"}},
    }
    see = {"run": "a:one", "inputs": {"cloud": "lidar"}, "wcet": "5 ms", "deadline": "9 ms"}
    see["redundancy"] = {"copies": 3, "devices": ["a", "b", "c"]}

    def read_with(**more):
        return from_keys({"pipeline": "p", **keys, "stages": {"see": {**see, **more}}}).stage("see")

    assert (read_with().device, read_with().homes) == ("a", ("a", "b", "c"))
    assert read_with(device="a").home("see.2") == "c"
    for device, told in (
        ("b", "expected the stage's device 'b' first"),
        ("d", "no device named 'd'"),
    ):
        with pytest.raises(SpecError, match=told):
            read_with(device=device)
    for devices, told in (
        (["a", "b"], "expected one for each of the 3 copies, found 2"),
        (["a", "b", "d"], "no device named 'd'"),
        (["a", "a", "a"], "or accept it with 'one_domain: true'"),
    ):
        with pytest.raises(SpecError, match=told):
            read_with(redundancy={"copies": 3, "devices": devices})


@pytest.mark.parametrize(
    ("keys", "a", "b", "agree"),
    [
        ({"vote": "number", "within": 0.5}, 1.0, 1.4, True),
        ({"vote": "number", "within": 0.5}, 1.0, 1.6, False),
        ({"vote": "number", "tolerance": 0.1}, 100.0, 109.0, True),
        ({"vote": "angle", "within": 0.1}, 3.1, -3.1, True),
        ({"vote": "angle", "within": 0.1}, 0.0, 0.2, False),
        ({"vote": "choice", "order": ["red", "green"]}, "red", "red", True),
        ({"vote": "choice"}, "red", "green", False),
    ],
)
def test_each_way_to_vote_is_the_agreement_that_it_says(keys, a, b, agree):
    agreement = rules_of(read(copies=3, runs=RUNS, **keys)).agreement
    assert (agreement.distance(a, b) <= 1) == agree


def test_what_is_safest_of_numbers_and_texts_is_declared():
    slow = rules_of(read(copies=3, runs=RUNS, vote="number", within=0, safe="least")).agreement
    assert slow.settle([3.0, 2.0]) == 2.0
    signal = rules_of(read(copies=3, runs=RUNS, vote="choice", order=["red", "green"])).agreement
    assert signal.settle(["green", "red"]) == "red"
    assert signal.problem("blue") == "range"


@pytest.mark.parametrize("vote", ["number", "angle", "tolerance"])
def test_copies_of_different_code_say_by_how_much_numbers_may_differ(vote):
    key = "tolerance" if vote == "tolerance" else "within"
    with pytest.raises(SpecError, match=f"say by how much with '{key}'"):
        read(copies=3, runs=RUNS, vote=vote)
    read(copies=3, vote=vote, one_domain=True)
    read(copies=3, runs=RUNS, vote=vote, **{key: 0.1})


@pytest.mark.parametrize(
    ("returned", "keys", "refused"),
    [
        (["Plan", "Plan | None", "avrt.payload.Plan"], {}, False),
        (["Tracks"] * 3, {}, False),
        (["Plan", "", "Plan"], {}, True),
        (["Planner", "Plan", "Plan"], {}, True),
        (["", "", ""], {"tolerance": 0.1}, False),
        (["", "", ""], {"vote": "exact"}, False),
        (["", "", ""], {"runs": ["a:one"] * 3, "one_domain": True}, False),
    ],
)
def test_copies_of_different_code_return_what_is_compared_by_meaning_or_say_how_far(
    returned, keys, refused
):
    stage = read(**{"copies": 3, "runs": RUNS, **keys})
    with pytest.raises(SpecError, match="-> Plan") if refused else nullcontext():
        check_copies(stage, returned)


@pytest.mark.parametrize(
    ("redundancy", "key", "message"),
    [
        ({}, "redundancy", "copies"),
        ({"copies": 1}, "redundancy.copies", "expected 2 to 9 copies, found 1"),
        ({"copies": 10}, "redundancy.copies", "expected 2 to 9 copies, found 10"),
        ({"copies": 3}, "redundancy", "one fault may hit all of them"),
        ({"copies": 2, "runs": ["a:one", "a:one"]}, "redundancy", "one fault may hit all"),
        ({"copies": 3, "runs": RUNS[:2]}, "redundancy.runs", "each of the 3 copies, found 2"),
        (
            {"copies": 3, "runs": ["a", "b", "c"]},
            "redundancy.runs",
            'expected "package.module:Name',
        ),
        ({"copies": 3, "runs": "a:b"}, "redundancy.runs", "a list of what each copy runs"),
        ({"copies": 3, "runs": RUNS, "vote": "most"}, "redundancy.vote", "kind, exact"),
        ({"copies": 3, "runs": RUNS, "tolerance": 0}, "redundancy.tolerance", "between 0 and 1"),
        ({"copies": 3, "runs": RUNS, "tolerance": [1]}, "redundancy.tolerance", "between 0 and 1"),
        ({"copies": 3, "runs": RUNS, "tolerance": "x"}, "redundancy.tolerance", "cannot read x"),
        (
            {"copies": 3, "runs": RUNS, "vote": "exact", "tolerance": 0.1},
            "redundancy.tolerance",
            "is only for vote: kind or tolerance or number",
        ),
        ({"copies": 3, "runs": RUNS, "within": 1}, "redundancy.within", "number or angle"),
        ({"copies": 3, "runs": RUNS, "safe": "least"}, "redundancy.safe", "vote: number"),
        ({"copies": 3, "runs": RUNS, "order": ["a"]}, "redundancy.order", "vote: choice"),
        (
            {"copies": 3, "runs": RUNS, "vote": "number", "within": -1},
            "redundancy.within",
            "0 or more",
        ),
        ({"copies": 3, "runs": RUNS, "decide_before": 3}, "redundancy.decide_before", "unit"),
        ({"copies": 3, "runs": RUNS, "decide_before": "-1 ms"}, "redundancy.decide_before", "0"),
        (
            {"copies": 3, "runs": RUNS, "decide_before": "10 ms"},
            "redundancy.decide_before",
            "10 ms",
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_key(redundancy, key, message):
    with pytest.raises(SpecError) as raised:
        read(**redundancy)
    assert ".".join(raised.value.key).startswith(f"stages.see.{key}")
    assert message in str(raised.value)
