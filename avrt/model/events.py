"""What happened: the only inputs of the kernel. `handle(at_ns, events)` carries the time.

`job` and `activation` are the numbers the kernel gave out; `buffer` is a handle that the driver
chose and that no live message holds.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from avrt.model.frozen import frozen

Order: TypeAlias = Literal["stop", "stands", "moves", "reset"]
ORDERS: tuple[Order, ...] = ("stop", "stands", "moves", "reset")


@frozen
class Arrived:
    """A source's message is here.

    Attributes:
        capture_ns: mapped capture time, pipeline ns.
        log_ns: when the log, sensor or topic delivered it, pipeline ns.
    """

    source: str
    sequence: int
    capture_ns: int
    log_ns: int
    buffer: int


@frozen
class Started:
    """The worker began; the device's own time is stored beside the kernel's."""

    job: int
    device_ns: int


@frozen
class SegmentEnded:
    """One non-preemptable part of a job ended and another follows."""

    job: int


@frozen
class Completed:
    """The work is done and its output lies in `buffer`; `device_ns` is when the device was done."""

    job: int
    buffer: int
    device_ns: int


@frozen
class Failed:
    """The work ended with a fault: the kind of `avrt.errors.FaultError`."""

    job: int
    fault: str


@frozen
class Hung:
    """The worker does not answer; its stream is lost."""

    job: int


@frozen
class Voted:
    """What the voter answers.

    Attributes:
        verdict: of `avrt.safety`, in words for the record.
        buffer: the selected output, or that of a new message; None when nothing is selected, or
            nothing more is to be.
        held: `buffer` is a new message with what was accepted last.
        blamed: replicas whose output was wrong, late or missing; counted when their vote is over.
    """

    activation: int
    verdict: str
    buffer: int | None
    held: bool = False
    blamed: tuple[int, ...] = ()


@frozen
class StreamLost:
    """The stream of one task is gone with what was on it."""

    stream: str


@frozen
class StreamBack:
    """A stream that was lost works again, empty; of one that is there it changes nothing."""

    stream: str


@frozen
class DeviceLost:
    """A device is gone with every stream on it."""

    device: str


@frozen
class DeviceBack:
    """A device works again, with empty streams."""

    device: str


@frozen
class ModeRequested:
    """Supervision asks for another mode."""

    mode: str
    cause: str


@frozen
class Ordered:
    """Somebody who may tells the supervisor something; the kernel only keeps it in the journal.

    Attributes:
        order: "stop" asks for the last level; "reset" lets a vehicle that stands leave it; "stands"
            and "moves" say what the vehicle does.
    """

    order: Order


@frozen
class Read:
    """A reader outside the graph (the recorder) is done with a buffer."""

    buffer: int


@frozen
class Drain:
    """End of log or stop: timer releases cease, what is open finishes.

    `at_once`: nothing finishes any more; what is open is aborted.
    """

    at_once: bool = False


Event = (
    Arrived
    | Started
    | SegmentEnded
    | Completed
    | Failed
    | Hung
    | Voted
    | StreamLost
    | StreamBack
    | DeviceLost
    | DeviceBack
    | ModeRequested
    | Ordered
    | Read
    | Drain
)
