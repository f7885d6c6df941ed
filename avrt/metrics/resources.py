"""What a run used of its host, and what the host gave while its first misses came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARES = (50, 95)


@dataclass(frozen=True, slots=True)
class Level:
    """One figure over the samples of a run; None where the host does not tell it."""

    first: float | None = None
    last: float | None = None
    p50: float | None = None
    p95: float | None = None
    max: float | None = None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Level:
        """Return the level of the values that are known, in the order of time."""
        known = [value for value in values if value is not None]
        if not known:
            return cls()
        ordered = sorted(known)
        p50, p95 = (ordered[-(-len(ordered) * share // 100) - 1] for share in SHARES)
        return cls(known[0], known[-1], p50, p95, ordered[-1])


@dataclass(frozen=True, slots=True)
class ResourceLoad:
    """All figures.

    Attributes:
        samples: how many there are.
        levels: by what was sampled: `process_cores`, `others_cores`, `steal_cores`, `rss_bytes`,
            `available_bytes`, `descriptors`, `threads`, `celsius`.
        misses: of the first misses, how many came about while the host was "starved", while it was
            not and the driver was late all the same ("held"), while it gave what was asked for
            ("fed"), and of how many that is "unknown".
        evidence: what shows the first starvation, "" if there was none.
    """

    samples: int = 0
    levels: Mapping[str, Level] = field(default_factory=dict)
    misses: Mapping[str, int] = field(default_factory=dict)
    evidence: str = ""
