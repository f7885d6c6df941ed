"""The state of a stage as its variants take turns, and as its stream is made anew."""

import queue

import pytest

import avrt
from avrt.exec import stream as module
from avrt.exec.stream import Stream

FOREVER_S = 60


class Counting(avrt.Stage):
    """Counts its jobs; at first it takes no state as often as it is told."""

    def __init__(self, title="full", refusals=0):
        self.title, self.count, self.refusals = title, 0, refusals

    def process(self):
        self.count += 1
        return [self.title, self.count]

    def freeze(self):
        return self.count

    def thaw(self, state):
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("not now")
        self.count = state


class Other(Counting):
    """Another class with a state of its own."""


@pytest.fixture
def make():
    """Return a function that makes a warm stream of a stage and its variants."""
    streams = []

    def made(stage=None, *, keeps=False, **variants):
        told = {name: (variant, "") for name, variant in variants.items()}
        streams.append(Stream("it", stage or Counting(), variants=told, keeps=keeps))
        assert streams[-1].warm().result().fault is None
        return streams[-1]

    yield made
    for stream in streams:
        stream.close()


def go(stream, times=1, *, variant="", anew=False):
    """Do jobs; return what the last one made, or its fault."""
    results = queue.Queue()
    for _ in range(times):
        stream.begin({}, results.put, variant=variant, anew=anew)
    found = [results.get(timeout=FOREVER_S) for _ in range(times)]
    return found[-1].fault or found[-1].payload


def settled(stream):
    """Wait for what a stream does behind its last job."""
    stream.state().result(timeout=FOREVER_S)


def test_a_variant_of_the_same_class_takes_over_the_state_and_gives_it_back(make):
    stream = make(light=Counting("light"))
    go(stream, 5)
    assert list(go(stream, 2, variant="light")) == ["light", 7]
    assert list(go(stream)) == ["full", 8]


def test_a_variant_of_another_class_begins_with_its_own_first_state_each_time(make):
    stream = make(other=Other("other"))
    go(stream, 5)
    assert list(go(stream, 2, variant="other")) == ["other", 2]
    assert list(go(stream)) == ["full", 1]
    assert list(go(stream, variant="other")) == ["other", 1]


def test_a_state_that_could_not_be_taken_over_is_taken_over_by_the_next_job(make):
    stream = make(light=Counting("light", refusals=1))
    go(stream, 5)
    assert go(stream, variant="light").kind == "exception"
    assert list(go(stream, variant="light")) == ["light", 6]


def test_a_replica_takes_over_the_variant_with_its_state(make):
    one, two = make(other=Other("other")), make(other=Other("other"))
    go(one, 3)
    go(two, 3)
    go(one, 4, variant="other")
    two.adopt(one.state())
    assert list(go(one, variant="other")) == list(go(two, variant="other")) == ["other", 5]


@pytest.fixture
def always_kept(monkeypatch):
    monkeypatch.setattr(module, "CHECKPOINT_NS", 0)


@pytest.mark.usefixtures("always_kept")
def test_a_stream_that_takes_the_place_of_another_goes_on_from_its_checkpoint(make, monkeypatch):
    first, second, third = (make(keeps=True) for _ in range(3))
    go(first, 5)
    settled(first)
    monkeypatch.setattr(module, "CHECKPOINT_NS", 10**18)
    second.resume(first.checkpoint)
    assert list(go(second)) == ["full", 6]
    third.resume(second.checkpoint)  # the second hung before it had one of its own
    assert list(go(third)) == ["full", 6]


@pytest.mark.usefixtures("always_kept")
def test_nothing_of_before_is_kept_for_a_stage_that_begins_anew(make):
    stream = make(keeps=True)
    go(stream, 5)
    settled(stream)
    assert stream.checkpoint == ("", 5)
    go(stream, anew=True)
    settled(stream)
    assert stream.checkpoint == ("", 1)
