"""Reports from the field of votes that went wrong, and of devices that do not come back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import avrt
from avrt.errors import HardwareFault
from avrt.model.records import FaultRecord, JobRecord, ModeRecord, ResourceRecord
from avrt.safety.agreement import Tolerance
from avrt.safety.vote import Ballot, Rules
from avrt.safety.voter import Voter
from cases import field

REPORTS = ("FT-01", "FT-03", "FT-05")
APART = ("one", "two", "three")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_run.py", REPORTS)


def in_words(answer, outputs):
    """Return an answer of the voter in the words of the report."""
    if answer.choice is None:
        return "NO_MAJORITY" if answer.verdict == "no_majority" else "FAIL_SAFE"
    chosen = outputs[answer.choice]
    if chosen.size == 0:
        return "agree empty"
    told = f"{chosen[0]:g}" if chosen.size == 1 else f"[{','.join(f'{x:g}' for x in chosen)}]"
    suspects = ", ".join(str(replica + 1) for replica in answer.blamed)
    return f"{told}, suspect {suspects}" if suspects else f"{told}, no suspect"


def test_votes_over_what_is_no_number(reports):
    """FT-01: NaN and infinity are no votes, and never an output."""
    given, answer = field.given(reports, "FT-01"), field.answer(reports, "FT-01")
    rules = Rules(agreement=Tolerance(given["tolerance_rel"]), domains=APART)
    said, not_numbers = [], 0
    for row in given["rows"]:
        outputs = [np.atleast_1d(np.array(value, float)) for value in row]
        ballots = [Ballot(replica, output) for replica, output in enumerate(outputs)]
        voted = Voter(rules).vote(0, ballots, "over", 0)
        said.append(in_words(voted, outputs))
        if voted.choice is not None:
            not_numbers += not np.isfinite(outputs[voted.choice]).all()
    assert said == answer["verdicts"]
    assert not_numbers == answer["nan_output"]


def test_a_replica_without_evidence_is_never_selected(reports):
    """FT-03: one that checked nothing abstains, whatever its score; the other stays selected."""
    given, answer = field.given(reports, "FT-03"), field.answer(reports, "FT-03")
    rules = Rules(
        agreement=Tolerance(1e-5),
        domains=APART[:2],
        accept=lambda _value, _previous: True,
        allow_single=True,
    )
    voter, selected = Voter(rules), []
    for step in given["steps"]:
        ballots = [
            Ballot(lane, told["err"], "" if told["n_updates"] or not lane else "skipped")
            for lane, told in enumerate(step["lanes"])
        ]
        selected.append(voter.vote(step["t"], ballots, "over", step["t"]).choice)
    assert set(selected) == {answer["selected"]}
    assert sum(a != b for a, b in pairwise(selected)) == answer["switches"]
    assert voter.replicas.all[1].points == 0


class Poisoned(avrt.Stage):
    """Computes on a device that is gone for good from the third message on; its state is host's."""

    def __init__(self, *, works=False):
        self.works, self.count = works, 0

    def process(self, cloud):
        self.count += 1
        if self.count >= 3 and not self.works:
            raise HardwareFault("device", f"device-side assert triggered, {cloud.stamp.sequence}")
        return self.count

    def freeze(self):
        return self.count

    def thaw(self, state):
        self.count = state


@pytest.mark.slow
@pytest.mark.live
def test_a_device_that_is_poisoned_is_left_and_not_tried_again(reports, make_drive, tmp_path):
    """FT-05: the class is hardware, nothing is retried there, and the processor goes on."""
    answer = field.answer(reports, "FT-05")
    assert answer["in_process_gpu_retries"] == 0
    levels = {"gpu": {"devices": 1}, "processor": {"stages": {"see": {"variant": "processor"}}}}
    pipeline = avrt.Pipeline(
        "p",
        devices={"gpu": {"type": "cpu"}, "cpu": {"type": "cpu"}},
        ladder={"devices": ["gpu"], "levels": levels, "critical": ["see"], "max_age": "2 s"},
    )
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    variants = {"processor": {"device": "cpu", "params": {"works": True}}}
    keys = {"inputs": {"cloud": "lidar"}, "wcet": "20 ms", "deadline": "90 ms"}
    pipeline.add(Poisoned, name="see", device="gpu", variants=variants, **keys)
    out = tmp_path / "run.mcap"
    pipeline.run(make_drive(9), record=out, rate=1, force=True)
    faults = field.records(out, FaultRecord)
    assert [fault.fault for fault in faults] == ["device"]
    assert [(r.name, r.state) for r in field.records(out, ResourceRecord)] == [("gpu", "lost")]
    assert [r.mode for r in field.records(out, ModeRecord)] == ["processor"]
    jobs = field.records(out, JobRecord)
    assert [job.outcome for job in jobs].count("aborted") <= 2
    counts = [message.payload for message in avrt.read_outputs(out, "see")]
    assert counts[-1] >= 8  # it goes on from the state that it had
