"""The `overheads` section of a scenario: what scheduling costs on each device.

    overheads:
      default: {decision: 5 us, context_switch: 8 us}
      gpu: {launch: 12 us}

A device that is named has only what is said of it; `default` holds for every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, section
from avrt.config.shares import span
from avrt.errors import did_you_mean
from avrt.model.scenario import OverheadSpec

if TYPE_CHECKING:
    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec

DEFAULT = "default"


def read_overheads(node: Node | None, pipeline: PipelineSpec) -> dict[str, OverheadSpec]:
    """Return the overheads of every device that has some."""
    given = {} if node is None else node.mapping("overheads by device")
    known = [device.name for device in pipeline.devices]
    for key, child in given.items():
        if key not in {DEFAULT, *known}:
            raise child.fail(f"no such device; {did_you_mean(key, [*known, DEFAULT])}")
    if DEFAULT in given and len(given) > len(known):
        raise given[DEFAULT].fail("every device has overheads of its own; remove this")
    specs = {key: build(OverheadSpec, section(child, KEYS)) for key, child in given.items()}
    of_device = {name: specs.get(name, specs.get(DEFAULT, OverheadSpec())) for name in known}
    return {name: spec for name, spec in of_device.items() if spec != OverheadSpec()}


KEYS = (
    Key("release", "release_ns", span),
    Key("decision", "decision_ns", span),
    Key("context_switch", "switch_ns", span),
    Key("launch", "launch_ns", span),
)
