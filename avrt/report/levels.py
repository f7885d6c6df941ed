"""At which levels of its ladder a run was: each change, the time at each, the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from avrt.model.levels import levels_of
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.metrics.levels import LevelFigures
    from avrt.model.ladder import LevelSpec
    from avrt.model.spec import PipelineSpec
    from avrt.report.summary import RunSummary

CHANGES_SHOWN = 12


def level_diagram(spec: PipelineSpec) -> str:
    """Return the ladder of a pipeline as a Mermaid state diagram, which GitHub draws."""
    levels = levels_of(spec)
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{level.name}" as s{place}' for place, level in enumerate(levels)]
    lines.append("    [*] --> s0")
    for place in range(len(levels) - 1):
        lines += _ways_down(levels, place)
        is_last = place + 1 == len(levels) - 1
        lines.append(f"    s{place + 1} --> s{place}: {'reset, clear' if is_last else 'clear'}")
    return "\n".join(lines)


def _ways_down(levels: Sequence[LevelSpec], place: int) -> Iterator[str]:
    """Yield what leads down from a level: fewer devices, overload, failing."""
    below = levels[place].devices
    for number, other in enumerate(levels[place + 1 :], place + 1):
        if other.devices < below:
            most = below - 1
            count = f"{most}" if other.devices == most else f"{other.devices} to {most}"
            yield f"    s{place} --> s{number}: devices {count}"
            below = other.devices
    yield f"    s{place} --> s{place + 1}: overload, faults"
    yield f"    s{place} --> s{len(levels) - 1}: failing, order"


def level_notes(summary: RunSummary) -> Iterator[Text]:
    """Yield a line for each change of level, and one for the time at each."""
    figures = summary.levels
    if figures is None:
        return
    changes = [mode for mode in summary.figures.modes if mode.entered]
    for mode in changes[:CHANGES_SHOWN]:
        yield Text(f"{mode.at_ns / NS_PER_S:.3f} s: level {mode.mode}, {mode.cause}", "yellow")
    if len(changes) > CHANGES_SHOWN:
        yield Text(f"... {len(changes) - CHANGES_SHOWN} more changes of level", "yellow")
    yield Text(_times(figures))


def _times(figures: LevelFigures) -> str:
    total_ns = max(1, figures.total_ns)
    parts = [f"{name} {ns / total_ns:.1%}" for name, ns in figures.time_ns.items() if ns]
    told = f"levels: {', '.join(parts)}; available {figures.available:.2%}"
    if figures.repairs_ns:
        mean, most = format_ns(figures.mttr_ns or 0), format_ns(max(figures.repairs_ns))
        told += f"; back at the first level {len(figures.repairs_ns)}x, mean {mean}, max {most}"
    return told + ("; not back at the end" if figures.is_open else "")
