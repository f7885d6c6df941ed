"""Who takes over whose state."""

import pytest

from avrt.drivers.takeovers import Takeovers
from avrt.model.ladder import LadderSpec, LevelSpec, StageLevel
from avrt.model.spec import DeviceSpec, PipelineSpec, RedundancySpec, StageSpec

LEVELS = (
    LevelSpec(name="three"),
    LevelSpec(name="two", stages=(StageLevel(stage="see", copies=2),)),
    LevelSpec(name="one", stages=(StageLevel(stage="see", copies=1),)),
    LevelSpec(name="none", without=("see",)),
)
SEE = StageSpec(
    name="see", device="cpu", wcet_ns=1, deadline_ns=9, period_ns=10,
    redundancy=RedundancySpec(copies=3),
)  # fmt: skip
SPEC = PipelineSpec(
    name="p",
    devices=(DeviceSpec(name="cpu"),),
    stages=(SEE,),
    ladder=LadderSpec(levels=LEVELS, critical=("see",)),
)


class Counting:
    """A stage."""


class Other:
    """A stage of other code."""


class Noted:
    """A stream that notes what it is to do."""

    def __init__(self, name, done):
        self.name, self.done = name, done

    def state(self):
        return self.name

    def adopt(self, state):
        self.done.append((self.name, state))

    def begin_anew(self):
        self.done.append((self.name, "anew"))


@pytest.fixture
def made():
    """Takeovers of three copies, the last of other code, and what was done."""
    done = []
    streams = {task: Noted(task, done) for task in SEE.task_names}
    stages = dict.fromkeys(SEE.task_names, Counting()) | {"see.2": Other()}
    return Takeovers(SPEC, stages, streams), done


@pytest.mark.parametrize(
    ("modes", "taken"),
    [
        (["two", "one", "none"], []),
        (["one", "two"], [("see.1", "see.0")]),
        (["two", "three"], [("see.2", "anew")]),
        (["one", "three"], [("see.1", "see.0"), ("see.2", "anew")]),
        (["one", "none", "three"], [("see.1", "see.0"), ("see.2", "anew")]),
        (["none", "three"], []),
    ],
)
def test_copies_that_begin_to_run_again_follow_the_first_one(made, modes, taken):
    takeovers, done = made
    for mode in modes:
        takeovers.entered(mode)
    assert done == taken
