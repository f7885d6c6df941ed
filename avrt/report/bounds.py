"""What a run showed against what the analyses promise: observed <= bound, and if not, why.

A bound holds for every run that keeps to what was declared. When an observation is above it, either
an assumption was broken by then, and the first of them is told; or none was: then the model is
broken, which is a bug of avrt or an effect that nobody declared, and nothing the user did wrong.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from avrt.analysis.bounds import bounds
from avrt.metrics.bounds import chains_above, stages_above
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.analysis.figure import Figure
    from avrt.metrics.bounds import Above, WorstOfRuns
    from avrt.metrics.broken import Broken, Kind
    from avrt.metrics.run import RunFigures

Verdict = Literal["holds", "assumption broken", "model broken", "unknown"]
NOTES_SHOWN = 3
SAID: Mapping[Kind, str] = {
    "execution": "executed {found}, {detail} {declared}",
    "rate": "came {found} after the one before by {detail}, period {declared}",
    "delay": "came {found} after its capture, latency and jitter {declared}",
    "gap": "was captured {found} after the one before, period {declared}",
    "phase": "came at {found}, planned for {declared}",
    "lost": "was lost",
    "level": "was entered, another level of the ladder",
    "told_late": "was released {found} before the kernel was told",
    "unseen": "is damaged",
    "supply": "was given by the operating system, unseen",
    "failure": "gave no result: {detail}",
    "skipped": "was skipped: {detail}",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stage or a chain: the longest that was observed, and what bounds it."""

    observed_ns: int | None
    bound: Figure
    above: Above | None

    @property
    def holds(self) -> bool | None:
        """Whether the observation is within the bound; None where either is not known."""
        if self.observed_ns is None or self.bound.ns is None:
            return None
        return self.above is None

    def data(self) -> dict[str, object]:
        return {
            "observed_ns": self.observed_ns,
            "bound_ns": self.bound.ns,
            "label": self.bound.label,
            "source": self.bound.source,
            "holds": self.holds,
            "first_above": None if self.above is None else _above(self.above),
        }


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """A whole run against all bounds.

    Attributes:
        assumption: the first that the run broke, whether or not anything is above its bound.
        why_none: why the run is compared with no bound, if it is not.
    """

    stages: dict[str, Comparison]
    chains: dict[str, Comparison]
    assumption: Broken | None
    why_none: str = ""

    @property
    def above(self) -> list[Above]:
        """What is above its bound, what no assumption explains first."""
        rows = (*self.stages.values(), *self.chains.values())
        found = [row.above for row in rows if row.above is not None]
        return sorted(found, key=lambda above: (above.cause is not None, above.passed_ns))

    @property
    def verdict(self) -> Verdict:
        """What comes of all comparisons; the worst counts."""
        if self.above:
            return "model broken" if self.above[0].cause is None else "assumption broken"
        rows = (*self.stages.values(), *self.chains.values())
        return "holds" if any(row.holds for row in rows) else "unknown"

    def data(self) -> dict[str, object]:
        """Return plain data; `docs/report.md` names its keys."""
        return {
            "verdict": self.verdict,
            "assumption": None if self.assumption is None else asdict(self.assumption),
            "stages": {name: row.data() for name, row in self.stages.items()},
            "chains": {name: row.data() for name, row in self.chains.items()},
        }

    def alarms(self) -> Iterator[str]:
        """Yield what nothing explains: whoever reads no further must see it."""
        for above in self.above:
            if above.cause is None:
                yield describe_above(above)

    def notes(self) -> Iterator[str]:
        """Yield what explains the rest, at most NOTES_SHOWN of it, or what else was broken."""
        if self.why_none:
            yield f"not compared with bounds: {self.why_none}"
        explained = [above for above in self.above if above.cause is not None]
        for above in explained[:NOTES_SHOWN]:
            yield describe_above(above)
        if len(explained) > NOTES_SHOWN:
            yield f"... {len(explained) - NOTES_SHOWN} more above their bounds; --json has all"
        if self.assumption is not None and not self.above:
            what = f"not all was as declared: {describe_broken(self.assumption)}"
            yield f"{what}; no observation is above its bound"


def check_bounds(figures: RunFigures) -> BoundsCheck:
    """Compare all observations of a run with the bounds of its pipeline."""
    known = bounds(figures.spec, figures.overheads, why_none=figures.why_unbounded)
    jobs = stages_above(figures, {name: figure.ns for name, figure in known.stages.items()})
    outputs = chains_above(figures, {name: figure.ns for name, figure in known.chains.items()})
    return BoundsCheck(
        {
            name: Comparison(stage.worst_ns, known.stages[name], jobs.get(name))
            for name, stage in figures.stages.items()
        },
        {
            name: Comparison(chain.worst_ns, known.chains[name], outputs.get(name))
            for name, chain in figures.chains.items()
        },
        None if figures.why_unbounded else figures.assumptions.first,
        figures.why_unbounded,
    )


# For a person


def describe_above(above: Above) -> str:
    """Return what is above its bound as a line."""
    what = (
        f"{above.subject} {above.index}, from {above.release_ns / NS_PER_S:.6f} s, took "
        f"{format_ns(above.found_ns)} of at most {format_ns(above.bound_ns)}"
    )
    if above.cause is None:
        why = "and all was as declared: a bug of avrt or an undeclared effect, please report it"
        return f"MODEL BROKEN: {what}, {why}"
    return f"assumption broken: {what}; first {describe_broken(above.cause)}"


def describe_broken(broken: Broken) -> str:
    """Return a broken assumption in words."""
    subject = broken.subject if broken.index is None else f"{broken.subject} {broken.index}"
    times = (broken.declared_ns, broken.found_ns)
    declared, found = ("" if ns is None else format_ns(ns) for ns in times)
    said = SAID[broken.kind].format(declared=declared, found=found, detail=broken.detail)
    return f"at {broken.at_ns / NS_PER_S:.6f} s {subject} {said}"


def _above(above: Above) -> dict[str, object]:
    data = asdict(above)
    return {**data, "model_broken": above.cause is None}


# Many runs


def worst_data(
    known: Mapping[str, Figure], worst: Mapping[str, WorstOfRuns]
) -> dict[str, dict[str, object]]:
    """Return the longest observation of many runs beside its bound, by stage or chain."""
    return {
        name: {
            "observed_ns": item.observed_ns,
            "seed": item.seed,
            "bound_ns": known[name].ns,
            "label": known[name].label,
            "source": known[name].source,
            "holds": None if None in (item.observed_ns, known[name].ns) else not item.runs_above,
            "runs_above": item.runs_above,
            "runs_unexplained": item.runs_unexplained,
            "first_above": None
            if item.first is None
            else {"seed": item.first[0], **_above(item.first[1])},
        }
        for name, item in worst.items()
    }


def worst_lines(worst: Mapping[str, WorstOfRuns]) -> Iterator[str]:
    """Yield what is above its bound in any of many runs."""
    for item in worst.values():
        if item.first is not None:
            runs = item.runs_unexplained or item.runs_above
            yield f"seed {item.first[0]}: {describe_above(item.first[1])}; so in {runs} runs"
