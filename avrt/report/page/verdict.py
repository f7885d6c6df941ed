"""What a run came to, in a sentence or two, before any figure.

`good`: every promise was kept. `bad`: one was broken, or the run itself is not whole. `unsure`:
promises were kept, but something on the way was not as it should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from avrt.logs.record.recorded import FLIGHT
from avrt.report.page.live import rights
from avrt.report.terminal import broken_promises
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.report.summary import RunSummary
    from avrt.report.whatif import WhatIfReport

Standing = Literal["good", "bad", "unsure"]
OTHERS = ("late", "aborted", "skipped", "shed", "open")
BOUNDS_SAID = {
    "holds": "Every known bound held.",
    "assumption broken": "A bound was passed; a broken assumption explains it.",
    "model broken": "MODEL BROKEN: a bound was passed and nothing explains it.",
    "unknown": "No bound is known.",
}


class Verdict(NamedTuple):
    """The standing, the sentence, and what else has to be said at once."""

    standing: Standing
    sentence: str
    more: tuple[str, ...]


def verdict_of(summary: RunSummary, remarks: Sequence[str] = ()) -> Verdict:
    """Return the verdict on one run; remarks come after what the bounds say."""
    alarms = tuple(_alarms(summary))
    broken = broken_promises(summary)
    bounds = summary.bounds.verdict
    bad = broken or alarms or bounds == "model broken"
    unsure = summary.figures.jobs()["open"] or FLIGHT in summary.conditions
    standing: Standing = "bad" if bad else "unsure" if unsure else "good"
    more = (BOUNDS_SAID[bounds], *remarks, *alarms, *_refused(summary))
    if FLIGHT in summary.conditions:
        return Verdict(standing, _incident(summary), (_middle(summary), _sentence(summary), *more))
    return Verdict(standing, _sentence(summary), more)


def _incident(summary: RunSummary) -> str:
    """Return what a flight record was written for."""
    when = "" if summary.incident is None else f" at {summary.incident.at_ns / NS_PER_S:.3f} s"
    return f"{summary.conditions[FLIGHT]}{when}."


def _middle(summary: RunSummary) -> str:
    begin, end = summary.begin_ns / NS_PER_S, summary.end_ns / NS_PER_S
    return f"A flight record, from {begin:.3f} s to {end:.3f} s of its run."


def _refused(summary: RunSummary) -> Iterator[str]:
    """Yield what the host refused, where promises were not kept."""
    names = dict.fromkeys(right.name for right in rights(summary) if not right.granted)
    if names and broken_promises(summary):
        yield f"The host refused {', '.join(names).replace('_', ' ')}."


def _sentence(summary: RunSummary) -> str:
    jobs = summary.figures.jobs()
    released, met = jobs["released"], jobs["met"]
    if not released:
        return "No job was released."
    if met == released:
        said = [f"All {released:,} jobs met their deadlines"]
    else:
        others = [f"{jobs[name]:,} {name}" for name in OTHERS if jobs[name]]
        said = [f"{met:,} of {released:,} jobs met their deadlines ({', '.join(others)})"]
    said += _also(summary)
    return f"{', '.join(said[:-1])} and {said[-1]}." if len(said) > 1 else f"{said[0]}."


def _also(summary: RunSummary) -> Iterator[str]:
    """Yield how the other promises went."""
    windows = sum(stage.violations for stage in summary.figures.stages.values())
    if windows:
        yield f"(m,k) was broken {_times(windows)}"
    chains = {name: sum(chain.broken.values()) for name, chain in summary.figures.chains.items()}
    broken = [name for name, count in chains.items() if count]
    if len(broken) == 1:
        yield f"{broken[0]} passed its limits {_times(chains[broken[0]])}"
    elif broken:
        yield f"{len(broken)} chains passed their limits {_times(sum(chains.values()))}"
    elif chains:
        yield "every chain kept its limits"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _alarms(summary: RunSummary) -> Iterator[str]:
    """Yield what makes a run less than whole."""
    for name in summary.broken_guarantees:
        yield f"{name}: guarantee hard is broken."
    if summary.hangs:
        what = "1 job" if summary.hangs == 1 else f"{summary.hangs} jobs"
        yield f"{what} hung; the run is not reproducible."
    if summary.record_failure:
        yield f"Recording FAILED, the run went on without it: {summary.record_failure}."
    if summary.flight.failure:
        yield f"The flight recorder gave up: {summary.flight.failure}."
    if summary.interrupted:
        yield "The run was interrupted."
    elif not summary.complete and FLIGHT not in summary.conditions:
        yield "The record was cut short; figures go as far as it does."
    for problem in summary.damage:
        yield f"Damaged: {problem}."
    lost = sum(topic.lost for topic in summary.topics.values())
    if lost:
        yield f"{lost} input messages were lost."


def what_if_verdict(report: WhatIfReport) -> Verdict:
    """Return the verdict on a what-if: which misses change."""
    counts = report.counts()
    changes = ", ".join(report.changes) or "nothing changed"
    said = [
        f"{counts['appears']} appear",
        f"{counts['vanishes']} vanish",
        f"{counts['moves']} move",
    ]
    before, after = (
        sum(stage.not_met for stage in side.figures.stages.values())
        for side in (report.before, report.after)
    )
    standing: Standing = "bad" if counts["appears"] else "good" if not after else "unsure"
    sentence = f"With {changes}, {after:,} jobs are not met instead of {before:,}."
    more = [f"Misses: {', '.join(said)}."]
    if not report.reproduced:
        more.append(
            "The run with nothing changed is not reproduced exactly: figures are estimates."
        )
    if report.assumed:
        more.append(f"{report.assumed} jobs take the worst known: the record has not all of them.")
    return Verdict(standing, sentence, tuple(more))
