"""What a user writes to feed a pipeline live: a class that waits for its sensor and reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sensor measured.

    Attributes:
        payload: one of `avrt.payload`, of the kind that the source's type says.
        age_ns: how long ago it was captured, host time.
        frame: its coordinate frame; "" for the one that the pipeline file says.
    """

    payload: object
    age_ns: int = 0
    frame: str = ""


class Source:
    """Base of live sources; `params` of the pipeline file go to the constructor of a subclass.

    `open`, and then `read` again and again, are called on a thread of the source's own. A reading
    is delivered at the moment at which `read` returns it. Its arrays become read-only: make new
    ones for the next.
    """

    def open(self) -> None:
        """Connect to the sensor; called once, before pipeline time begins."""

    def read(self) -> Reading | None:
        """Wait for the next reading; None means that no more will come."""
        raise NotImplementedError

    def close(self) -> None:
        """Let a `read` that waits return None; called from another thread."""
