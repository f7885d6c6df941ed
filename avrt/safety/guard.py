"""The guard of one source: which messages are fit for stages, and whether its sensor is in use.

A pure state machine over messages and pipeline time. Replay and live ask the same one, so equal
messages at equal times give equal answers; a message is given with the time at which it came.

| what comes                                    | the message       | the sensor                   |
|-----------------------------------------------|-------------------|------------------------------|
| one that is not this sensor's                 | rejected: foreign | `foreign` in a row: out      |
| a bad one: the first reason that holds        | rejected for it   | `bad` in a row: out, for it  |
| a good one, the sensor in use                 | delivered         | stays                        |
| a good one, the sensor out                    | rejected: out     | `back` in a row: ok          |
| too many of a sensor in use (its rate)        | rejected: early   | stays                        |
| one of another writer, while the first goes on | rejected: double | stays                        |
| none for `silent` periods and `silent_ns`     |                   | out: lost                    |
| good ones, much of the image uniform for long | delivered         | blocked: a warning           |
| `back` without that in a row                  | delivered         | ok                           |

* The message that puts a sensor back is delivered, the one that puts it out is not.
* A repeated message does not break a row of good ones: sent twice each, they still bring it back.
  Nor does a foreign one.
* A sensor that has not come yet is lost after the same time, and ok with its first good message.
* While a sensor is in use, a message is compared with the last good one, and its counter with the
  last that followed; while it is out, with the last one whatever it was, so that a sender that
  begins anew is followed.
* Who wrote the first good message is the sensor's writer until the sensor is lost; what another one
  writes meanwhile is compared with nothing, and the sensor is as silent as if it had not come.
* A foreign message is compared with nothing, and nothing with it; what a sensor is stays for good.
* A LiDAR is believed to spin once the times of its points have fitted their directions for `back`
  messages in a row: of one that does not, times say nothing.
* What is before the last stamp by less than BACK_NS is a clock's rounding (ros/geometry2 issue 347:
  85 us back must not count as a jump).

Reasons and numbers are those of AUTOSAR's E2E library (REPEATED, WRONGSEQUENCE, MaxDeltaCounter),
PX4's DataValidator (no data, stale: equal values) and autoware_image_diagnostics (dark below 10,
too bright above 230, in 5 x 5 blocks).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from avrt.model.guard import IN_USE, Fault, GuardSpec, Reason, SensorRecord, SensorState
from avrt.safety.flow import RateLimit, SenderCounter
from avrt.safety.identity import Identity, KnownIdentity
from avrt.safety.turning import Spin
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Collection

    from avrt.safety.content import Content

BACK_NS = NS_PER_MS
RENAMED: tuple[SensorState, ...] = (*IN_USE, "lost")
"""States in which bad messages give a sensor another one; out for a reason, it stays so named."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One message as its guard sees it.

    Attributes:
        at_ns: when it came, pipeline ns; never before the message ahead of it.
        capture_ns: when it was captured, mapped, pipeline ns.
        content: its payload in numbers.
        counter: the sender's, modulo 2^32; None where it has none.
        jumped: the sensor's clock jumped against the receiver's just before.
        epoch: how often its clock has begun anew: nothing is compared across.
        said: what it says it is.
        writer: who wrote it, where the log tells several writers of its topic apart.
    """

    at_ns: int
    capture_ns: int
    content: Content
    counter: int | None = None
    jumped: bool = False
    epoch: int = 0
    said: Identity = Identity()
    writer: str = ""


class Verdict(NamedTuple):
    """What a guard says of one message.

    Attributes:
        reason: why it is rejected; "" when it is to be delivered.
        missing: messages that, by its sender's counter, are missing before it; 0 of a bad one.
        changes: of the sensor's state, those that had come by then included.
    """

    reason: Literal["", Reason]
    missing: int
    changes: tuple[SensorRecord, ...]


class Guard:
    """Judges the messages of one source, in the order in which they come.

    Attributes:
        state: what the sensor is now.
    """

    def __init__(
        self,
        source: str,
        spec: GuardSpec,
        period_ns: int | None,
        latency_ns: int = 0,
        frames_of_others: Collection[str] = (),
    ) -> None:
        """Begin at pipeline time 0 with a sensor that is in use.

        Its period and the latency of its messages are the declared ones. Without a period nobody
        can say that a sensor is silent, or too fast. No message may name a frame of another sensor.
        """
        self.state: SensorState = "ok"
        self._source = source
        self._spec = spec
        self._period_ns = period_ns
        self._identity = KnownIdentity(frames_of_others if spec.foreign else ())
        self._counter = SenderCounter(spec.skips_max, spec.back)
        self._rate = RateLimit(period_ns, spec.faster)
        self._last: Facts | None = None
        self._writer: str | None = None
        self._came_ns = latency_ns
        self._has_come = False
        self._bad = self._good = self._clear = 0
        self._covered_since_ns: int | None = None
        self._sectors = 0  # the most directions that had points
        self._spin = Spin(spec.turning, spec.back)

    @property
    def is_in_use(self) -> bool:
        return self.state in IN_USE

    @property
    def alarm_ns(self) -> int | None:
        """When the sensor is lost if no message comes; None when that is never, or already so."""
        return None if self.state == "lost" else self._silent_ns()

    def until(self, now_ns: int) -> tuple[SensorRecord, ...]:
        """Let time pass; return what changed by then, at the time at which it did."""
        silent_ns = self._silent_ns()
        if silent_ns is None or now_ns < silent_ns:
            return ()
        self._forget()
        self._good = 0
        return () if self.state == "lost" else (self._enter("lost", silent_ns),)

    def take(self, facts: Facts) -> Verdict:
        """Judge one message; time passes until it came."""
        changes = self.until(facts.at_ns)
        if self._writer not in {None, facts.writer}:
            return Verdict("double", 0, changes)
        self._came_ns = facts.at_ns
        if self._spec.foreign and self._identity.is_foreign(facts.said):
            return Verdict("foreign", 0, (*changes, *self._note_bad("foreign", facts.at_ns)))
        last = self._last
        if last is not None and last.epoch != facts.epoch:
            self._forget()
            self._rate.begin_anew()
            last = None
        missing = self._counter.take(facts.counter)
        found = self._fault(last, facts, missing)
        more = self._note_good(facts) if found is None else self._note_bad(found, facts.at_ns)
        if not self.is_in_use:
            self._last = facts
            self._counter.follow(facts.counter)
        elif found is None:
            self._last = facts
        if found is None:
            self._identity.learn(facts.said)
            self._writer = facts.writer if self._silent_ns() is not None else None
        self._has_come = True
        told = 0 if found is not None or missing is None else missing
        return Verdict(self._answer(found, facts), told, (*changes, *more))

    def _forget(self) -> None:
        """Compare the next message with none."""
        self._last = self._writer = None
        self._counter.follow(None)

    def _silent_ns(self) -> int | None:
        if self._period_ns is None or not self._spec.silent:
            return None
        return self._came_ns + max(self._spec.silent * self._period_ns, self._spec.silent_ns)

    def _answer(self, found: Fault | None, facts: Facts) -> Literal["", Reason]:
        if found is not None:
            return found
        if not self.is_in_use:
            return "out"
        return "early" if self._rate.is_early(facts.capture_ns) else ""

    # What is wrong with a message

    def _fault(self, last: Facts | None, facts: Facts, missing: int | None) -> Fault | None:
        """Return the first reason that holds."""
        return (
            self._of_order(last, facts, missing)
            or self._of_clock(facts)
            or self._of_content(last, facts.content)
        )

    def _of_order(self, last: Facts | None, facts: Facts, missing: int | None) -> Fault | None:
        if missing == -1 or (last is not None and _is_same(last, facts)):
            return "repeated"
        if missing is not None and missing > self._spec.skips_max:
            return "order"
        if last is not None and facts.capture_ns < last.capture_ns - BACK_NS and not facts.jumped:
            return "order"
        return None

    def _of_clock(self, facts: Facts) -> Fault | None:
        if facts.jumped:
            return "clock"
        age_ns = self._spec.age_ns
        return "age" if age_ns and abs(facts.at_ns - facts.capture_ns) > age_ns else None

    def _of_content(self, last: Facts | None, content: Content) -> Fault | None:
        spec = self._spec
        if content.damaged:
            return "damaged"
        if content.size < spec.least:
            return "empty"
        if spec.most and content.size > spec.most:
            return "huge"
        if spec.nonfinite and content.share_nonfinite > spec.nonfinite:
            return "nonfinite"
        return self._of_sight(last, content)

    def _of_sight(self, last: Facts | None, content: Content) -> Fault | None:
        """Return what is wrong with what a sensor shows, all of it sound by itself."""
        spec = self._spec
        if self._spin.is_broken_by(content.turning):
            return "mixed"
        if spec.blind and self._is_blind(content):
            return "blind"
        known = None if last is None else last.content.fingerprint
        return (
            "stuck" if spec.stuck and known is not None and known == content.fingerprint else None
        )

    def _is_blind(self, content: Content) -> bool:
        level, spec = content.level, self._spec
        if level is None:
            return False
        return not spec.dark <= level <= spec.bright or content.spread < spec.contrast

    # What becomes of the sensor

    def _note_bad(self, reason: Fault, at_ns: int) -> tuple[SensorRecord, ...]:
        self._bad += 1
        if reason not in {"repeated", "foreign"}:
            self._good = 0
        spec = self._spec
        own = {"foreign": spec.foreign, "stuck": spec.stuck, "blind": spec.blind}
        limit = own.get(reason, spec.bad)
        if self._bad < limit or self.state not in RENAMED:
            return ()
        return (self._enter(reason, at_ns),)

    def _note_good(self, facts: Facts) -> tuple[SensorRecord, ...]:
        self._bad = 0
        self._good += 1
        is_covered = self._is_covered(facts)
        if not self.is_in_use:
            needed = self._spec.back if self._has_come else 1
            return (self._enter("ok", facts.at_ns),) if self._good >= needed else ()
        if is_covered and self.state == "ok":
            return (self._enter("blocked", facts.at_ns),)
        if self.state == "blocked" and self._clear >= self._spec.back:
            return (self._enter("ok", facts.at_ns),)
        return ()

    def _is_covered(self, facts: Facts) -> bool:
        """Whether too much of what the sensor sees has been hidden for too long."""
        spec, at_ns = self._spec, facts.at_ns
        if not spec.covered or self._share_hidden(facts.content) <= spec.covered:
            self._covered_since_ns = None
            self._clear += 1
            return False
        self._clear = 0
        if self._covered_since_ns is None:
            self._covered_since_ns = at_ns
        return at_ns - self._covered_since_ns >= spec.covered_ns

    def _share_hidden(self, content: Content) -> float:
        """Return the uniform share of an image, or that of a LiDAR's directions without points."""
        if content.sectors is None:
            return content.share_uniform(self._spec.contrast)
        self._sectors = max(self._sectors, content.sectors)
        return 1 - content.sectors / max(1, self._sectors)

    def _enter(self, state: SensorState, at_ns: int) -> SensorRecord:
        was, self.state = self.state, state
        self._bad = 0
        return SensorRecord(self._source, at_ns, state, was)


def _is_same(last: Facts, facts: Facts) -> bool:
    """Whether two messages have one stamp and one content."""
    known = last.content.fingerprint
    return last.capture_ns == facts.capture_ns and known == facts.content.fingerprint is not None
