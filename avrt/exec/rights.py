"""What was asked of the system for real time, what it gave, and what it costs not to have it.

Every figure in `COSTS` was measured, on the host that `MEASURED_ON` names; `avrt doctor --measure`
gives those of the host at hand.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MEASURED_ON = "2 cores of an AMD EPYC, KVM, Linux 6.18, Python 3.11"

COSTS = {
    "fifo": "sleeping until an instant beside a busy process a core has p99 0.5 to 4.0 ms without "
    "it, 0.08 to 0.1 ms with it (2 cores of an Intel Xeon, KVM); on an idle host it gains nothing",
    "affinity": "none that could be measured on 2 quiet cores; with more, others' work moves the "
    "dispatcher and takes its cache",
    "timer_slack": "50 us at every wake-up: sleeping until an instant p50 80 to 129 us, 30 us "
    "with it",
    "memory_lock": "a page that was taken away comes back from disk, within milliseconds, in the "
    "middle of a job; without swap this hits code and files only",
    "switch_interval": "beside one busy Python thread a hand-over has p99 13 ms at the default of "
    "5 ms, 0.29 ms at 0.05 ms",
    "allocator": "up to 41 % of a network's CPU time in page faults (58.1 to 34.1 ms with it)",
    "openmp": "2 threads an operation beside one busy process: p99 513 ms, 62 ms with it",
    "garbage": "one full collection takes about 110 ms with torch and scipy loaded",
}


@dataclass(frozen=True, slots=True)
class Right:
    """One measure for real time.

    Attributes:
        name: `fifo`, `affinity`, `timer_slack`, `memory_lock`, `switch_interval`, `allocator`,
            `openmp` or `garbage`; after a colon, the thread it is for.
        granted: whether it is in force now.
        told: what was got or, where refused, why, and what the user can change.
        cost: what it costs not to have it, as measured on `MEASURED_ON`.
    """

    name: str
    granted: bool
    told: str
    cost: str

    def __str__(self) -> str:
        return f"{self.name}: {'' if self.granted else 'refused: '}{self.told}"


def granted(name: str, told: str, thread: str = "") -> Right:
    return Right(_full(name, thread), granted=True, told=told, cost=COSTS[name])


def refused(name: str, told: str, thread: str = "") -> Right:
    return Right(_full(name, thread), granted=False, told=told, cost=COSTS[name])


def in_words(error: OSError) -> str:
    """Return the system's reason, with its short name."""
    code = errno.errorcode.get(error.errno or 0, "?")
    return f"{(error.strerror or 'refused').lower()} ({code})"


def as_conditions(rights: Iterable[Right]) -> dict[str, str]:
    """Return what was got as conditions of a run: `realtime.fifo:dispatcher` and so on."""
    return {
        f"realtime.{right.name}": f"{'granted' if right.granted else 'refused'}: {right.told}"
        for right in rights
    }


def _full(name: str, thread: str) -> str:
    return f"{name}:{thread}" if thread else name
