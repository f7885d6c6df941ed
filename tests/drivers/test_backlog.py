"""What waits to be written is bounded, kept in order, and never waits for itself."""

import threading

import pytest
from small_stages import FOREVER_S

from avrt.drivers import backlog
from avrt.drivers.backlog import Passing


@pytest.fixture
def stuck(monkeypatch):
    """A backlog of at most ten calls whose thread is stuck until the event is set."""
    monkeypatch.setattr(backlog, "PASSING_MAX", 10)
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
