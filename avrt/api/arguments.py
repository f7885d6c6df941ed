"""The arguments of a run as a caller gives them, checked before anything is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from avrt.errors import SpecError
from avrt.exec.runner import HANG_TIMEOUT_NS
from avrt.units import duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.drivers.orders import Orders
    from avrt.drivers.wall import WallClock
    from avrt.metrics.progress import Progress
    from avrt.metrics.sets import DroppedSet


RATE_MIN, RATE_MAX = 1e-3, 1e6


def wall_clock(name: str, rate: float) -> WallClock | None:
    """Return the clock to replay at, None for virtual time."""
    if name not in {"virtual", "wall"}:
        raise SpecError(f"expected the clock virtual or wall, found {name!r}")
    clock = paced_clock(rate)
    if name == "virtual" and rate != 1:
        raise SpecError("virtual time has no rate; choose the clock 'wall'")
    return clock if name == "wall" else None


def paced_clock(rate: float) -> WallClock:
    """Return a wall clock with so many pipeline seconds in a second."""
    from avrt.drivers.wall import WallClock  # noqa: PLC0415 - brings torch

    if not RATE_MIN <= rate <= RATE_MAX:
        raise SpecError(f"expected a rate from {RATE_MIN:g} to {RATE_MAX:g}, found {rate!r}")
    return WallClock(rate)


def checked_loops(loops: int) -> int:
    """Return how often a log is played, or raise SpecError if it cannot be."""
    if type(loops) is not int or loops < 1:
        raise SpecError(f"expected one loop or more, found {loops!r}")
    return loops


def hang_timeout_ns(text: str | None) -> int:
    """Return the host time after which a stage counts as hung."""
    found_ns = lasting_ns("hang timeout", text)
    return HANG_TIMEOUT_NS if found_ns is None else found_ns


def lasting_ns(what: str, text: str | None) -> int | None:
    """Return a time that must be more than 0, None where none is given."""
    if text is None:
        return None
    try:
        found_ns = duration_ns(str(text))
    except ValueError as error:
        raise SpecError(f"{what}: {error}") from None
    if found_ns < 1:
        raise SpecError(f"{what}: expected more than 0, found {text!r}")
    return found_ns


class KeepAround(NamedTuple):
    """Where the flight recorder writes, and how much before and after an incident (ns)."""

    folder: Path
    around_ns: int | None


def kept_around(flight: str | Path | None, around: str | None) -> KeepAround | None:
    """Return what a flight recorder keeps, None if there is none; its usual time without one."""
    around_ns = lasting_ns("keep_around_misses", around)
    return None if flight is None else KeepAround(Path(flight), around_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """What a live run is asked for; see `Pipeline.run`."""

    log: Path | None = None
    world: str | None = None
    seed: int = 0
    loops: int = 1
    strict: bool = False
    duration_ns: int | None = None
    record: Path | None = None
    kept: KeepAround | None = None
    force: bool = False
    hang_timeout_ns: int
    preparing: Callable[[int], None] | None = None
    look: Callable[[Progress], None] | None = None
    orders: Orders | None = None
    dropped: Callable[[DroppedSet], object] | None = None


def timing_run(timing: str | None) -> Path | None:
    """Return the run whose execution times are to be taken, None if there is none."""
    path = str(timing or "").partition(":")[2]
    return Path(path) if path else None
