"""What travels between stages: a payload, its stamp, and what it rests on.

Times are ns since the pipeline's zero point (the log time of the first message of a replay, the
start of a live run). `capture_ns` is always the *mapped* capture time: the sensor's own stamp plus
the offset of its clock. Raw stamps are kept in the run record, never used to decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PayloadT_co = TypeVar("PayloadT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where a message comes from and when: all times are pipeline ns.

    Attributes:
        source: name of the source or stage that made it.
        sequence: counts the messages of that source from 0.
        capture_ns: when the sensor saw it; a stage's output carries its trigger's.
        capture_end_ns: end of the exposure or sweep, inclusive; equal to `capture_ns` if unknown.
        publish_ns: when consumers could first read it.
        frame: coordinate frame of the payload.
        epoch: how often the source's clock had begun anew by then: a log that is played in a loop
            shows the same drive again, and what was believed before no longer holds.
    """

    source: str
    sequence: int
    capture_ns: int
    capture_end_ns: int
    publish_ns: int
    frame: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Oldest and newest capture time of one source that a message rests on (pipeline ns)."""

    oldest_ns: int
    newest_ns: int

    def merge(self, other: Origin) -> Origin:
        return Origin(min(self.oldest_ns, other.oldest_ns), max(self.newest_ns, other.newest_ns))


@dataclass(frozen=True, slots=True)
class Message(Generic[PayloadT_co]):
    """One payload with its stamp; data age is O(1) from `origins`.

    Attributes:
        origins: per source, the oldest and newest capture time this message rests on.
        degraded: it was made without an input that it would normally have, or too few copies of its
            stage agree on it.
        speculative: it may still be withdrawn.
        digest: of the payload when it was published, for its readers to check; empty where nobody
            is to. Not part of what a record holds.
    """

    stamp: Stamp
    payload: PayloadT_co
    origins: Mapping[str, Origin] = field(default_factory=dict)
    degraded: bool = False
    speculative: bool = False
    digest: bytes = field(default=b"", metadata={"recorded": False})


def merge_origins(inputs: Iterable[Mapping[str, Origin]]) -> dict[str, Origin]:
    """Return the origins of something made from these inputs."""
    merged: dict[str, Origin] = {}
    for origins in inputs:
        for source, origin in origins.items():
            known = merged.get(source)
            merged[source] = origin if known is None else known.merge(origin)
    return merged
