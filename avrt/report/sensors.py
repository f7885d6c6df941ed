"""The sensor mode of a run in words: what was rejected, and which sensor was out of use when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from avrt.model.guard import IN_USE
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.metrics.run import RunFigures
    from avrt.metrics.sensors import SensorFigures

CHANGES_SHOWN = 6


def sensor_notes(figures: RunFigures) -> Iterator[Text]:
    """Yield a line for each sensor with a guard, and one for its changes of state."""
    for name, sensor in figures.sensors.items():
        if sensor.is_flawless:
            yield Text(f"sensor {name}: ok throughout, no message rejected")
            continue
        style = "red" if sensor.rejected else "yellow"
        yield Text(f"sensor {name}: {_counts(sensor)}", style=style)
        if sensor.changes:
            yield Text(f"  {_changes(sensor)}", style=style)


def _counts(sensor: SensorFigures) -> str:
    """Return what became of its messages."""
    ranked = sorted(sensor.rejected.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in ranked)
    total = sum(sensor.rejected.values())
    parts = [f"{total} messages rejected ({reasons})" if total else "no message rejected"]
    if sensor.missing:
        parts.append(f"{sensor.missing} missing by its counter")
    if sensor.dropped:
        parts.append(f"{sensor.dropped} points dropped that are no numbers")
    return ", ".join(parts)


def _changes(sensor: SensorFigures) -> str:
    """Return its states by time, and the one that it ended with."""
    shown = sensor.changes[:CHANGES_SHOWN]
    told = ", ".join(f"{change.state} at {change.at_ns / NS_PER_S:.3f} s" for change in shown)
    left = sensor.change_count - len(shown)
    more = f", ... {left} more changes, {sensor.state} at the end" if left else ""
    still = "" if left or sensor.state in IN_USE else " and until the end"
    return f"{told}{more}{still}"
