"""A device that broke is tried again, after longer each time it breaks, and proves itself."""

import threading
from queue import SimpleQueue

import pytest

from avrt.drivers import revival as module
from avrt.drivers.revival import Revival
from avrt.drivers.shadows import Shadows
from avrt.errors import SoftwareFault
from avrt.model.events import DeviceBack
from avrt.safety.recovery import WAIT_NS_MAX, WAIT_NS_MIN

FOREVER_S = 60


class Clock:
    """Host time of which a wait takes exactly what is asked for."""

    def __init__(self):
        self.at = 0
        self.waits = []

    def now_ns(self):
        return self.at

    def wait(self, seconds):
        self.waits.append(round(seconds * 1e9))
        self.at += self.waits[-1]
        return False

    def is_set(self):
        return False


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "clock", made)
    monkeypatch.setattr(module.threading, "Thread", Immediate)
    return made


class Immediate:
    """A thread that has done its work when it is started."""

    def __init__(self, target, args, **_keys):
        self.call = lambda: target(*args)

    def start(self):
        self.call()


class Trial:
    """A trial that comes out as it is told, `begins` at its golden frames."""

    def __init__(self, *verdicts, begins=""):
        self.verdicts, self.begins, self.did = list(verdicts), begins, []

    def begin(self):
        return self.begins

    def verdict(self, _at_ns):
        return self.verdicts.pop(0)

    def join(self, _shadows):
        self.did.append("join")

    def leave(self, _shadows):
        self.did.append("leave")

    def close(self):
        self.did.append("close")


def broken(clock, answers, trial=lambda _: Trial("")):
    """Return a revival whose probe gives these answers in turn, its inbox, and who is back."""
    inbox, back = SimpleQueue(), []
    revival = Revival(inbox, lambda _: next(answers), trial, Shadows(), clock)
    revival.back = back.append
    return revival, inbox, back


def told(inbox):
    """Let the driver take all that has come; return the events."""
    return [event for _ in range(inbox.qsize()) for event in inbox.get()(0)]


ALWAYS = iter(lambda: True, None)


def test_it_is_back_once_a_probe_says_so(clock):
    revival, inbox, back = broken(clock, iter([False, False, True]))
    revival.lost("gpu")
    assert clock.waits == [WAIT_NS_MIN, 2 * WAIT_NS_MIN, 4 * WAIT_NS_MIN]
    assert told(inbox) == [DeviceBack("gpu")]
    assert back == ["gpu"]


def test_one_that_breaks_again_waits_twice_as_long_up_to_a_limit(clock):
    revival, inbox, _ = broken(clock, ALWAYS)
    for _ in range(9):
        revival.lost("gpu")
        told(inbox)
    assert clock.waits[:4] == [WAIT_NS_MIN, 2 * WAIT_NS_MIN, 4 * WAIT_NS_MIN, 8 * WAIT_NS_MIN]
    assert clock.waits[-1] == WAIT_NS_MAX


def test_one_that_worked_for_long_begins_anew(clock):
    revival, inbox, _ = broken(clock, ALWAYS)
    for _ in range(2):
        revival.lost("gpu")
        told(inbox)
        clock.at += WAIT_NS_MAX
    assert clock.waits == [WAIT_NS_MIN, WAIT_NS_MIN]


def test_a_probe_that_raises_means_no(clock):
    answers = iter([RuntimeError("CUDA error"), True])

    def probe(_device):
        answer = next(answers)
        if answer is not True:
            raise answer
        return answer

    inbox = SimpleQueue()
    Revival(inbox, probe, lambda _: Trial(""), Shadows(), clock).lost("gpu")
    assert told(inbox) == [DeviceBack("gpu")]


def test_nobody_tries_once_the_run_is_over():
    stopped, tried = threading.Event(), []
    stopped.set()
    Revival(SimpleQueue(), tried.append, lambda _: Trial(""), Shadows(), stopped).lost("gpu")
    assert not tried


def test_it_is_back_once_its_trial_is_over_and_not_before(clock):
    trial = Trial(None, None, "")
    revival, inbox, back = broken(clock, ALWAYS, lambda _: trial)
    revival.lost("gpu")
    assert clock.waits == [WAIT_NS_MIN, module.LOOK_NS, module.LOOK_NS]
    assert back == []
    assert told(inbox) == [DeviceBack("gpu")]
    assert trial.did == ["join", "leave"]
    assert back == ["gpu"]


def test_one_that_fails_begins_from_the_start_after_the_next_wait(clock, caplog):
    trials = [Trial(begins="see: it differs"), Trial(None, "plan: it differs"), Trial("")]
    made = list(trials)
    revival, inbox, _ = broken(clock, ALWAYS, lambda _: made.pop(0))
    revival.lost("gpu")
    assert clock.waits == [WAIT_NS_MIN, 2 * WAIT_NS_MIN, module.LOOK_NS, 4 * WAIT_NS_MIN]
    assert told(inbox) == [DeviceBack("gpu")]
    assert [trial.did for trial in trials] == [["close"], ["join", "leave"], ["join", "leave"]]
    assert caplog.messages == [
        "device gpu did not prove itself: see: it differs",
        "device gpu did not prove itself: plan: it differs",
    ]


def test_the_third_failure_within_ten_minutes_is_the_last(clock, caplog):
    revival, inbox, back = broken(clock, ALWAYS, lambda _: Trial("see: it differs"))
    revival.lost("gpu")
    assert told(inbox) == back == []
    assert len(clock.waits) == 3
    assert revival.out == {"gpu": "see: it differs"}
    assert caplog.messages[-1] == (
        "device gpu did not prove itself 3 times within 10 min: it stays out"
    )


def test_a_stage_that_cannot_be_made_for_it_is_a_failure(clock):
    revival, inbox, _ = broken(clock, ALWAYS, lambda _: SoftwareFault("exception", "no memory"))
    revival.lost("gpu")
    assert told(inbox) == []
    assert revival.out == {"gpu": "exception: no memory"}


def test_a_trial_that_outlasts_the_run_tells_nothing(clock, monkeypatch):
    revival, inbox, _ = broken(clock, ALWAYS, lambda _: Trial(None, None))
    monkeypatch.setattr(clock, "wait", lambda seconds: seconds < 1)
    revival.lost("gpu")
    assert told(inbox) == []
    assert revival.out == {}
