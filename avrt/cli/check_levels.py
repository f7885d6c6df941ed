"""What `avrt check` says of the levels of a ladder, each judged as a pipeline of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.analysis.admission import known_misses
from avrt.model.levels import at_level, levels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from avrt.analysis.schedulability import Findings
    from avrt.model.spec import PipelineSpec

STYLES = {"meets": "green", "misses": "red", "unknown": "yellow"}


def level_parts(spec: PipelineSpec, levels: Mapping[str, Findings]) -> Iterator[RenderableType]:
    """Yield a table of the levels and what is known to be missed at each; nothing without any."""
    if not levels:
        return
    table = Table(title="levels", title_justify="left")
    for name in ("level", "devices", "left out", "utilisation", "verdict"):
        table.add_column(name)
    for level in levels_of(spec):
        found = levels[level.name]
        left_out = ", ".join(level.without) or "-"
        verdict = Text(found.verdict, style=STYLES[found.verdict])
        table.add_row(level.name, str(level.devices), left_out, _loads(found), verdict)
    yield table
    for level in levels_of(spec):
        for _, what in known_misses(at_level(spec, level), levels[level.name]):
            yield Text(f"at level {level.name}: {what}", style="red")


def _loads(found: Findings) -> str:
    known = [(d.name, d.utilisation) for d in found.devices if d.utilisation]
    return ", ".join(f"{name} {float(load):.2f}" for name, load in known) or "-"


def level_data(levels: Mapping[str, Findings]) -> dict[str, object]:
    """Return the verdict of each level and the utilisation of its devices."""
    return {
        name: {
            "verdict": found.verdict,
            "utilisation": {
                device.name: None if device.utilisation is None else float(device.utilisation)
                for device in found.devices
            },
        }
        for name, found in levels.items()
    }
