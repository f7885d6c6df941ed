"""The conformance suite on every device there is, and that it fails devices that break a rule.

On CUDA it counts as not run where there is no device; the reason is shown, never a pass.
"""

from __future__ import annotations

import pytest
import torch

from avrt.device import CpuDevice, CudaDevice, SimulatedDevice, conformance
from avrt.errors import SpecError

MAKERS = {"cpu": CpuDevice, "simulated": SimulatedDevice, "cuda": CudaDevice}
MARKS = {"cpu": [pytest.mark.live], "simulated": [], "cuda": [pytest.mark.gpu]}


def all_of_them():
    for check in conformance.CHECKS:
        virtual = check.test.__module__.endswith(".virtual")
        for name in ["simulated"] if virtual else MAKERS:
            slow = [pytest.mark.slow] if check.slow else []
            yield pytest.param(
                check, name, marks=[*MARKS[name], *slow], id=f"{check.test.__name__}-{name}"
            )


@pytest.mark.parametrize(("check", "name"), list(all_of_them()))
def test_the_device_conforms(check, name):
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("not run: no CUDA device")
    verdict = conformance.run_check(check, MAKERS[name], name)
    if verdict.outcome == "not run":
        pytest.skip(f"not run: {verdict.reason}")
    assert verdict.outcome == "passed", verdict.reason


class DeafToEvents(SimulatedDevice):
    def wait(self, stream, mark):
        pass


class BoundToTheLatest(SimulatedDevice):
    """Whoever waits for a recording waits for the next one, too."""

    def __init__(self):
        super().__init__()
        self.latest = {}

    def record(self, stream, *, timing):
        mark = super().record(stream, timing=timing)
        before = self.latest.get(stream.name)
        self.latest[stream.name] = mark
        for other in self._streams:
            for index, step in enumerate(other.steps):
                if step.kind == "wait" and step.mark is before:
                    other.steps[index] = step._replace(mark=mark)
        return mark


class Forgiving(SimulatedDevice):
    """Errors do not stay."""

    def submit(self, stream, operation):
        super().submit(stream, operation)
        super().reset(stream)


class Discreet(SimulatedDevice):
    """Errors stay but do not travel."""

    def wait(self, stream, mark):
        super().wait(stream, mark)
        super().reset(stream)


class Unforgiving(SimulatedDevice):
    def reset(self, stream):
        pass


class Lifo(SimulatedDevice):
    def submit(self, stream, operation):
        super().submit(stream, operation)
        stream.steps.rotate(1)


class Hasty(SimulatedDevice):
    """The host does not wait."""

    def await_mark(self, mark, timeout_ns):
        del timeout_ns
        mark.done = True


class Optimist(SimulatedDevice):
    def passed(self, mark):
        del mark
        return True


class Swift(SimulatedDevice):
    """Everything costs half."""

    def __init__(self):
        super().__init__()
        self.slow = lambda _name: 0.5


BROKEN = {
    DeafToEvents: "an event orders two streams",
    BoundToTheLatest: "a wait means the recording of that moment",
    Forgiving: "an error is kept and what follows is skipped",
    Discreet: "an error travels with an event",
    Unforgiving: "a reset lets the stream go on",
    Lifo: "a stream is a fifo",
    Hasty: "a host wait times out",
    Optimist: "a query tells before and after",
    Swift: "elapsed time is at least the work",
}


@pytest.mark.parametrize("broken", list(BROKEN), ids=lambda device: device.__name__)
def test_a_device_that_breaks_a_rule_fails(broken):
    (check,) = [check for check in conformance.CHECKS if check.name == BROKEN[broken]]
    assert conformance.run_check(check, broken, "broken").outcome == "FAILED"


def test_what_cannot_be_made_is_not_run_and_says_why():
    def missing():
        raise SpecError("no such device")

    verdicts = conformance.run(missing, "none")
    assert len(verdicts) == len(conformance.CHECKS)
    assert {(verdict.outcome, verdict.reason) for verdict in verdicts} == {
        ("not run", "no such device")
    }


def test_a_failure_says_where():
    def always_wrong(rig):
        rig.executor.stream("s")
        raise ValueError("wrong")

    verdict = conformance.run_check(conformance.Check(always_wrong), SimulatedDevice, "x")
    assert verdict.name == "always wrong"
    assert verdict.outcome == "FAILED"
    assert verdict.reason.startswith("ValueError: wrong at ")
    assert "test_conformance.py:" in verdict.reason


def test_run_gives_a_verdict_a_test_in_order():
    verdicts = conformance.run(SimulatedDevice, "simulated", conformance.CHECKS[:3])
    assert [verdict.outcome for verdict in verdicts] == ["passed"] * 3
    assert [v.name for v in verdicts] == [check.name for check in conformance.CHECKS[:3]]
    assert conformance.failed(verdicts) == []


def test_the_table_shows_every_outcome_and_its_reason():
    verdicts = [
        conformance.Verdict("one rule", "cpu", "passed"),
        conformance.Verdict("one rule", "cuda", "not run", "no CUDA device"),
        conformance.Verdict("other rule", "cpu", "FAILED", "AssertionError: 1"),
    ]
    assert conformance.table(verdicts).splitlines() == [
        "                  cpu       cuda",
        "one rule       passed    not run",
        "other rule     FAILED           ",
        "",
        "cpu: 1 passed, 1 FAILED, 0 not run",
        "cuda: 0 passed, 0 FAILED, 1 not run",
        "",
        "cuda: not run (no CUDA device): one rule",
        "cpu: FAILED (AssertionError: 1): other rule",
    ]
