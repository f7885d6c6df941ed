"""The figures of a run as HTML tables: the same numbers as in the terminal, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.report.page.live import is_of_host
from avrt.report.page.markup import Html, joined, table, tag
from avrt.report.terminal import OUTCOME_STYLES, bound_cells, four, has_computed, spent_time
from avrt.report.whatif import ended, why
from avrt.units import NS_PER_MS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.metrics.changes import JobChange
    from avrt.model.records import JobRecord
    from avrt.report.page.history import JobRow
    from avrt.report.summary import RunSummary

MISSES_SHOWN = 200
FIRST_CONDITIONS = ("log", "scenario", "seed", "timing", "timing_run", "clock", "what_if", "date")

Named = tuple[str, "RunSummary"]


def stage_table(runs: Sequence[Named]) -> Html:
    """Return outcomes, responses and execution of every stage, a row for each run."""
    outcomes = [n for n in OUTCOME_STYLES if n in {"met", "late"} or _seen(runs, n)]
    computed = len(runs) == 1 and has_computed(runs[0][1])
    timing = ", ".join(dict.fromkeys(summary.timing for _, summary in runs))
    how = "measured here, host time" if computed else timing
    names = ["run"] if len(runs) > 1 else []
    head = ["stage", *names, "jobs", *outcomes, "p50", "p95", "p99", "max", "bound", "deadline"]
    head += [f"execution p50/p95/p99/max, {how}", "wcet"]
    rows = [
        _stage_row(name, run, outcomes, computed=computed)
        for name in runs[0][1].figures.stages
        for run in runs
    ]
    if len(runs) == 1:
        rows = [[row[0], *row[2:]] for row in rows]
    return table(head, rows, text_columns=1 + len(names))


def _stage_row(name: str, run: Named, outcomes: Sequence[str], *, computed: bool) -> list[str]:
    label, summary = run
    figures, spec = summary.figures.stages[name], summary.pipeline.stage(name)
    jobs = figures.jobs()
    counts = [
        tag("span", str(jobs[n]), class_=f"outcome {n}") if jobs[n] and n != "met" else str(jobs[n])
        for n in outcomes
    ]
    response = figures.response.summary()
    _, bound = bound_cells(summary.bounds.stages[name])
    execution = figures.host_execution if computed else figures.execution
    return [
        tag("b", name),
        label,
        str(jobs["released"]),
        *counts,
        *(ms(response[which]) for which in ("p50", "p95", "p99", "max")),
        bound.plain,
        ms(spec.deadline_ns),
        four(execution),
        ms(spec.wcet_ns),
    ]


def _seen(runs: Sequence[Named], outcome: str) -> bool:
    return any(summary.figures.jobs()[outcome] for _, summary in runs)


def chain_table(runs: Sequence[Named]) -> Html:
    """Return reaction and age of every chain against its limits, a row for each run."""
    names = ["run"] if len(runs) > 1 else []
    reaction, age = "reaction p50/p95/p99/max", "age p50/p95/p99/max"
    head = ["chain", *names, "outputs", reaction, "limit", age, "limit", "bound", "limits passed"]
    rows: list[list[str]] = []
    for spec in runs[0][1].pipeline.chains:
        for label, summary in runs:
            chain = summary.figures.chains[spec.name]
            broken = ", ".join(f"{count} {name}" for name, count in sorted(chain.broken.items()))
            _, bound = bound_cells(summary.bounds.chains[spec.name])
            rows.append(
                [
                    tag("b", spec.name),
                    *([label] if names else []),
                    str(len(chain.path)),
                    four(chain.reaction),
                    ms(spec.reaction_ns),
                    four(chain.age),
                    ms(spec.age_ns),
                    bound.plain,
                    tag("span", broken, class_="outcome late") if broken else "0",
                ]
            )
    return table(head, rows, text_columns=1 + len(names))


def topic_table(summary: RunSummary) -> Html:
    """Return what became of every topic's messages."""
    rows = [
        [
            tag("b", name),
            topic.type,
            str(topic.messages),
            str(topic.delivered),
            tag("span", str(topic.lost), class_="outcome late") if topic.lost else "0",
            str(topic.unread),
            _anomalies(summary, name),
        ]
        for name, topic in summary.topics.items()
    ]
    head = ["topic", "type", "in the log", "delivered", "lost", "unread", "anomalies"]
    return table(head, rows, text_columns=2)


def _anomalies(summary: RunSummary, topic: str) -> Html:
    found = [one for one in summary.anomalies if one.topic == topic]
    lines = [tag("div", f"{one.kind}: {one.detail} ({one.count}x)") for one in found]
    return tag("span", *lines, class_="prose") if lines else Html("none")


def miss_table(rows: Sequence[JobRow], runs: int) -> Html:
    """Return the jobs that were not met, each with a button that shows it, and why."""
    shown = rows[:MISSES_SHOWN]
    head = ["job", "released", "due", "ended", "outcome", "late by", "where the time went"]
    cells = [
        [
            _button(row.record, runs - 1),
            seconds(row.record.release_ns),
            seconds(row.record.due_ns),
            seconds(row.record.end_ns),
            tag("span", _outcome(row), class_=f"outcome {row.record.outcome}"),
            ms(row.record.tardiness_ns) if row.record.outcome == "late" else "-",
            tag("span", "" if row.miss is None else spent_time(row.miss), class_="prose"),
        ]
        for row in shown
    ]
    parts = [table(head, cells)]
    if len(rows) > len(shown):
        what = (
            f"{len(rows) - len(shown):,} more are on the timeline: n and p go from one to the next"
        )
        parts.append(tag("p", f"The first {len(shown)} are listed; {what}.", class_="quiet"))
    return joined(parts)


def change_table(changes: Sequence[JobChange], reachable: int) -> Html:
    """Return the misses that a what-if changed, as its terminal report does.

    Args:
        changes: in the order of the releases.
        reachable: how many of them, from the first, the timeline has.
    """
    shown = changes[:MISSES_SHOWN]
    rows: list[list[str]] = []
    for place, change in enumerate(shown):
        known = change.after or change.before
        assert known is not None
        name = f"{change.task} {known.index}"
        run = 0 if change.after is None else 1
        rows.append(
            [
                tag("span", change.kind, class_=f"change {change.kind}"),
                _button(known, run) if place < reachable else name,
                seconds(known.release_ns),
                ended(change.before).plain,
                ended(change.after).plain,
                tag("span", why(change), class_="prose"),
            ]
        )
    parts = [table(["miss", "job", "released", "before", "after", "why"], rows, text_columns=2)]
    if len(changes) > len(shown):
        what = f"The first {len(shown)} of {len(changes):,} are listed; --json has all."
        parts.append(tag("p", what, class_="quiet"))
    return joined(parts)


def _button(record: JobRecord, run: int) -> Html:
    where = {"data_run": str(run), "data_task": record.task, "data_index": str(record.index)}
    return tag("button", f"{record.task} {record.index}", type="button", class_="link", **where)


def _outcome(row: JobRow) -> str:
    reason = row.record.reason
    return f"{row.record.outcome}: {reason}" if reason else row.record.outcome


def condition_list(summary: RunSummary) -> Html:
    """Return under what conditions the run was made, and its digests."""
    conditions = {k: v for k, v in summary.conditions.items() if not is_of_host(k)}
    if conditions.get("duration_ns", "").isdecimal():
        conditions["duration"] = format_ns(int(conditions.pop("duration_ns")))
    first = {name: conditions.pop(name) for name in FIRST_CONDITIONS if name in conditions}
    told = {
        "pipeline": f"{summary.pipeline.name}, policy {summary.pipeline.policy}",
        "execution times": summary.timing,
        **{name.replace("_", " "): text for name, text in {**first, **conditions}.items() if text},
        "reproducible": "yes" if summary.reproducible else "no",
        "record": summary.record or "none was kept",
        "decisions": summary.decisions or "-",
        "payloads": summary.payloads or "-",
    }
    told.pop("timing", None)
    return entries(told)


def entries(told: Mapping[str, str]) -> Html:
    """Return conditions, each with its name."""
    found: list[Html] = []
    for name, text in told.items():
        wide = {"class_": "wide"} if name in {"decisions", "payloads"} else {}
        found.append(tag("div", tag("dt", name), tag("dd", text), **wide))
    return tag("dl", *found, class_="conditions")


def ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / NS_PER_MS:.1f}"


def seconds(ns: int) -> str:
    return f"{ns / NS_PER_S:.3f} s"
