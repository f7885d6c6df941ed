"""What the streams of a run at the wall clock did, and what its host gave, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.metrics.streams import PARTS
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.metrics.resources import Level
    from avrt.metrics.streams import StreamFigures
    from avrt.report.summary import RunSummary

FOUR = ("p50", "p95", "p99", "max")
MIB = 2**20


def streams_table(summary: RunSummary) -> Iterator[Table]:
    """Yield one row a stream, where devices said when their work ran."""
    if not summary.figures.streams.measured or not summary.end_ns:
        return
    table = Table(
        title="Streams: share of the time, and what came before each job (ms)",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("stream")
    for name in ("working", *(part.replace("_", " ") for part in PARTS)):
        table.add_column(name, justify="right")
    for part in ("handing_over", "reporting"):
        table.add_column(Text(f"{part.replace('_', ' ')}\np50/p95/p99/max"), justify="right")
    for name, cells in stream_rows(summary):
        table.add_row(Text(name), *cells)
    yield table


def stream_rows(summary: RunSummary) -> Iterator[tuple[str, list[str]]]:
    """Yield every stream that worked: its shares of the time, and p50/p95/p99/max of two parts."""
    span_ns = summary.end_ns - summary.begin_ns
    for name, stream in summary.figures.streams.streams.items():
        if stream.busy_ns and span_ns > 0:
            yield name, _cells(stream, span_ns)


def side_by_side(summary: RunSummary) -> Iterator[Text]:
    """Yield how much streams worked at the same time."""
    share = summary.figures.streams.side_by_side.share()
    if share is not None:
        yield Text(f"two streams or more worked side by side in {share:.0%} of the working time")


def lateness_note(summary: RunSummary) -> Iterator[Text]:
    """Yield how late the driver was, where it kept to the wall clock."""
    late = summary.wakeup_late_ns
    if late["count"]:
        ms = "/".join(
            "-" if (ns := late[name]) is None else f"{ns / NS_PER_MS:.1f}" for name in FOUR
        )
        yield Text(f"the driver was {ms} ms late at planned instants (p50/p95/p99/max)")


def host_notes(summary: RunSummary) -> Iterator[Text]:
    """Yield what a live run used of its host, and what was refused or lacking."""
    load = summary.resources
    if not load.samples:
        return
    levels = load.levels
    used = f"{_pair(levels, 'process_cores', 1, '.2f')} cores (p50/max)"
    others = f"others {_pair(levels, 'others_cores', 1, '.2f')}"
    memory = f"memory {_span(levels, 'rss_bytes', MIB, '.0f')} MiB"
    files = f"descriptors {_span(levels, 'descriptors', 1, '.0f')} (first/last/max)"
    yield Text(f"host: {used}, {others}; {memory}, {files}")
    refused = [
        f"{name.removeprefix('realtime.')}: {told.removeprefix('refused: ')}"
        for name, told in summary.conditions.items()
        if name.startswith("realtime.") and told.startswith("refused")
    ]
    for line in dict.fromkeys(refused):
        yield Text(f"not granted: {line}", style="yellow")
    if "room" in summary.conditions:
        told = summary.conditions["room"]
        yield Text(told, style="yellow" if "TOO LITTLE" in told else "")
    if load.misses:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in load.misses.items())
        yield Text(f"of the first misses, by what the host gave then: {counts}")
    if load.evidence:
        yield Text(load.evidence, style="yellow")


def _cells(stream: StreamFigures, span_ns: int) -> list[str]:
    shares = [stream.busy_ns, *(stream.total_ns[part] for part in PARTS)]
    cells = [f"{ns / span_ns:.1%}" for ns in shares]
    for part in ("handing_over", "reporting"):
        figures = stream.gaps_ns[part].summary()
        cells.append("/".join(_ms(figures[name]) for name in FOUR))
    return cells


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / NS_PER_MS:.2f}"


def _pair(levels: Mapping[str, Level], name: str, unit: float, form: str) -> str:
    level = levels.get(name)
    values = (None, None) if level is None else (level.p50, level.max)
    return "/".join("-" if value is None else format(value / unit, form) for value in values)


def _span(levels: Mapping[str, Level], name: str, unit: float, form: str) -> str:
    level = levels.get(name)
    values = (None,) * 3 if level is None else (level.first, level.last, level.max)
    return "/".join("-" if value is None else format(value / unit, form) for value in values)
