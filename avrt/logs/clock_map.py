"""From a sensor's own clock to the log's: one offset a sender, and an account of what is odd.

The *lag* of a message is its log time less its stamp. A steady lag is latency, a large one another
clock: the offset is declared, or it is the first lag that exceeds a second, and else 0. Stamps then
go wrong in ways that mean different things, and each is told apart:

* `stamp_duplicate`: the same stamp as the message before. Sensors that send several clouds a cycle
  do it, and readers that poll faster than the sensor.
* `stamp_back`: it goes back by less than a second: messages out of order. Below `BACK_NS_MIN` it is
  a clock's rounding, and ignored.
* `stamp_gap`: stamps and log both go on after a hole of more than `GAP_PERIODS` usual steps: the
  sensor paused, or messages are missing.
* `stamp_jump`: the lag changes by more than a second because the stamp moved and the log did not.
  The offset moves with it, so mapped times go on where they were.
* `clock_drift`: the lag grows or shrinks evenly (`drift` says when). From then on the offset moves
  with it, so mapped times stay as far from the log's as they are; what it was before is kept.
* `rate_differs`: messages come at another rate than the pipeline declares.
* `loop`: such a jump back among stamps that were seen before. The drive begins anew: so does the
  source's epoch, and whoever keeps state by time begins anew with it.

A lag that grows because the log is late (a recorder that stalls and then writes a burst) is
latency: nothing is odd about the stamps. Nor is jitter: the usual step is the upper decile of the
last `STEPS`, so sources that send bursts have theirs, too. None of this changes which messages are
delivered.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.logs.drift import Drift
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[str, str], None]

OFFSET_NS_MAX = NS_PER_S  # latency of a sensor and its bus stays below, another clock does not
BACK_NS_MIN = 1_000_000  # ros2/geometry2 issue 347: 85 us back must not count as a jump
GAP_STEPS = 3  # a lost message makes a step of two periods, jitter of half a period less than two
STEPS, STEPS_MIN = 31, 16  # the last steps that tell what is usual, and how many it takes
RATE_MESSAGES = 40  # after so many messages their rate is compared with the declared one
RATE_FACTOR = 1.5
SEGMENTS_MAX = 64  # jumps that a returning clock is recognised over
KNOWN_JUMPS = {37: "TAI is 37 s ahead of UTC", 18: "GPS time is 18 s ahead of UTC"}
KNOWN_NS_NEAR = NS_PER_S // 2  # less than the second that tells the known jumps apart


@dataclass(slots=True)
class Segment:
    """The stamps between two jumps: the earliest, the latest, and the last lag."""

    first_ns: int
    last_ns: int
    lag_ns: int


@dataclass(slots=True)
class ClockMap:
    """The clock of one sender of a source's messages.

    Attributes:
        offset_ns: added to its stamps; None until the first message tells.
        period_ns: as the user declared it, or None.
        epoch: how often its stamps began anew.
        jumped: the newest message had a `stamp_jump`.
    """

    offset_ns: int | None = None
    period_ns: int | None = None
    epoch: int = 0
    jumped: bool = False
    _stamp_ns: int | None = None
    _log_ns: int = 0
    _messages: int = 0
    _drift: Drift = field(default_factory=Drift)
    _steady: int = 0
    _steady_ns: int = 0
    _steps: deque[int] = field(default_factory=lambda: deque(maxlen=STEPS))
    _segments: deque[Segment] = field(default_factory=lambda: deque(maxlen=SEGMENTS_MAX))

    def capture_ns(self, stamp_ns: int, log_ns: int, tell: Tell) -> int:
        """Return when a message was captured, in the log's clock.

        Messages are given in the order of the log; `tell` takes the kind and detail of what is odd.
        """
        lag_ns = log_ns - stamp_ns
        self.jumped = False
        if self.offset_ns is None:
            self.offset_ns = _estimate_offset_ns(lag_ns, tell)
        if self._stamp_ns is None:
            self._segments.append(Segment(stamp_ns, stamp_ns, lag_ns))
        else:
            step_ns, logged_ns = stamp_ns - self._stamp_ns, log_ns - self._log_ns
            self.offset_ns += logged_ns * self._drift.ppb // NS_PER_S
            if self._is_jump(step_ns, logged_ns):
                self._drift.begin_anew()
                self.offset_ns += logged_ns - step_ns
                self._jump(stamp_ns, lag_ns, step_ns - logged_ns, tell)
            else:
                self._go_on(step_ns, tell)
        self._stamp_ns, self._log_ns = stamp_ns, log_ns
        self._check_rate(tell)
        self._check_drift(log_ns, lag_ns, tell)
        segment = self._segments[-1]
        segment.first_ns = min(segment.first_ns, stamp_ns)
        segment.last_ns = max(segment.last_ns, stamp_ns)
        segment.lag_ns = lag_ns
        return stamp_ns + self.offset_ns

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self._stamp_ns = None
        self._segments.clear()
        self._drift.begin_anew()

    def _is_jump(self, step_ns: int, logged_ns: int) -> bool:
        """Whether the stamp moved against the log, rather than the log against the stamps."""
        usual_ns = self._usual_step_ns() or 0
        return abs(step_ns - logged_ns) > OFFSET_NS_MAX and abs(step_ns - usual_ns) > OFFSET_NS_MAX

    def _jump(self, stamp_ns: int, lag_ns: int, jump_ns: int, tell: Tell) -> None:
        size = format_ns(abs(jump_ns))
        *earlier, _ = self._segments
        returns = any(abs(lag_ns - segment.lag_ns) <= OFFSET_NS_MAX for segment in earlier)
        seen = any(s.first_ns <= stamp_ns <= s.last_ns for s in self._segments)
        if seen and jump_ns < 0 and not returns:
            tell("loop", f"stamps go back {size} to where they were before; state begins anew")
            self._begin_epoch()
        else:
            self.jumped = True
            way = "ahead of" if jump_ns > 0 else "back against"
            tell("stamp_jump", f"stamps jump {size} {way} the log{_suspect(jump_ns)}")
        self._segments.append(Segment(stamp_ns, stamp_ns, lag_ns))

    def _go_on(self, step_ns: int, tell: Tell) -> None:
        usual_ns = self._usual_step_ns()
        if usual_ns is not None and step_ns > GAP_STEPS * usual_ns:
            what = f"no stamp for {format_ns(step_ns)}, where {format_ns(usual_ns)} is usual"
            tell("stamp_gap", what)
        else:
            self._steady, self._steady_ns = self._steady + 1, self._steady_ns + step_ns
        if step_ns == 0:
            tell("stamp_duplicate", "the stamp of the message before, again")
        elif step_ns <= -BACK_NS_MIN:
            tell("stamp_back", f"the stamp is {format_ns(-step_ns)} before the one before it")
        elif step_ns > 0:
            self._steps.append(step_ns)

    def _usual_step_ns(self) -> int | None:
        """Return the declared period, or what is usual here where that is longer or none is."""
        if len(self._steps) >= STEPS_MIN:
            return max(self.period_ns or 0, sorted(self._steps)[len(self._steps) * 9 // 10])
        if self.period_ns is None or not self._steps:
            return self.period_ns
        return max(self.period_ns, sorted(self._steps)[len(self._steps) // 2])

    def _check_drift(self, log_ns: int, lag_ns: int, tell: Tell) -> None:
        """Tell when a drift begins."""
        if self._drift.take(log_ns, lag_ns):
            ppb = self._drift.ppb
            way = "slow" if ppb > 0 else "fast"
            tell("clock_drift", f"its clock is {abs(ppb) / 1000:.0f} ppm {way}; its offset follows")

    def _check_rate(self, tell: Tell) -> None:
        """Tell once that messages come at another rate than the pipeline declares.

        Neither a hole nor a jump is a rate.
        """
        self._messages += 1
        if self.period_ns is None or self._messages != RATE_MESSAGES or not self._steady:
            return
        found_ns = self._steady_ns / self._steady
        if not self.period_ns / RATE_FACTOR < found_ns < self.period_ns * RATE_FACTOR:
            found = f"{NS_PER_S / found_ns:.4g} Hz" if found_ns > 0 else "no rate"
            tell("rate_differs", f"{NS_PER_S / self.period_ns:.4g} Hz is declared, it has {found}")


def _estimate_offset_ns(lag_ns: int, tell: Tell) -> int:
    if abs(lag_ns) <= OFFSET_NS_MAX:
        return 0
    size, way = f"{abs(lag_ns) / NS_PER_S:.3f} s", "ahead of" if lag_ns > 0 else "behind"
    tell("clock_offset", f"the log is {size} {way} the stamps; each is moved by that")
    return lag_ns


def _suspect(jump_ns: int) -> str:
    for seconds, what in KNOWN_JUMPS.items():
        if abs(abs(jump_ns) - seconds * NS_PER_S) <= KNOWN_NS_NEAR:
            return f" ({what}: has the sensor changed its time scale?)"
    return ""
