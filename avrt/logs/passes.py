"""One playing of a run of a log: what is added to its times, and when the next one begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pass:
    """One playing of a run: what to add to its times, and the times that it spanned so far."""

    shift_ns: int = 0
    run: int = 0
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

    def following(self, run: int, begins_ns: int) -> Pass:
        """Return the pass of a run that begins one mean step after the end of this one."""
        step_ns = (self.last_ns - (self.first_ns or 0)) // max(1, self.steps)
        return Pass(self.end_ns + step_ns - begins_ns, run)
