"""Conformance of errors: the first one is kept, travels with events, and ends by reset only."""

from __future__ import annotations

from functools import partial

from avrt.device.base import StreamPoisoned
from avrt.device.conformance.rig import Rig, integers, read
from avrt.errors import raised_by


class Broken(Exception):  # noqa: N818 - what a kernel of a test raises
    """A kernel failed."""


def breaks(text: str) -> None:
    """Fail as a kernel."""
    raise Broken(text)


def an_error_is_kept_and_what_follows_is_skipped(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    buffer, number = integers(executor, stream)
    executor.launch(stream, partial(breaks, "first"))
    executor.launch(stream, partial(number.fill_, 1), writes=(buffer,))
    for _ in range(2):
        error = raised_by(partial(executor.synchronize, stream))
        assert isinstance(error, Broken), error
    assert isinstance(stream.error, Broken)
    executor.reset(stream)
    assert read(executor, stream, buffer) == [0]


def an_error_travels_with_an_event(rig: Rig) -> None:
    executor = rig.executor
    one, two, three = (executor.stream(name) for name in ("one", "two", "three"))
    buffer, number = integers(executor, three)
    executor.launch(one, partial(breaks, "first"))
    executor.wait(two, executor.record(one))
    executor.wait(three, executor.record(two))
    executor.launch(three, partial(number.fill_, 1), writes=(buffer,))
    error = raised_by(partial(executor.synchronize, three))
    assert isinstance(error, StreamPoisoned), error
    assert isinstance(error.__cause__, StreamPoisoned), error.__cause__
    assert isinstance(error.__cause__.__cause__, Broken), error.__cause__.__cause__
    executor.reset(three)
    assert read(executor, three, buffer) == [0]


def the_first_error_is_kept(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    executor.launch(one, partial(breaks, "one"))
    failed = executor.record(one)
    executor.launch(two, partial(breaks, "two"))
    executor.wait(two, failed)
    error = raised_by(partial(executor.synchronize, two))
    assert isinstance(error, Broken), error
    assert str(error) == "two"


def a_reset_lets_the_stream_go_on(rig: Rig) -> None:
    executor = rig.executor
    stream, other = executor.stream("s"), executor.stream("other")
    buffer, number = integers(executor, stream)
    executor.launch(stream, partial(breaks, "first"))
    executor.launch(stream, partial(number.add_, 100), writes=(buffer,))
    executor.reset(stream)
    executor.launch(stream, partial(number.add_, 1), writes=(buffer,))
    executor.wait(other, executor.record(stream))
    assert read(executor, stream, buffer) == [1], "work from before the reset ran"
    executor.synchronize(other)
    assert stream.error is None
