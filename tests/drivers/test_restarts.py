"""A stage that hung is made anew, a few times."""

import threading
from queue import SimpleQueue

import pytest

from avrt.drivers import restarts as module
from avrt.drivers.restarts import RESTARTS_MAX, WITHIN_NS, Restarts
from avrt.errors import SoftwareFault
from avrt.model.events import StreamBack


class Made:
    """A stream that was made."""

    closed = False

    def close(self):
        self.closed = True


class Clock:
    at = 0

    def now_ns(self):
        return self.at


class Immediate:
    """A thread that has done its work when it is started."""

    def __init__(self, target, args, **_keys):
        self.call = lambda: target(*args)

    def start(self):
        self.call()


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "clock", made)
    monkeypatch.setattr(module.threading, "Thread", Immediate)
    return made


@pytest.fixture
def restarts(clock):
    """Restarts whose streams are `Made`, and what became of them."""
    assert clock
    inbox, replaced, stopped = SimpleQueue(), [], threading.Event()
    made = Restarts(inbox, lambda _: Made(), lambda *pair: replaced.append(pair), stopped)
    made.inbox, made.replaced, made.stopped = inbox, replaced, stopped
    return made


def hang(restarts, task):
    """Let a stream hang, and the driver hear what comes of it."""
    restarts.hung(task)
    while not restarts.inbox.empty():
        restarts.inbox.get()(0)


def test_a_stream_is_replaced_on_the_drivers_thread_and_then_back(restarts):
    restarts.hung("see")
    assert restarts.replaced == []
    assert restarts.inbox.get()(7) == (StreamBack("see"),)
    ((task, stream),) = restarts.replaced
    assert task == "see"
    assert not stream.closed


def test_too_often_is_for_good_and_others_are_none_of_its_business(restarts):
    for _ in range(RESTARTS_MAX + 2):
        hang(restarts, "see")
    assert len(restarts.replaced) == RESTARTS_MAX
    hang(restarts, "plan")
    assert len(restarts.replaced) == RESTARTS_MAX + 1


def test_one_that_is_underway_is_enough(restarts):
    restarts.hung("see")
    restarts.hung("see")
    assert restarts.inbox.qsize() == 1


def test_what_is_long_ago_does_not_count(restarts, clock):
    for _ in range(RESTARTS_MAX):
        hang(restarts, "see")
    clock.at = WITHIN_NS
    hang(restarts, "see")
    assert len(restarts.replaced) == RESTARTS_MAX + 1


def test_a_stage_that_cannot_be_made_anew_stays_lost(clock):
    assert clock

    def make(_task):
        raise SoftwareFault("exception", "no")

    inbox = SimpleQueue()
    Restarts(inbox, make, lambda *_: None, threading.Event()).hung("see")
    assert inbox.get()(0) == ()


def test_a_stream_that_comes_after_the_end_is_closed(restarts):
    made = []
    restarts._make = lambda _task: made.append(Made()) or made[-1]
    restarts.stopped.set()
    restarts.hung("see")
    assert restarts.inbox.empty()
    assert made[0].closed
