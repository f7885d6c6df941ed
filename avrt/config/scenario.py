"""The scenario file: a pipeline, what happens to it, and what must come of it.

    scenario: overload
    pipeline: ../pipelines/hello.yaml
    duration: 10 s
    execution: {lidar_detect: {uniform: {min: 30 ms, max: 45 ms}}}
    expect: {stages: {lidar_detect: {late: 0, p99: at most 60 ms}}}

Read as strictly as a pipeline file and with the same errors. Paths count from the scenario's
folder. `config.execution`, `config.arrivals`, `config.overheads` and `config.faults` read the
sections of these names.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.config import pipeline as pipeline_file
from avrt.config.arrivals import read_arrivals
from avrt.config.execution import read_execution
from avrt.config.faults import read_faults
from avrt.config.overheads import read_overheads
from avrt.config.reader import Key, name, section, text
from avrt.config.shares import above_zero, limit, percent, span, whole
from avrt.config.yaml_text import read_text, read_yaml
from avrt.errors import did_you_mean
from avrt.model.scenario import (
    BROKEN,
    COUNTS,
    ENDS,
    RESPONSES,
    SHARES,
    Expectation,
    ScenarioSpec,
    Scope,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec


class LoadedScenario:
    """A scenario as it was loaded.

    Attributes:
        pipeline_text: the whole pipeline file.
        paths: the files read so far: the scenario and its pipeline.
    """

    def __init__(self, path: Path) -> None:
        """Read and check a scenario file; SpecError says in one line where and what is wrong."""
        root = read_yaml(read_text(path, "scenario"), str(path), "scenario")
        values = section(root, SCENARIO_KEYS)
        folder = path.parent
        pipeline_path = folder / str(values["pipeline"])
        if not pipeline_path.is_file():
            at = root.mapping()["pipeline"]
            near = [f.name for f in sorted(pipeline_path.parent.glob("*.yaml")) if f != path]
            remedy = f"; {did_you_mean(pipeline_path.name, near)}" if near else ""
            raise at.fail(f"no file {str(pipeline_path)!r}{remedy}")
        loaded = pipeline_file.load(pipeline_path)
        self.paths = (path, pipeline_path)
        self.pipeline_text = loaded.text
        self.spec = _scenario(root, values, loaded.spec, folder)


def _scenario(
    root: Node, values: dict[str, object], pipeline: PipelineSpec, folder: Path
) -> ScenarioSpec:
    given = root.mapping()
    duration_ns, seed = values["duration_ns"], values.get("seed", 0)
    assert isinstance(duration_ns, int)
    assert isinstance(seed, int)
    return ScenarioSpec(
        name=str(values["name"]),
        pipeline=pipeline,
        duration_ns=duration_ns,
        seed=seed,
        execution=read_execution(given.get("execution"), pipeline, folder),
        arrivals=read_arrivals(given.get("arrivals"), root, pipeline, folder),
        faults=read_faults(given.get("faults"), pipeline),
        expect=tuple(_expectations(given.get("expect"), pipeline)),
        overheads=read_overheads(given.get("overheads"), pipeline),
    )


def _expectations(node: Node | None, pipeline: PipelineSpec) -> Iterator[Expectation]:
    if node is None:
        return
    section(node, EXPECT_KEYS)
    given = node.mapping()
    if "all" in given:
        yield from _limits("all", "", given["all"], ALL_KEYS)
    stages = [stage.name for stage in pipeline.stages]
    chains = [chain.name for chain in pipeline.chains]
    yield from _members("stages", given.get("stages"), stages, STAGE_LIMIT_KEYS)
    yield from _members("chains", given.get("chains"), chains, CHAIN_LIMIT_KEYS)


def _members(
    scope: Scope, node: Node | None, known: list[str], keys: Iterable[Key]
) -> Iterator[Expectation]:
    members = {} if node is None else node.mapping(f"limits by {scope[:-1]}")
    for key, child in members.items():
        if key not in known:
            raise child.fail(f"no such {scope[:-1]}; {did_you_mean(key, known)}")
        yield from _limits(scope, key, child, keys)


def _limits(scope: Scope, of: str, node: Node, keys: Iterable[Key]) -> Iterator[Expectation]:
    for figure, found in section(node, keys).items():
        assert isinstance(found, tuple)
        relation, value, told = found
        assert isinstance(value, Fraction)
        yield Expectation(scope, of, figure, relation, value, told)


def _as_it_is(node: Node) -> object:
    return node  # read once the pipeline is known


def _keys(names: Iterable[str], read: Callable[[Node], Fraction | int]) -> tuple[Key, ...]:
    return tuple(Key(figure, figure, limit(read)) for figure in names)


SCENARIO_KEYS = (
    Key("scenario", "name", name, example="my_scenario"),
    Key("pipeline", "pipeline", text, example="../pipelines/hello.yaml"),
    Key("duration", "duration_ns", above_zero, example="10 s"),
    Key("seed", "seed", whole),
    Key("execution", "execution", _as_it_is),
    Key("arrivals", "arrivals", _as_it_is),
    Key("overheads", "overheads", _as_it_is),
    Key("faults", "faults", _as_it_is),
    Key("expect", "expect", _as_it_is),
)
EXPECT_KEYS = (
    Key("all", "all", _as_it_is),
    Key("stages", "stages", _as_it_is),
    Key("chains", "chains", _as_it_is),
)
_JOB_KEYS = (*_keys(COUNTS, whole), *_keys(SHARES, percent))
ALL_KEYS = (*_JOB_KEYS, *_keys(BROKEN, whole))
STAGE_LIMIT_KEYS = (*_JOB_KEYS, *_keys(RESPONSES, span))
CHAIN_LIMIT_KEYS = (*_keys(BROKEN, whole), *_keys(ENDS, span))
