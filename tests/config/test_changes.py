"""Changes of a what-if: read like the pipeline file, checked like it, and no other way in."""

import pytest

import avrt
from avrt.config.changes import Changes, change_pipeline, cost_change, cost_rules
from avrt.errors import SpecError


@pytest.fixture
def spec():
    devices = {"cpu": {"type": "cpu", "slots": 2}, "gpu": {"type": "cuda:0"}}
    pipeline = avrt.Pipeline("p", devices=devices)
    pipeline.source("lidar", type="lidar", topic="/lidar")
    for name, keys in (("detect", {"inputs": {"x": "lidar"}}), ("beat", {"period": "50 ms"})):
        target = (lambda x: x) if "inputs" in keys else (lambda: 0)
        pipeline.add(target, name=name, device="cpu", wcet="10 ms", deadline="40 ms",
                     **keys)  # fmt: skip
    return pipeline.spec


def test_every_change_reaches_its_field_and_no_other(spec):
    changed = change_pipeline(
        spec,
        Changes("dm", (), ("detect=12 ms",), ("beat=20ms",), ("beat=25 Hz",), ("detect=gpu",),
                ("gpu=3",)),
    )  # fmt: skip
    detect, beat = changed.stage("detect"), changed.stage("beat")
    assert (changed.policy, changed.device("gpu").slots, changed.device("cpu").slots) == (
        "dm", 3, 2,
    )  # fmt: skip
    assert (detect.wcet_ns, detect.deadline_ns, detect.device) == (12_000_000, 40_000_000, "gpu")
    assert (beat.wcet_ns, beat.deadline_ns, beat.period_ns) == (10_000_000, 20_000_000, 40_000_000)
    assert change_pipeline(spec, Changes()) == spec


def test_a_stage_that_moves_takes_all_its_copies_with_it():
    devices = {name: {"type": "simulated"} for name in ("a", "b")}
    pipeline = avrt.Pipeline("p", devices=devices)
    spread = {"copies": 2, "devices": ["a", "b"]}
    keys = {"period": "50 ms", "wcet": "10 ms", "deadline": "40 ms", "redundancy": spread}
    pipeline.add(lambda: 0, name="beat", **keys)
    assert pipeline.spec.stage("beat").homes == ("a", "b")
    moved = change_pipeline(pipeline.spec, Changes(device=("beat=b",)))
    assert moved.stage("beat").homes == ("b", "b")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"policy": "rma"}, "policy: expected one of edf, rm,"),
        ({"policy": "rm"}, "stages.detect: rate-monotonic needs a period"),
        ({"policy": "fp"}, "policy fp needs a 'priority'"),
        ({"wcet": ("detct=5 ms",)}, "wcet: no stage named 'detct'; did you mean 'detect'?"),
        ({"wcet": ("detect",)}, "wcet: expected STAGE=VALUE, found 'detect'"),
        ({"wcet": ("detect=",)}, "wcet: expected STAGE=VALUE"),
        ({"wcet": ("detect=5",)}, "wcet.detect: expected a duration with its unit"),
        ({"wcet": ("detect=0 ms",)}, "stages.detect.wcet: expected more than 0"),
        ({"deadline": ("beat=-1 ms",)}, "stages.beat.deadline: expected"),
        ({"deadline": ("beat=1 ms", "beat=2 ms")}, "'beat' is given twice"),
        ({"rate": ("detect=5 Hz",)}, "rate.detect: its inputs release it"),
        ({"rate": ("beat=0 Hz",)}, "rate.beat: expected a rate above zero"),
        ({"device": ("beat=gpx",)}, "no device named 'gpx'; did you mean 'gpu'?"),
        ({"slots": ("gpx=1",)}, "slots: no device named 'gpx'; did you mean 'gpu'?"),
        ({"slots": ("gpu=1.5",)}, "slots.gpu: expected a whole number, found '1.5'"),
        ({"slots": ("gpu=0",)}, "devices.gpu.slots: expected at least 1 slot"),
    ],
)
def test_a_change_that_means_nothing_is_refused_with_its_place(spec, changes, what):
    with pytest.raises(SpecError) as caught:
        change_pipeline(spec, Changes(**changes))
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cost_ns", "expected_ns"),
    [("+20%", 1000, 1200), ("-5 %", 1000, 950), ("+0.1%", 1500, 1502), ("-99.9%", 1, 1),
     ("12ms", 5, 12_000_000)],
)  # fmt: skip
def test_a_cost_changes_by_a_share_or_is_fixed(spec, text, cost_ns, expected_ns):
    change = cost_change(cost_rules(spec, (f"detect={text}",)))
    assert change("detect", cost_ns) == expected_ns
    assert change("beat", cost_ns) == cost_ns


@pytest.mark.parametrize("text", ["-100%", "20%", "+1e9%", "0 ms", "much"])
def test_a_cost_that_cannot_be_is_refused(spec, text):
    with pytest.raises(SpecError, match=r"cost\.detect: expected"):
        cost_rules(spec, (f"detect={text}",))


def test_changes_are_told_in_words():
    changes = Changes("rm", ("a=+20%",), slots=("cpu=1",))
    assert changes.texts() == ["policy rm", "cost a=+20%", "slots cpu=1"]
    assert Changes().texts() == []
