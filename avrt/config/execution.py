"""The `execution` section of a scenario: how long the jobs of each stage take.

    execution:
      default: {uniform: {min: 60 %, max: 100 %}}
      lidar_detect: {normal: {mean: 25 ms, deviation: 4 ms, min: 10 ms, max: 40 ms}}
      plan: {mixture: [{weight: 95 %, model: {constant: 4 ms}}, {weight: 5 %, model: ...}]}

A time is a duration or a share of the stage's wcet, so that one default serves every stage. A stage
that nothing is said of takes its profile, or without one its wcet.

    execution:
      detect: {devices: {gpu: {constant: 13 ms}, cpu: {constant: 33 ms}}}

Under `devices` there is a model for each device that jobs may start on; for one that is not named
`default` holds there, or else the wcet.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.config.profile import read_times
from avrt.config.reader import Key, name, section, text
from avrt.config.shares import above_zero, percent, positive
from avrt.errors import did_you_mean
from avrt.model.execution import (
    MASS_MIN,
    ByDevice,
    Constant,
    ExecutionModel,
    LogNormal,
    Mixture,
    Normal,
    Recorded,
    Sampled,
    StageModel,
    Uniform,
)

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec, StageSpec

DEFAULT = "default"
DEVICES = "devices"
MODEL_EXAMPLE = 'a model, such as "{constant: 25 ms}"'
MODELS_MAX = 16
DEPTH_MAX = 4


def read_execution(
    node: Node | None, pipeline: PipelineSpec, folder: Path
) -> dict[str, StageModel]:
    """Return the model of every stage; paths count from `folder`."""
    given = {} if node is None else node.mapping("models by stage")
    known = [stage.name for stage in pipeline.stages]
    for key, child in given.items():
        if key not in {DEFAULT, *known}:
            raise child.fail(f"no such stage; {did_you_mean(key, [*known, DEFAULT])}")
    if DEFAULT in given and len(given) > len(known):
        raise given[DEFAULT].fail("every stage has a model of its own; remove this")
    models: dict[str, StageModel] = {}
    for stage in pipeline.stages:
        own = given.get(stage.name, given.get(DEFAULT))
        reader = _Reader(stage, folder)
        if own is None:
            models[stage.name] = _declared(stage)
        elif DEVICES in own.mapping(MODEL_EXAMPLE):
            models[stage.name] = _by_device(reader, own, pipeline, is_own=stage.name in given)
        else:
            models[stage.name] = reader.model(own)
    return models


def _by_device(reader: _Reader, node: Node, pipeline: PipelineSpec, *, is_own: bool) -> ByDevice:
    """Return the models of a stage by device; a default may name devices that it never is on."""
    stage, (members, *others) = reader.stage, node.mapping().values()
    if others:
        raise node.fail(f"expected '{DEVICES}' alone, found {len(others)} more")
    given = members.mapping("models by device")
    homes = dict.fromkeys(pipeline.device(home) for home in stage.homes)
    known = list(dict.fromkeys(place.name for home in homes for place in pipeline.places(home)))
    allowed = known if is_own else [device.name for device in pipeline.devices]
    for key, child in given.items():
        if key not in {DEFAULT, *allowed}:
            where = f"{stage.name!r} never starts there" if is_own else "no such device"
            raise child.fail(f"{where}; {did_you_mean(key, [*allowed, DEFAULT])}")
    if not given:
        raise members.fail("expected a model for some device, found none")
    rest = reader.model(given[DEFAULT]) if DEFAULT in given else Constant(stage.wcet_ns)
    return ByDevice({n: reader.model(given[n]) if n in given else rest for n in known})


def _declared(stage: StageSpec) -> ExecutionModel:
    """Return what the pipeline says: the profile if there is one, or else the wcet."""
    return Sampled(stage.profile_ns) if stage.profile_ns else Constant(stage.wcet_ns)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the model of one stage."""

    stage: StageSpec
    folder: Path

    def model(self, node: Node, depth: int = 0) -> ExecutionModel:
        """Return the model of a node with one key, the kind."""
        members = node.mapping(MODEL_EXAMPLE)
        for kind, child in members.items():
            if kind not in KINDS:
                raise child.fail(f"no such model; {did_you_mean(kind, KINDS)}")
        if len(members) != 1:
            raise node.fail(f"expected one model, found {len(members)}")
        ((kind, child),) = members.items()
        match kind:
            case "constant":
                return Constant(self._cost(child))
            case "uniform":
                return self._uniform(child)
            case "normal":
                return self._normal(child)
            case "lognormal":
                return self._lognormal(child)
            case "mixture":
                return self._mixture(child, depth + 1)
            case _:
                return self._measured(child, in_order=kind == "trace")

    def _cost(self, node: Node) -> int:
        """Return a time above zero, given as it is or as a share of the wcet; ns."""
        if isinstance(node.value, str) and node.value.endswith("%"):
            return max(1, int(percent(node) * self.stage.wcet_ns))
        return above_zero(node)

    def _uniform(self, node: Node) -> Uniform:
        values = section(node, self._keys("min", "max"))
        low_ns, high_ns = _whole(values["min"]), _whole(values["max"])
        _check_bounds(node, low_ns, high_ns)
        return Uniform(low_ns, high_ns)

    def _normal(self, node: Node) -> Normal:
        values = section(node, self._keys("mean", "deviation", "min", "max"))
        low_ns, high_ns = _whole(values["min"]), _whole(values["max"])
        _check_bounds(node, low_ns, high_ns)
        made = Normal(_whole(values["mean"]), _whole(values["deviation"]), low_ns, high_ns)
        _check_mass(node, made.mass)
        return made

    def _lognormal(self, node: Node) -> LogNormal:
        sigma = Key("sigma", "sigma", positive, example="0.3")
        values = section(node, (*self._keys("median", "max"), sigma))
        deviation = values["sigma"]
        assert isinstance(deviation, float)
        made = LogNormal(_whole(values["median"]), deviation, _whole(values["max"]))
        _check_mass(node, made.mass)
        return made

    def _mixture(self, node: Node, depth: int) -> Mixture:
        items = node.items("a list of weights with models")
        if not 2 <= len(items) <= MODELS_MAX or depth > DEPTH_MAX:
            what = f"expected 2 to {MODELS_MAX} models, {DEPTH_MAX} deep at most"
            raise node.fail(f"{what}, found {len(items)}")
        keys = (
            Key("weight", "weight", percent, example="50 %"),
            Key("model", "model", lambda child: self.model(child, depth), example="{...}"),
        )
        shares: list[Fraction] = []
        models: list[ExecutionModel] = []
        for item in items:
            part = section(item, keys)
            share, model = part["weight"], part["model"]
            assert isinstance(share, Fraction)
            assert isinstance(model, ExecutionModel)
            if not share:
                raise item.fail("a weight of 0 % has no effect; remove it")
            shares.append(share)
            models.append(model)
        if sum(shares) != 1:
            found = f"{float(sum(shares) * 100):g} %"
            raise node.fail(f"expected weights that sum to 100 %, found {found}")
        return Mixture(tuple(float(share) for share in shares), tuple(models))

    def _measured(self, node: Node, *, in_order: bool) -> Recorded | Sampled:
        values = section(node, MEASURED_KEYS)
        stage = str(values.get("stage", self.stage.name))
        run, profile = values.get("run"), values.get("profile")
        if (run is None) == (profile is None):
            raise node.fail("expected either a 'run' or a 'profile'")
        if run is not None:
            return Recorded(str(self.folder / str(run)), stage, in_order)
        if in_order:
            raise node.fail("a profile has no order that matters; use 'histogram', or a 'run'")
        return Sampled(read_times(node.mapping()["profile"], stage, None, self.folder))

    def _keys(self, *names: str) -> tuple[Key, ...]:
        return tuple(Key(key, key, self._cost, example="25 ms") for key in names)


KINDS = ("constant", "uniform", "normal", "lognormal", "mixture", "histogram", "trace")
MEASURED_KEYS = (
    Key("run", "run", text),
    Key("profile", "profile", text),
    Key("stage", "stage", name),
)


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _check_bounds(node: Node, low_ns: int, high_ns: int) -> None:
    if low_ns > high_ns:
        raise node.fail("'min' is above 'max'; swap them")


def _check_mass(node: Node, mass: float) -> None:
    if mass < MASS_MIN:
        raise node.fail("almost nothing of this distribution lies within its bounds; widen them")
