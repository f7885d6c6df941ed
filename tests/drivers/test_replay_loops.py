"""A log in a loop: whatever a stage believed in one pass, it has forgotten in the next."""

import pytest

import avrt
from avrt.errors import SpecError
from avrt.logs.record.run_file import read_outputs

FRAMES, LOOPS = 4, 3


class Counts(avrt.Stage):
    """A stage that counts its calls, in a state that it changes in place."""

    def __init__(self):
        self.state = {"calls": []}

    def warm(self):
        self.state["calls"].append("warm")

    def freeze(self):
        return self.state

    def thaw(self, state):
        self.state = state

    def count(self):
        self.state["calls"].append("call")
        return len(self.state["calls"]) - 1


class OfOne(Counts):
    def process(self, a):  # noqa: ARG002 - by its name
        return self.count()


class OfTwo(Counts):
    def process(self, a, b):  # noqa: ARG002 - by its name
        return self.count()


KINDS = {
    "triggered": (OfOne, {"inputs": {"a": "lidar"}}),
    "triggered, one sampled": (OfTwo, {"inputs": {"a": "lidar", "b": "rear"}, "trigger": "a"}),
    "synchronised": (
        OfTwo,
        {"inputs": {"a": "lidar", "b": "rear"}, "sync": {"tolerance": "1 ms", "timeout": "9 ms"}},
    ),
    "timer": (OfOne, {"inputs": {"a": "lidar"}, "period": "100 ms", "offset": "5 ms"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_begins_each_pass_as_after_its_warm_up(
    make_drive, make_pipeline, tmp_path, kind
):
    """`after` is triggered by the stage, and has the epoch from it."""
    target, keys = KINDS[kind]
    pipeline = make_pipeline("lidar", "rear")
    pipeline.add(target, name="it", wcet="1 ms", deadline="90 ms", **keys)
    pipeline.add(OfOne, name="after", inputs={"a": "it"}, wcet="1 ms", deadline="90 ms")
    drive, out = make_drive(FRAMES, topics=("/lidar", "/rear")), tmp_path / "run.mcap"
    report = pipeline.replay(drive, out=out, loops=LOOPS)
    assert report.jobs["met"] == report.jobs["released"]
    for stage in ("it", "after"):
        counted = [message.payload for message in read_outputs(out, stage)]
        one_pass = list(range(1, FRAMES + 1))
        assert counted == (one_pass * LOOPS)[: len(counted)]
        assert len(counted) >= FRAMES * LOOPS - 1


def test_a_stage_that_cannot_begin_anew_never_goes_on_with_what_it_believed(
    make_drive, make_pipeline, tmp_path, read_ends
):
    class Stubborn(OfOne):
        refusals = 2

        def thaw(self, state):
            if self.refusals:
                self.refusals -= 1
                raise ValueError("not yet")
            super().thaw(state)

    pipeline = make_pipeline()
    pipeline.add(Stubborn, name="it", inputs={"a": "lidar"}, wcet="1 ms", deadline="90 ms")
    out = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(FRAMES), out=out, loops=2)
    assert report.data["faults"] == {"it: exception": 2}
    assert [m.payload for m in read_outputs(out, "it")] == [1, 2, 3, 4, 1, 2]
    assert read_ends(out, "it")[4:6] == [("aborted", "failure")] * 2


def test_a_state_that_cannot_be_kept_is_told_before_the_run(make_drive, make_pipeline):
    class Unpicklable(OfOne):
        def freeze(self):
            return (n for n in range(3))

    pipeline = make_pipeline()
    pipeline.add(Unpicklable, inputs={"a": "lidar"}, wcet="1 ms", deadline="90 ms")
    with pytest.raises(SpecError, match=r"stages.Unpicklable.run: freeze\(\) failed: TypeError: "):
        pipeline.replay(make_drive(2))
