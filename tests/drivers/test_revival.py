"""A device that broke is tried again, after longer each time it breaks."""

import threading
from queue import SimpleQueue

import pytest

from avrt.drivers import revival as module
from avrt.drivers.revival import WAIT_NS_MAX, WAIT_NS_MIN, Revival
from avrt.model.events import DeviceBack

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


def broken(clock, answers):
    """Return a revival whose probe gives these answers in turn."""
    inbox, back = SimpleQueue(), []
    revival = Revival(inbox, lambda _: next(answers), back.append, clock)
    return revival, inbox, back


def test_it_is_back_once_a_probe_says_so(clock):
    revival, inbox, back = broken(clock, iter([False, False, True]))
    revival.lost("gpu")
    assert clock.waits == [WAIT_NS_MIN, 2 * WAIT_NS_MIN, 4 * WAIT_NS_MIN]
    assert inbox.get()(0) == (DeviceBack("gpu"),)
    assert back == ["gpu"]


def test_one_that_breaks_again_waits_twice_as_long_up_to_a_limit(clock):
    revival, inbox, _ = broken(clock, iter(lambda: True, None))
    for _ in range(9):
        revival.lost("gpu")
        inbox.get()(0)
    assert clock.waits[:4] == [WAIT_NS_MIN, 2 * WAIT_NS_MIN, 4 * WAIT_NS_MIN, 8 * WAIT_NS_MIN]
    assert clock.waits[-1] == WAIT_NS_MAX


def test_one_that_worked_for_long_begins_anew(clock):
    revival, inbox, _ = broken(clock, iter(lambda: True, None))
    for _ in range(2):
        revival.lost("gpu")
        inbox.get()(0)
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
    Revival(inbox, probe, lambda _: None, clock).lost("gpu")
    assert inbox.get()(0) == (DeviceBack("gpu"),)


def test_nobody_tries_once_the_run_is_over():
    stopped, tried = threading.Event(), []
    stopped.set()
    Revival(SimpleQueue(), tried.append, lambda _: None, stopped).lost("gpu")
    assert not tried
