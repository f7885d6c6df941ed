"""What only runs in real time have: streams that were measured, and a host that granted rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from avrt.metrics.streams import PARTS
from avrt.report.page.markup import Html, section, table, tag
from avrt.report.streams import host_notes, lateness_note, side_by_side, stream_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from avrt.report.page.run import Run
    from avrt.report.page.tables import Named
    from avrt.report.summary import RunSummary

RIGHT = "realtime."
OF_HOST = ("cores_plan", "room")
"""Conditions of a live run that are told with its host, besides its rights."""
REFUSED_NOTE = "not granted: "


class Right(NamedTuple):
    """One measure for real time: what was got, or why not, and the threads that it is for."""

    name: str
    granted: bool
    told: str
    threads: tuple[str, ...]


def is_of_host(condition: str) -> bool:
    """Whether a condition is told in the section of the host."""
    return condition.startswith(RIGHT) or condition in OF_HOST


def rights(summary: RunSummary) -> list[Right]:
    """Return what was refused, then what was granted, threads that got the same together."""
    found: dict[tuple[str, bool, str], list[str]] = {}
    for condition, text in summary.conditions.items():
        if condition.startswith(RIGHT):
            name, _, thread = condition.removeprefix(RIGHT).partition(":")
            how, _, told = text.partition(": ")
            found.setdefault((name, how == "granted", told), []).extend(filter(None, [thread]))
    all_ = [Right(*key, tuple(threads)) for key, threads in found.items()]
    return sorted(all_, key=lambda right: (right.granted, right.name))


def streams(runs: Sequence[Named]) -> Html:
    """Return what the streams did all the time, where their devices have clocks."""
    parts: list[Html] = []
    for name, summary in runs:
        rows = [[tag("b", stream), *cells] for stream, cells in stream_rows(summary)]
        if not rows:
            continue
        if len(runs) > 1:
            parts.append(tag("h3", name))
        shares = ["working", *(part.replace("_", " ") for part in PARTS)]
        spread = [f"{name}, ms p50/p95/p99/max" for name in ("handing over", "reporting")]
        parts.append(table(["stream", *shares, *spread], rows))
        parts += [tag("p", line.plain, class_="quiet") for line in side_by_side(summary)]
    if not parts:
        return Html("")
    what = (
        "Shares of the time, by the clocks of the devices. Before each job's work lies a gap: the "
        "work before is not reported yet, then no job is there (idle), then one is and waits for a "
        "slot or for the driver, then it is handed over to its thread."
    )
    return section("streams", "Streams", tag("p", what, class_="quiet"), *parts)


def host(runs: Sequence[Run]) -> Html:
    """Return what the host granted and gave, and a place for that over time."""
    parts: list[Html] = []
    for number, run in enumerate(runs):
        summary = run.summary
        told, got = list(host_lines(summary)), rights(summary)
        if not told and not got and not run.host.samples:
            continue
        if len(runs) > 1:
            parts.append(tag("h3", run.name))
        if run.host.samples:
            parts.append(tag("div", class_="charts host-charts", data_run=str(number)))
        lines = [line.plain for line in told if not line.plain.startswith(REFUSED_NOTE)]
        if "cores_plan" in summary.conditions:
            lines.append(f"cores: {summary.conditions['cores_plan']}")
        if lines:
            parts.append(tag("ul", *(tag("li", line) for line in lines), class_="lines"))
        if got:
            parts += [tag("h3", "Rights for real time"), _list(got)]
    if not parts:
        return Html("")
    what = (
        "What this process and all others used, a step from one sample to the next. Ticks along "
        "the top are the due times of jobs that were not met. A job is starved where the host gave "
        "too little while it was open, held where only the driver was late, else fed."
    )
    return section("host", "Host", tag("p", what, class_="quiet"), *parts)


def host_lines(summary: RunSummary) -> Iterator[Text]:
    """Yield what the terminal tells of the host, where it was watched."""
    if summary.resources.samples:
        yield from lateness_note(summary)
        yield from host_notes(summary)


def _list(got: Sequence[Right]) -> Html:
    items: list[Html] = []
    for right in got:
        how = "granted" if right.granted else "refused"
        whom = f" ({', '.join(right.threads)})" if right.threads else ""
        name = tag("b", right.name.replace("_", " "))
        sign = tag("span", how, class_=f"right {how}")
        items.append(tag("li", sign, " ", name, f" {right.told}{whom}"))
    return tag("ul", *items, class_="rights")
