"""The degradation ladder: at which level a run goes on, decided from what monitors say.

A pure state machine over pipeline time, stepped at every tick; live, replay and simulation step the
same one. Levels are ordered from the best; each says how many devices it needs; the last one is the
minimal-risk plan, which needs none.

| cause                                                   | to                              |
|---------------------------------------------------------|---------------------------------|
| order: the operator, or a monitor that may, stops it    | the last level                  |
| failing: votes in a row undecided, or too old an output | the last level                  |
| devices: fewer are healthy than the level needs         | the first that they suffice for |
| overload: its bucket is full, and is empty then         | one level down                  |
| faults: jobs fail here, or weak majorities decide       | one level down                  |
| clear: nothing forbids the level above for long enough  | one level up                    |

* Down may skip levels; the worst cause of a tick counts. Up is one level at a time.
* The bucket fills with the time under overload and drains at a quarter of that, so a condition that
  toggles trips it exactly if it holds for more than a fifth of the time (PX4's fail-safe delay is
  built alike: it may drain at one rate and refill at another).
* Up needs: causes clear for `clear_ns` without a break, DWELL_NS at this level, and room for the
  level above under the present load. A device that comes back counts as healthy once it has proved
  itself (`avrt.drivers.probation`): nobody tells of it before.
* `clear_ns` begins at CLEAR_NS, doubles with each way down within FORGIVE_NS of the one before, up
  to CLEAR_NS_MAX, and is back once nothing went down for FORGIVE_NS: a device that flaps ends up
  unused, not used in turns.
* The last level is latched. Only a vehicle that stands leaves it, after a reset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from avrt.model.ladder import AGE_NS_MAX
from avrt.units import NEVER_NS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

CLEAR_NS = 5 * NS_PER_S
CLEAR_NS_MAX = 300 * NS_PER_S
FORGIVE_NS = 600 * NS_PER_S
DWELL_NS = 2 * NS_PER_S
OVERLOAD_NS = NS_PER_S
FAILING_AFTER = 2
DRAIN = 4

Cause: TypeAlias = Literal["order", "failing", "devices", "overload", "faults", "clear"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level; `devices` healthy ones are enough for it."""

    name: str
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the monitors say at one tick.

    Attributes:
        devices: how many are healthy.
        overload: deadlines are missed beyond what the stages allow, or there is too much work.
        faults: jobs of this level end in faults, or for want of memory, or are decided over by
            copies that share a fault.
        failing: votes in a row without a decision, the most of all critical stages.
        age_ns: of the last accepted critical output.
        admits: whether the level above would meet its deadlines under the present load.
        stands: the vehicle stands.
        resets: somebody resets the last level.
        orders_stop: somebody who may orders the last level.
    """

    devices: int
    overload: bool = False
    faults: bool = False
    failing: int = 0
    age_ns: int = 0
    admits: bool = True
    stands: bool = False
    resets: bool = False
    orders_stop: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of level."""

    at_ns: int
    before: str
    after: str
    cause: Cause


class Ladder:
    """The state machine of one ladder.

    Args:
        levels: from the best to the minimal-risk plan.
        age_ns_max: how old the last accepted critical output may become.

    Attributes:
        level: index of the present level.
        clear_ns: how long causes must be clear before the next way up.
    """

    def __init__(self, levels: Sequence[Level], age_ns_max: int = AGE_NS_MAX) -> None:
        assert len(levels) > 1
        assert levels[-1].devices == 0
        self.levels = tuple(levels)
        self.level = 0
        self.clear_ns = CLEAR_NS
        self._age_ns_max = age_ns_max
        self._latched = False
        self._now_ns = 0
        self._since_ns = 0
        self._clear_since_ns: int | None = None
        self._down_ns = -NEVER_NS
        self._overload_ns = 0

    @property
    def name(self) -> str:
        return self.levels[self.level].name

    @property
    def is_last(self) -> bool:
        """Whether the vehicle is to come to a safe stop."""
        return self.level == len(self.levels) - 1

    def step(self, at_ns: int, health: Health) -> Transition | None:
        """Take in one tick; return the change of level, if there is one."""
        assert at_ns >= self._now_ns
        elapsed_ns, self._now_ns = at_ns - self._now_ns, at_ns
        is_tripped = self._fill(elapsed_ns, overload=health.overload)
        if self._latched and health.stands and health.resets:
            self._latched = False
        if at_ns - self._down_ns > FORGIVE_NS:
            self.clear_ns = CLEAR_NS
        lowest, cause = self._wanted(health, is_tripped=is_tripped)
        if lowest > self.level:
            return self._go_down(lowest, cause)
        return self._climb(lowest, health)

    def _fill(self, elapsed_ns: int, *, overload: bool) -> bool:
        """Fill or drain the bucket; return whether it is full, and empty it then."""
        if not overload:
            self._overload_ns = max(0, self._overload_ns - elapsed_ns // DRAIN)
            return False
        self._overload_ns += elapsed_ns
        is_full = self._overload_ns >= OVERLOAD_NS
        if is_full:
            self._overload_ns = 0
        return is_full

    def _wanted(self, health: Health, *, is_tripped: bool) -> tuple[int, Cause]:
        """Return the best level that the causes of this tick allow, and the worst of them."""
        last = len(self.levels) - 1
        if health.orders_stop:
            return last, "order"
        if health.failing >= FAILING_AFTER or health.age_ns > self._age_ns_max:
            return last, "failing"
        found = next(i for i, level in enumerate(self.levels) if level.devices <= health.devices)
        if is_tripped and found <= self.level < last:
            return self.level + 1, "overload"
        if health.faults and found <= self.level < last:
            return self.level + 1, "faults"
        return found, "devices"

    def _go_down(self, level: int, cause: Cause) -> Transition:
        if self._now_ns - self._down_ns <= FORGIVE_NS:
            self.clear_ns = min(2 * self.clear_ns, CLEAR_NS_MAX)
        self._down_ns = self._now_ns
        self._latched = level == len(self.levels) - 1
        return self._go(level, cause)

    def _climb(self, lowest: int, health: Health) -> Transition | None:
        """Go one level up if nothing has forbidden it for long enough."""
        is_clear = (
            lowest < self.level
            and not self._latched
            and not health.overload
            and not health.faults
            and health.admits
        )
        if not is_clear:
            self._clear_since_ns = None
            return None
        if self._clear_since_ns is None:
            self._clear_since_ns = self._now_ns
        is_long = self._now_ns - self._clear_since_ns >= self.clear_ns
        if is_long and self._now_ns - self._since_ns >= DWELL_NS:
            return self._go(self.level - 1, "clear")
        return None

    def _go(self, level: int, cause: Cause) -> Transition:
        before, self.level = self.name, level
        self._since_ns, self._clear_since_ns = self._now_ns, None
        return Transition(self._now_ns, before, self.name, cause)
