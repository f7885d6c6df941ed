"""What came of a campaign: each row against what was expected of it, and how much was detected.

Coverage is the share of the injections that something told of, among those of which something had
to, known gaps left aside. It is counted by what was to tell, with the exact interval of
`probability`: 29 of 29 prove 88 % with 95 % confidence, 299 of 299 prove 98.7 %, and fewer less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.probability import exact_interval
from avrt.model.campaign import HARMFUL
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.metrics.injection import Judged
    from avrt.metrics.observed import Detection
    from avrt.metrics.probability import Estimate
    from avrt.model.campaign import Expected, Injection, Row

ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class RowResult:
    """What came of one run of a row.

    Attributes:
        seed: that its faults were drawn with.
        faults: as they were drawn.
        simulated: it breaks a device that is only simulated.
        unmet: what was expected and did not happen, a sentence each.
    """

    row: Row
    seed: int
    faults: tuple[Injection, ...]
    simulated: bool
    judged: Judged
    unmet: tuple[str, ...]

    @property
    def failure(self) -> str:
        """What is not as it should be, "" if all is; a known gap is to be one."""
        if not self.row.gap:
            return "; ".join(self.unmet)
        return "" if self.unmet else "it is as expected now; remove 'gap'"


@dataclass(frozen=True, slots=True)
class PairResult:
    """What came of two rows in one run."""

    rows: tuple[str, str]
    faults: tuple[Injection, ...]
    judged: Judged

    @property
    def is_harmful(self) -> bool:
        return self.judged.outcome in HARMFUL


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What drives without faults showed.

    Attributes:
        frames: messages of the source that has the fewest.
        alarms: of those that there should not be, the drive's seed and what it was.
        levels: changes of level.
    """

    frames: int
    drives: int
    alarms: tuple[tuple[int, Detection], ...]
    levels: int

    @property
    def is_quiet(self) -> bool:
        return not (self.alarms or self.levels)


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What came of all that was asked for."""

    name: str
    seed: int
    rows: Sequence[RowResult] = ()
    pairs: Sequence[PairResult] = ()
    clean: CleanResult | None = None

    @property
    def is_met(self) -> bool:
        """Whether everything is as expected."""
        return (
            not any(result.failure for result in self.rows)
            and not any(pair.is_harmful for pair in self.pairs)
            and (self.clean is None or self.clean.is_quiet)
        )


@dataclass(slots=True)
class Coverage:
    """Of the injections that this was to tell of first, how many were told of in time."""

    by: str
    detected: int = 0
    injected: int = 0

    @property
    def share(self) -> Estimate:
        return exact_interval(self.detected, self.injected)


def coverage(rows: Sequence[RowResult]) -> list[Coverage]:
    """Return the coverage by what was expected to tell, in the order of the rows."""
    found: dict[str, Coverage] = {}
    for result in rows:
        expect = result.row.expect
        if not expect.is_detected or result.row.gap:
            continue
        by = " or ".join(expect.detected_by) or ANYTHING
        item = found.setdefault(by, Coverage(by))
        item.injected += 1
        item.detected += not list(_undetected(expect, result.judged))
    return list(found.values())


def unmet(expect: Expected, judged: Judged) -> Iterator[str]:
    """Yield what is not as expected, a sentence each."""
    if judged.outcome not in expect.outcomes:
        more = f" ({judged.crash})" if judged.crash else ""
        yield f"expected {' or '.join(expect.outcomes)}, it is {judged.outcome}{more}"
    if expect.silent and judged.detected is not None:
        yield f"expected no alarm, found {judged.detected.by} ({judged.detected.what})"
    yield from _undetected(expect, judged)
    if expect.levels is not None and judged.levels != expect.levels:
        yield f"expected levels {_path(expect.levels)}, found {_path(judged.levels)}"
    counts = (
        ("lost", expect.lost, judged.lost),
        ("wrong", expect.incorrect, judged.incorrect),
    )
    for what, most, count in counts:
        if most is not None and count > most:
            yield f"expected at most {most} outputs {what}, found {count}"
    if expect.gap_ns is not None and judged.gap_ns > expect.gap_ns:
        told = f"expected a gap of at most {format_ns(expect.gap_ns)}"
        yield f"{told}, found {format_ns(judged.gap_ns)}"
    yield from _not_recovered(expect, judged)


def _undetected(expect: Expected, judged: Judged) -> Iterator[str]:
    if not expect.is_detected:
        return
    found, took_ns = judged.detected, judged.detected_ns
    if found is None or took_ns is None:
        yield "nothing told of it"
        return
    if expect.detected_by and found.by not in expect.detected_by:
        wanted = " or ".join(expect.detected_by)
        yield f"expected {wanted} to tell of it first, it was {found.by} ({found.what})"
    if expect.detected_ns is not None and took_ns > expect.detected_ns:
        told = f"expected to be told within {format_ns(expect.detected_ns)}"
        yield f"{told}, it took {format_ns(took_ns)}"


def _not_recovered(expect: Expected, judged: Judged) -> Iterator[str]:
    most_ns, took_ns = expect.recover_ns, judged.recovered_ns
    if most_ns is None or (took_ns is not None and took_ns <= most_ns):
        return
    found = "never" if took_ns is None else f"after {format_ns(took_ns)}"
    yield f"expected all to be good again within {format_ns(most_ns)}, it was {found}"


def _path(levels: Sequence[str]) -> str:
    return ", ".join(levels) or "none"
