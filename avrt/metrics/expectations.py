"""What a scenario expects of a run, compared with the run's figures.

An expectation that is not met becomes one sentence: what was expected, what was found, of how many,
and when it was first seen. A figure that does not exist (the p99 of a stage that never answered)
meets no expectation. Where an expectation has a window, its figure is of the jobs released there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from avrt.metrics.distribution import Distribution
from avrt.model.commands import Command, Record
from avrt.model.records import OUTCOMES, ChainBroken, JobRecord, WindowRecord
from avrt.model.scenario import ENDS, RATE, RATES, RESPONSES, SHARE
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from avrt.metrics.run import RunFigures
    from avrt.model.scenario import Expectation, Window

MISSED = tuple(outcome for outcome in OUTCOMES if outcome != "met")


@dataclass(frozen=True, slots=True)
class Unmet:
    """An expectation that a run did not meet, and the sentence that says so."""

    expectation: Expectation
    sentence: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A figure, in words what it is of, and when it was first seen; `value` None for no figure."""

    value: Fraction | int | None
    told: str
    first_ns: int | None = None


class Jobs(Protocol):
    """What became of a stage's jobs, of the whole run or of a window."""

    @property
    def released(self) -> int: ...
    @property
    def outcomes(self) -> Counter[str]: ...


class Firsts:
    """When each kind of event was first seen, by (kind, stage or chain); pipeline ns."""

    def __init__(self) -> None:
        self._first_ns: dict[tuple[str, str], int] = {}

    def take(self, command: Command) -> None:
        """Take in one command of the kernel."""
        if not isinstance(command, Record):
            return
        match command.record:
            case JobRecord() as job:
                self._first_ns.setdefault((job.outcome, job.stage), job.end_ns)
            case ChainBroken() as broken:
                self._first_ns.setdefault(("broken", broken.chain), broken.at_ns)
            case WindowRecord() as window:
                self._first_ns.setdefault(("violations", window.task), window.at_ns)
            case _:
                pass

    def of(self, kinds: Iterable[str], names: Iterable[str]) -> int | None:
        """Return when the first of these was seen, None if none was."""
        members = list(names)
        known = [self._first_ns.get((kind, name)) for kind in kinds for name in members]
        return min((at_ns for at_ns in known if at_ns is not None), default=None)


class _WindowJobs:
    """What became of a stage's jobs that were released in a window."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.response = Distribution()

    @property
    def released(self) -> int:
        return self.outcomes.total()


class Windows:
    """The figures of the windows that expectations have."""

    def __init__(self, expectations: Iterable[Expectation], stages: Iterable[str]) -> None:
        windows = dict.fromkeys(e.window for e in expectations if e.window is not None)
        names = list(stages)
        self._jobs = {window: {name: _WindowJobs() for name in names} for window in windows}
        self._firsts = {window: Firsts() for window in windows}

    def take(self, command: Command) -> None:
        """Take in one command of the kernel."""
        if type(command) is not Record or type(command.record) is not JobRecord:
            return
        job = command.record
        for window, stages in self._jobs.items():
            if window[0] <= job.release_ns < window[1]:
                jobs = stages[job.stage]
                jobs.outcomes[job.outcome] += 1
                if job.outcome in ("met", "late"):
                    jobs.response.add(job.response_ns)
                self._firsts[window].take(command)

    def find(self, expectation: Expectation, window: Window) -> _Found:
        """Return the figure of an expectation with this window."""
        figure, stages, firsts = expectation.figure, self._jobs[window], self._firsts[window]
        if figure in RESPONSES:
            return _worst(stages[expectation.name].response, figure, "responses")
        names = [expectation.name] if expectation.name else list(stages)
        found = _jobs(figure.removesuffix(RATE), names, stages, firsts)
        if figure not in RATES or found.value is None:
            return found
        rate = found.value * Fraction(NS_PER_S, window[1] - window[0])
        return _Found(rate, f"{float(rate):.4g} Hz ({found.told} jobs)")


def unmet(
    expectations: Iterable[Expectation], figures: RunFigures, firsts: Firsts, windows: Windows
) -> Iterator[Unmet]:
    """Yield the expectations that these figures do not meet."""
    for expectation in expectations:
        if expectation.window is None:
            found = _find(expectation, figures, firsts)
        else:
            found = windows.find(expectation, expectation.window)
        if found.value is None or not expectation.holds(found.value):
            yield Unmet(expectation, _sentence(expectation, found))


def _find(expectation: Expectation, figures: RunFigures, firsts: Firsts) -> _Found:
    """Return the figure of an expectation of the whole run."""
    figure, name = expectation.figure, expectation.name
    if expectation.scope == "chains" and figure in ENDS:
        chain = figures.chains[name]
        return _worst(chain.reaction if figure == "reaction" else chain.age, "max", "outputs")
    if figure == "broken":
        chains = [name] if name else list(figures.chains)
        broken = sum(sum(figures.chains[chain].broken.values()) for chain in chains)
        return _Found(broken, str(broken), firsts.of(["broken"], chains))
    if figure in RESPONSES:
        return _worst(figures.stages[name].response, figure, "responses")
    stages = [name] if name else list(figures.stages)
    if figure == "violations":
        violations = sum(figures.stages[stage].violations for stage in stages)
        return _Found(violations, str(violations), firsts.of(["violations"], stages))
    return _jobs(figure, stages, figures.stages, firsts)


def _jobs(figure: str, stages: list[str], jobs: Mapping[str, Jobs], firsts: Firsts) -> _Found:
    """Return a count of jobs, or their share of the released ones."""
    of = figure.removesuffix(SHARE)
    released = sum(jobs[stage].released for stage in stages)
    if of == "released":
        return _Found(released, str(released))
    kinds = MISSED if of == "missed" else (of,)
    count = sum(jobs[stage].outcomes[kind] for stage in stages for kind in kinds)
    first_ns = firsts.of(kinds, stages)
    if not figure.endswith(SHARE):
        return _Found(count, f"{count} of {released}", first_ns)
    if not released:
        return _Found(None, "no job")
    share = Fraction(count, released)
    return _Found(share, f"{float(share * 100):.4g} % ({count} of {released})", first_ns)


def _worst(figure: Distribution, name: str, what: str) -> _Found:
    ns = figure.summary()[name]
    if ns is None:
        return _Found(None, f"no {what}")
    return _Found(ns, f"{format_ns(ns)} of {len(figure)} {what}")


def _sentence(expectation: Expectation, found: _Found) -> str:
    whose = expectation.name or "all"
    words = expectation.figure.replace("_", " ")
    wanted = f"expected {words} {expectation.relation} {expectation.told} of {whose}"
    if expectation.window is not None:
        from_ns, to_ns = expectation.window
        wanted += f" released from {format_ns(from_ns)} to {format_ns(to_ns)}"
    first = "" if found.first_ns is None else f", first at {found.first_ns / 1e9:.3f} s"
    return f"{wanted}, found {found.told}{first}"
