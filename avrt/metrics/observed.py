"""What one run of a fault campaign showed, and by what it is judged: plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.model.campaign import Detector
    from avrt.model.message import Message, Origin

    Differs = Callable[[str, object, object], bool]

Quality = Literal["good", "other", "less", "wrong", "lost"]
QUALITIES: tuple[Quality, ...] = ("good", "other", "less", "wrong", "lost")
"""What becomes of an output, as `compared` tells."""


FTTI_NS = 500 * NS_PER_MS
"""The fault-tolerant time from perception to plan: an assumption."""


@dataclass(frozen=True, slots=True)
class Output:
    """One published message of a critical stage."""

    capture_ns: int
    publish_ns: int
    payload: object
    degraded: bool
    origins: Mapping[str, Origin]


def output_of(message: Message[object]) -> Output:
    stamp = message.stamp
    return Output(
        stamp.capture_ns, stamp.publish_ns, message.payload, message.degraded, message.origins
    )


@dataclass(frozen=True, slots=True)
class Detection:
    """Something that told of a fault."""

    at_ns: int
    by: Detector
    what: str


@dataclass(slots=True)
class Observed:
    """What one run showed.

    Attributes:
        outputs: of each critical stage, in the order of their publication.
        levels: when which level of the ladder was entered.
        injected_ns: when each fault first had an effect, those that had one, in order.
        crash: why it did not come to its end, or "".
        digest: of its decisions.
        sensors: when the state of which sensor changed, and whether it is ok since.
    """

    outputs: dict[str, list[Output]] = field(default_factory=dict)
    detections: list[Detection] = field(default_factory=list)
    levels: list[tuple[int, str]] = field(default_factory=list)
    injected_ns: list[int] = field(default_factory=list)
    crash: str = ""
    digest: str = ""
    sensors: list[tuple[int, str, bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Course:
    """A run with faults over time.

    Attributes:
        outputs: of each critical stage, when outputs of each quality were published, or were to be.
        levels: at which level of the ladder it was from when on, the first one from 0; empty where
            there is no ladder.
        last: the last level of the ladder, at which it stops.
        end_ns: when the golden run published for the last time.
    """

    outputs: Mapping[str, Mapping[Quality, Sequence[int]]]
    levels: Sequence[tuple[int, str]]
    last: str
    end_ns: int


@dataclass(frozen=True, slots=True)
class Rules:
    """What outcomes are judged by.

    Attributes:
        differs: whether two payloads of a stage differ beyond what its kind allows.
        runs_at: the critical stages that run at each level, the best first; one level named ""
            where there is no ladder.
        same_at: those of them that run at a level as at the first one, with all that is before
            them.
        silent_ns: how long a critical stage may be silent.
        near_ns: by source, half of the time between two captures.
        told_ns: for how long what told of a fault still holds when another one has begun.
    """

    differs: Differs
    runs_at: Mapping[str, frozenset[str]]
    same_at: Mapping[str, frozenset[str]]
    silent_ns: int
    near_ns: Mapping[str, int] = field(default_factory=dict)
    told_ns: int = FTTI_NS

    @property
    def first(self) -> str:
        return next(iter(self.runs_at))

    @property
    def last(self) -> str:
        return list(self.runs_at)[-1]
