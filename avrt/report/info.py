"""A survey of a log in words, and as one object."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.logs.ros.types import TRANSFORMS
from avrt.model.printable import escaped
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from avrt.logs.survey.survey import Survey
    from avrt.logs.survey.topic import TopicSurvey

MEBI = 1 << 20


def survey_text(name: str, survey: Survey) -> Iterator[RenderableType]:
    """Yield what a log holds, for a person to read."""
    yield Text(escaped(f"{name}: {_extent(survey)}"))
    if survey.topics:
        yield _table(survey)
    for anomaly in survey.anomalies:
        where = anomaly.topic or "file"
        told = f"{anomaly.count}x{_at(survey, anomaly.at_ns)}"
        what = f"{anomaly.kind} in {where}: {anomaly.detail} ({told})"
        yield Text(escaped(what), style="red" if anomaly.kind == "damaged" else "yellow")
    if not survey.anomalies:
        yield Text("nothing is odd")
    yield Text(_read(survey))


def _extent(survey: Survey) -> str:
    messages = sum(topic.messages for topic in survey.topics)
    unknown = "part of a folder" if messages else "empty"
    size = f"{survey.size_bytes / MEBI:.1f} MiB" if survey.size_bytes else unknown
    return f"{survey.format}, {size}, {messages} messages in {_seconds(survey):.3f} s"


def _seconds(survey: Survey) -> float:
    if survey.first_ns is None or survey.last_ns is None:
        return 0.0
    return (survey.last_ns - survey.first_ns) / NS_PER_S


def _at(survey: Survey, at_ns: int | None) -> str:
    if at_ns is None or survey.first_ns is None:
        return ""
    return f", first at {(at_ns - survey.first_ns) / NS_PER_S:.3f} s"


def _table(survey: Survey) -> Table:
    table = Table()
    for name in ("topic", "type", "read as", "frame"):
        table.add_column(name, overflow="fold")
    for name in ("messages", "Hz", "step p50 ms", "p5 to p95", "max", "after its stamp ms"):
        table.add_column(name, justify="right")
    for topic in survey.topics:
        style = None if topic.kind or topic.type == TRANSFORMS else "dim"
        table.add_row(*map(Text, map(escaped, _cells(topic))), style=style)
    return table


def _cells(topic: TopicSurvey) -> tuple[str, ...]:
    steps = topic.steps
    timed = ("-", "-", "-", "-")
    if steps is not None and steps.max_ns:
        timed = (
            f"{steps.hz:.4g}",
            _ms(steps.median_ns),
            f"{_ms(steps.p5_ns)} to {_ms(steps.p95_ns)}",
            _ms(steps.max_ns),
        )
    lag = topic.lag
    late = "-" if lag is None else f"{_ms(lag.min_ns)} to {_ms(lag.max_ns)}"
    use = "transforms" if topic.type == TRANSFORMS else topic.kind or "-"
    kind = topic.type or f"none ({topic.encoding or 'no encoding'})"
    return topic.topic, kind, use, ", ".join(topic.frames) or "-", str(topic.messages), *timed, late


def _ms(ns: int) -> str:
    return f"{ns / NS_PER_MS:.3f}" if abs(ns) < 100 * NS_PER_S else f"{ns / NS_PER_S:.0f} s"


def _read(survey: Survey) -> str:
    if survey.complete:
        good = "" if survey.damage is None else " good"
        return f"read: all {survey.read}{good} messages, every check sum among them"
    to = 0 if survey.read_to_ns is None else survey.read_to_ns - (survey.first_ns or 0)
    rest = (
        "counts and times of the rest are from the log's index"
        if survey.indexed
        else "counts of the rest are what the log promises, and its times are not known: no index"
    )
    return (
        f"read: {survey.read} messages, up to {to / NS_PER_S:.3f} s; {rest}; "
        "its stamps and check sums were not looked at (--all does)"
    )


def survey_object(survey: Survey) -> dict[str, object]:
    """Return everything as one object; `docs/info.md` names its keys."""
    return {
        "format": survey.format,
        "size_bytes": survey.size_bytes,
        "first_ns": survey.first_ns,
        "last_ns": survey.last_ns,
        "damage": None if survey.damage is None else str(survey.damage),
        "read": {
            "messages": survey.read,
            "to_ns": survey.read_to_ns,
            "complete": survey.complete,
            "indexed": survey.indexed,
        },
        "topics": [_topic_object(topic) for topic in survey.topics],
        "anomalies": [asdict(anomaly) for anomaly in survey.anomalies],
    }


def _topic_object(topic: TopicSurvey) -> dict[str, object]:
    return {
        "topic": topic.topic,
        "type": topic.type,
        "encoding": topic.encoding,
        "messages": topic.messages,
        "read": topic.read,
        "size_bytes": topic.size_bytes,
        "frames": topic.frames,
        "read_as": topic.kind or None,
        "kinds": topic.kinds,
        "unreadable": topic.unreadable or None,
        "log_time": None if topic.log is None else asdict(topic.log),
        "stamp": None if topic.stamps is None else asdict(topic.stamps),
        "lag_ns": None if topic.lag is None else topic.lag._asdict(),
    }
