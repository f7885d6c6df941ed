"""What a message says it is, beside what its source is known to be: AUTOSAR's E2E has a DataID so.

A topic's name proves nothing: a wrong remapping, a doubled node or another mode of the sensor puts
on it what stages do not expect, and most of it can be read all the same. So the first good message
says what a source is: its type, the frame it names, the form of its payload. From then on it must
say the same. Before that only this is known: frames that other sources are declared to have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from avrt.model.spec import SourceSpec


class Identity(NamedTuple):
    """What one message says it is: its type, the frame that it names, its payload's form."""

    type: str = ""
    frame: str = ""
    form: str = ""


class KnownIdentity:
    """What the messages of one source must say."""

    def __init__(self, frames_of_others: Collection[str] = ()) -> None:
        self._frames_of_others = frames_of_others
        self._known: Identity | None = None

    def is_foreign(self, said: Identity) -> bool:
        """Whether a message is another's, or of another form than those before it."""
        if self._known is None:
            return said.frame in self._frames_of_others
        return said != self._known

    def learn(self, said: Identity) -> None:
        """Take in what a good message says; the first one counts."""
        self._known = self._known or said


def frames_of_others(source: SourceSpec, sources: Sequence[SourceSpec]) -> frozenset[str]:
    """Return the frames that other sources are declared to have; none where its own is not told."""
    if not source.frame:
        return frozenset()
    return frozenset(other.frame for other in sources if other.frame) - {source.frame}
