"""One playing of a log: what is added to its times, and when the next one begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pass:
    """A pass over a log: what to add to its times, and the times that it spanned so far."""

    shift_ns: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    steps: int = 0

    @property
    def end_ns(self) -> int:
        """Its newest time, with what is added."""
        return self.shift_ns + self.last_ns

    def see(self, log_ns: int) -> None:
        """Take in the next log time that is played."""
        if self.first_ns is None:
            self.first_ns = log_ns
        elif log_ns > self.last_ns:
            self.steps += 1
        self.last_ns = log_ns

    def followed_by(self, first_ns: int) -> Pass:
        """Return the pass that begins one mean step after the end of this one, at a log time."""
        step_ns = (self.last_ns - (self.first_ns or 0)) // max(1, self.steps)
        return Pass(self.end_ns + step_ns - first_ns)
