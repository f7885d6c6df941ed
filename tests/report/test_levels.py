"""The ladder as a diagram, and a run's levels in words."""

from pathlib import Path

from avrt.api import Pipeline
from avrt.report.levels import level_diagram

LADDER = Path(__file__).parents[2] / "pipelines" / "ladder.yaml"


def test_the_diagram_has_every_level_and_every_way():
    lines = [line.strip() for line in level_diagram(Pipeline.load(LADDER).spec).splitlines()]
    assert lines[0] == "stateDiagram-v2"
    names = ["four_gpus", "three_gpus", "two_gpus", "one_gpu", "cpu_only", "stop"]
    assert lines[1:7] == [f'state "{name}" as s{place}' for place, name in enumerate(names)]
    assert "s0 --> s4: devices 0" in lines
    assert "s3 --> s4: overload, faults" in lines
    assert "s5 --> s4: reset, clear" in lines
    ways_up = [line for line in lines if line.endswith("clear")]
    assert len(ways_up) == len(names) - 1
    assert sum(line.endswith("failing, order") for line in lines) == len(names) - 1
