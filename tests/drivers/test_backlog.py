"""What waits to be written without making anybody wait."""

import threading

import pytest

from avrt.drivers import backlog as module
from avrt.drivers.backlog import Passing

FOREVER_S = 60


@pytest.fixture
def held():
    """A backlog whose thread is at work on a call until the gate opens."""
    entered, gate = threading.Event(), threading.Event()
    backlog = Passing()

    def hold():
        entered.set()
        assert gate.wait(FOREVER_S)

    backlog.put(hold)
    assert entered.wait(FOREVER_S)
    backlog.gate = gate
    yield backlog
    gate.set()


def test_calls_are_made_in_order_before_close_returns(held):
    made = []
    for number in range(1000):
        held.put(lambda number=number: made.append(number))
    assert not made
    held.gate.set()
    held.close()
    assert made == list(range(1000))


def test_messages_without_room_are_refused_and_lines_never(held, monkeypatch):
    monkeypatch.setattr(module, "PASSING_MESSAGES_MAX", 3)
    made = []
    taken = [held.put_message(lambda n=n: made.append(n)) for n in range(5)]
    held.put(lambda: made.append("line"))
    assert taken == [True, True, True, False, False]
    held.gate.set()
    held.close()
    assert made == [0, 1, 2, "line"]


def test_there_is_room_again_once_messages_are_made(monkeypatch):
    monkeypatch.setattr(module, "PASSING_MESSAGES_MAX", 1)
    backlog, done = Passing(), threading.Event()
    assert backlog.put_message(done.set)
    assert done.wait(FOREVER_S)
    assert backlog.put_message(lambda: None)
    backlog.close()


def test_what_a_call_raises_is_raised_at_the_end_and_the_rest_is_made():
    backlog, made = Passing(), []

    def fail():
        raise ValueError("a bug")

    backlog.put(fail)
    backlog.put(lambda: made.append(1))
    with pytest.raises(ValueError, match="a bug"):
        backlog.close()
    assert made == [1]


def test_its_thread_is_set_up_before_it_makes_anything():
    seen = []
    backlog = Passing(lambda: seen.append(threading.current_thread().name))
    backlog.put(lambda: seen.append("call"))
    backlog.close()
    assert seen == ["avrt-record", "call"]


@pytest.fixture
def stuck(monkeypatch):
    """A backlog of at most ten calls whose thread is stuck until the event is set."""
    monkeypatch.setattr(module, "PASSING_MAX", 10)
    gate = threading.Event()
    passing = Passing(lambda: gate.wait(FOREVER_S))
    yield passing, gate
    gate.set()
    passing.close()


def test_whoever_puts_more_than_may_wait_makes_the_oldest_itself(stuck):
    passing, _ = stuck
    made = []
    for number in range(100):
        passing.put(lambda number=number: made.append(number))
        assert len(passing._calls) <= 10
    assert made == list(range(len(made)))
    assert len(made) >= 90


def test_a_call_that_puts_more_does_not_wait_for_itself(stuck):
    passing, gate = stuck
    made, done = [], threading.Event()

    def many():
        for number in range(100):
            passing.put(lambda number=number: made.append(number))
        passing.put(done.set)

    passing.put(many)
    gate.set()
    assert done.wait(FOREVER_S)
    assert made == list(range(100))
