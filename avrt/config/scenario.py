"""The scenario file: a pipeline, what happens to it, and what must come of it.

    scenario: overload
    pipeline: ../pipelines/hello.yaml
    duration: 10 s
    execution: {lidar_detect: {uniform: {min: 30 ms, max: 45 ms}}}
    expect: {stages: {lidar_detect: {late: 0, p99: at most 60 ms}}}

Read as strictly as a pipeline file and with the same errors. Paths count from the scenario's
folder. `config.execution`, `config.arrivals`, `config.overheads`, `config.faults` and
`config.expectations` read the sections.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.config.arrivals import read_arrivals
from avrt.config.execution import read_execution
from avrt.config.expectations import read_expectations
from avrt.config.faults import read_faults
from avrt.config.overheads import read_overheads
from avrt.config.pipeline import load_named
from avrt.config.reader import Key, later, name, section, text
from avrt.config.shares import above_zero, whole
from avrt.config.yaml_text import read_text, read_yaml
from avrt.model.scenario import ScenarioSpec

if TYPE_CHECKING:
    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec


class LoadedScenario:
    """A scenario as it was loaded.

    Attributes:
        pipeline: its pipeline file.
        paths: the files read so far: the scenario and its pipeline.
    """

    def __init__(self, path: Path) -> None:
        """Read and check a scenario file; SpecError says in one line where and what is wrong."""
        root = read_yaml(read_text(path, "scenario"), str(path), "scenario")
        if isinstance(root.value, dict) and "stages" in root.value:
            raise root.fail("this is a pipeline, not a scenario; write a scenario that names it")
        values = section(root, SCENARIO_KEYS)
        self.pipeline = load_named(root, path)
        self.paths = (path, Path(self.pipeline.path))
        self.spec = _scenario(root, values, self.pipeline.spec, path.parent)


def _scenario(
    root: Node, values: dict[str, object], pipeline: PipelineSpec, folder: Path
) -> ScenarioSpec:
    given = root.mapping()
    duration_ns, seed = values["duration_ns"], values.get("seed", 0)
    assert isinstance(duration_ns, int)
    assert isinstance(seed, int)
    scenario = ScenarioSpec(
        name=str(values["name"]),
        pipeline=pipeline,
        duration_ns=duration_ns,
        seed=seed,
        execution=read_execution(given.get("execution"), pipeline, folder),
        arrivals=read_arrivals(given.get("arrivals"), root, pipeline, folder),
        faults=read_faults(given.get("faults"), pipeline),
        expect=read_expectations(given.get("expect"), pipeline, duration_ns),
        overheads=read_overheads(given.get("overheads"), pipeline),
    )
    count = _releases(scenario)
    if count > RELEASES_MAX:
        what = f"about {count:.3g} messages and timer releases in that time; expected at most"
        raise given["duration"].fail(f"{what} {RELEASES_MAX:.0e}: shorten it, or lower the rates")
    return scenario


def _releases(scenario: ScenarioSpec) -> int:
    """Return about how many messages come and timers fire, those of logs not counted."""
    periods = [stage.period_ns for stage in scenario.pipeline.stages if stage.period_ns]
    count = sum(scenario.duration_ns // period_ns for period_ns in periods)
    for item in scenario.arrivals:
        if item.period_ns:
            count += item.size * (scenario.duration_ns // item.period_ns)
    return count


RELEASES_MAX = 100_000_000
"""An hour or so of simulation; more is a mistyped rate."""
SCENARIO_KEYS = (
    Key("scenario", "name", name, example="my_scenario"),
    Key("pipeline", "pipeline", text, example="../pipelines/hello.yaml"),
    Key("duration", "duration_ns", above_zero, example="10 s"),
    Key("seed", "seed", whole),
    Key("execution", "execution", later),
    Key("arrivals", "arrivals", later),
    Key("overheads", "overheads", later),
    Key("faults", "faults", later),
    Key("expect", "expect", later),
)
