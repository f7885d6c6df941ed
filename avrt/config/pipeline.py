"""The pipeline file (DESIGN.md section 11): its keys, what they mean, and their defaults.

One table of keys a section; YAML and Python go through the same tables, so `@stage(wcet="5 ms")`
and `wcet: 5 ms` are read alike and fail alike. What must hold between the parts is in
`avrt.model.graph`; this module gives its errors their line in the file.

The keys of a stage are in `avrt.config.stage_keys`. Without `devices` there is one: `cpu`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.config.calibration import CALIBRATION_KEYS, fill_calibration
from avrt.config.guard import GUARD_SHAPE, guard
from avrt.config.ladder import LADDER_KEYS, ladder
from avrt.config.node import Node, from_python
from avrt.config.reader import (
    Key,
    boolean,
    build,
    duration,
    integer,
    later,
    name,
    named,
    names,
    one_of,
    rate,
    section,
    text,
)
from avrt.config.reference import reference
from avrt.config.shape import (
    AT_LEAST_ONE,
    DURATION,
    LASTING,
    NAME,
    by_name,
    list_of,
    object_of,
    whole,
)
from avrt.config.stage_keys import STAGE_SHAPE, parameters, read_stage
from avrt.config.yaml_text import read_text, read_yaml
from avrt.errors import SpecError, did_you_mean
from avrt.model.graph import check
from avrt.model.spec import (
    POLICIES,
    ChainSpec,
    DeviceSpec,
    PipelineSpec,
    SourceSpec,
    TableRow,
    TableSpec,
)
from avrt.model.supply import Supply

if TYPE_CHECKING:
    from collections.abc import Mapping

SENSORS = ("camera", "lidar", "radar", "imu", "gnss", "can")
_DEVICE_TYPE = re.compile(r"cpu|simulated|cuda:[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline as it was loaded.

    Attributes:
        text: the whole file.
        path: the file's path, as the user gave it, or the name given to `parse`.
        root: the file's tree, which knows the lines.
    """

    spec: PipelineSpec
    text: str
    path: str
    root: Node

    def placed(self, error: SpecError) -> SpecError:
        """Return a SpecError found later (a binding, a driver) with its line in this file."""
        return _placed(self.root, error)


def load(path: str | Path) -> LoadedPipeline:
    """Read and check a pipeline file; SpecError says in one line where and what is wrong."""
    return parse(read_text(Path(path)), str(path))


def load_named(root: Node, path: Path) -> LoadedPipeline:
    """Load the pipeline that another file at `path` names, from the folder of that file."""
    node = root.mapping()["pipeline"]
    found = path.parent / node.text
    if not found.is_file():
        near = [file.name for file in sorted(found.parent.glob("*.yaml")) if file != path]
        remedy = f"; {did_you_mean(found.name, near)}" if near else ""
        raise node.fail(f"no file {str(found)!r}{remedy}")
    return load(found)


def parse(content: str, path: str) -> LoadedPipeline:
    """Read and check the text of a pipeline file; `path` stands for it in the messages."""
    root = read_yaml(content, path)
    if isinstance(root.value, dict) and "scenario" in root.value:
        raise root.fail("this is a scenario, not a pipeline; give it to avrt simulate")
    return LoadedPipeline(_pipeline(root), content, path, root)


def from_keys(keys: Mapping[str, object]) -> PipelineSpec:
    """Return the pipeline of Python values, with the keys and quantities of the file."""
    return _pipeline(from_python(keys))


def _pipeline(root: Node) -> PipelineSpec:
    values = section(root, PIPELINE_KEYS)
    devices = values.setdefault("devices", (DeviceSpec(name="cpu"),))
    assert isinstance(devices, tuple)
    device_names = [device.name for device in devices]
    stages = named(root.mapping()["stages"], "stages by name")
    fill_calibration(root, values)
    values["stages"] = tuple(read_stage(key, node, device_names) for key, node in stages.items())
    spec = build(PipelineSpec, values)
    try:
        check(spec)
    except SpecError as error:
        raise _placed(root, error) from None
    return spec


def _placed(root: Node, error: SpecError) -> SpecError:
    place = root.nearest(error.key).place
    return error if error.place or place is None else error.at(place)


def _devices(node: Node) -> tuple[DeviceSpec, ...]:
    members = named(node, "devices by name")
    return tuple(
        build(DeviceSpec, {"name": key, **section(child, DEVICE_KEYS)})
        for key, child in members.items()
    )


def _supply(node: Node) -> Supply:
    return build(Supply, section(node, SUPPLY_KEYS))


def _sources(node: Node) -> tuple[SourceSpec, ...]:
    return tuple(_source(key, child) for key, child in named(node, "sources by name").items())


def _source(source_name: str, node: Node) -> SourceSpec:
    values = section(node, SOURCE_KEYS)
    if "info_topic" in values and values["type"] != "camera":
        raise node.mapping()["info"].fail("only a camera has 'info'; remove it")
    if "params" in values and "run" not in values:
        raise node.mapping()["params"].fail("these are parameters of a class; add 'run'")
    if "guard" in values:
        values["guard"] = guard(node.mapping()["guard"], str(values["type"]))
    return build(SourceSpec, {"name": source_name, **values})


def _chains(node: Node) -> tuple[ChainSpec, ...]:
    members = named(node, "chains by name")
    return tuple(
        build(ChainSpec, {"name": key, **section(child, CHAIN_KEYS)})
        for key, child in members.items()
    )


def _device_type(node: Node) -> str:
    if not isinstance(node.value, str) or _DEVICE_TYPE.fullmatch(node.value) is None:
        raise node.fail(f"expected cpu, simulated or a GPU such as cuda:0, found {node.shown}")
    return node.value


def _table(node: Node) -> TableSpec:
    return build(TableSpec, section(node, TABLE_KEYS))


def _rows(node: Node) -> tuple[TableRow, ...]:
    rows = named(node, "starts by stage")
    return tuple(TableRow(task=task, starts_ns=_starts(child)) for task, child in rows.items())


def _starts(node: Node) -> tuple[int, ...]:
    return tuple(duration(item) for item in node.items("a list of starts, such as [0 ms, 50 ms]"))


def _turns(node: Node) -> tuple[int, ...]:
    starts_ns = _starts(node)
    if not starts_ns:
        raise node.fail("expected one start at least, found none")
    return starts_ns


SUPPLY_KEYS = (
    Key(
        "budget",
        "budget_ns",
        duration,
        "3 ms",
        "execution that it gives in each period",
        shape=LASTING,
    ),
    Key(
        "every", "period_ns", duration, "5 ms", "the period, from pipeline time 0 on", shape=LASTING
    ),
    Key(
        "starts",
        "starts_ns",
        _turns,
        about="where in each period the budget begins, in turn; at 0 ms unless given",
        shape=list_of(DURATION, least=1),
    ),
)
DEVICE_KEYS = (
    Key(
        "type",
        "type",
        _device_type,
        about="cpu (the default), simulated, or a GPU such as cuda:0",
        shape=whole(_DEVICE_TYPE.pattern),
    ),
    Key(
        "slots",
        "slots",
        integer,
        about="how many jobs may be in flight on it at once; 1 unless given",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "threads",
        "threads",
        integer,
        about="threads of one numerical operation; 1 unless given",
        shape=AT_LEAST_ONE,
    ),
    Key("fallback", "fallback", name, about="the device that takes over when this one is lost"),
    Key(
        "preemptive",
        "preemptive",
        boolean,
        about="a job may be taken off its slot; only with type simulated",
    ),
    Key(
        "supply",
        "supply",
        _supply,
        about="the device is there for part of the time only",
        shape=object_of(SUPPLY_KEYS),
    ),
)
SOURCE_KEYS = (
    Key("type", "type", one_of(*SENSORS), "lidar", "what kind of sensor it is"),
    Key("topic", "topic", text, about="topic of the log"),
    Key("info", "info_topic", text, about="topic of a camera's CameraInfo"),
    Key("rate", "period_ns", rate, about="declared rate, such as 10 Hz, or period"),
    Key("frame", "frame", text, about="coordinate frame; the message's unless given"),
    Key(
        "clock_offset",
        "clock_offset_ns",
        duration,
        about="added to the sensor's stamps; estimated when above 1 s unless given",
    ),
    Key(
        "latency",
        "latency_ns",
        duration,
        about="from a capture to the arrival of its message at least; 0 unless given",
    ),
    Key(
        "run",
        "run",
        reference,
        about="class of a live source: package.module:Name, or file.py:Name beside this file",
        shape=whole(r"[^\n]+:[^:\n]+"),
    ),
    Key(
        "params",
        "params",
        parameters,
        about="parameters of that class's constructor",
        shape={"type": "object"},
    ),
    Key(
        "guard",
        "guard",
        later,
        about="what is asked of each message before a stage gets it: default, or thresholds",
        shape=GUARD_SHAPE,
    ),
)
TABLE_KEYS = (
    Key("cycle", "cycle_ns", duration, "100 ms", "after how long all repeats"),
    Key(
        "starts",
        "rows",
        _rows,
        "{my_stage: [0 ms, 50 ms]}",
        "by stage when its jobs start within the cycle, ascending",
        shape=by_name(list_of(DURATION), NAME),
    ),
)
CHAIN_KEYS = (
    Key(
        "path",
        "path",
        names,
        "[front_camera, detect, plan]",
        "from a source (or a timer stage) through stages that read each other",
        shape=list_of(NAME, least=2),
    ),
    Key(
        "reaction",
        "reaction_ns",
        duration,
        about="limit from an external change to the first output that knows it",
        shape=LASTING,
    ),
    Key(
        "age",
        "age_ns",
        duration,
        about="limit from a capture to the end of the last output resting on it",
        shape=LASTING,
    ),
)
PIPELINE_KEYS = (
    Key("pipeline", "name", name, "my_pipeline", "its name"),
    Key("policy", "policy", one_of(*POLICIES), about="who goes first; edf unless given"),
    Key(
        "devices",
        "devices",
        _devices,
        about="what runs jobs, by name; one cpu unless given",
        shape=by_name(object_of(DEVICE_KEYS), NAME),
    ),
    Key(
        "sources",
        "sources",
        _sources,
        about="where sensor data enters, by name",
        shape=by_name(object_of(SOURCE_KEYS), NAME),
    ),
    Key(
        "stages",
        "stages",
        later,
        "{NAME: {run: my_stage.py:Name, ...}}",
        "what a job computes and its timing contract, by name",
        shape=by_name(STAGE_SHAPE, NAME),
    ),
    Key(
        "chains",
        "chains",
        _chains,
        about="end-to-end promises, by name",
        shape=by_name(object_of(CHAIN_KEYS), NAME),
    ),
    Key(
        "calibration",
        "calibration",
        later,
        about="where the sensors are mounted, and what the cameras are like",
        shape=object_of(CALIBRATION_KEYS),
    ),
    Key(
        "ladder",
        "ladder",
        ladder,
        about="with how much less it goes on when it must",
        shape=object_of(LADDER_KEYS),
    ),
    Key(
        "checksums",
        "checksums",
        boolean,
        about="whether each stage checks that its inputs are what was published; not unless given",
    ),
    Key(
        "table",
        "table",
        _table,
        about="the starts that policy table executes; computed unless given",
        shape=object_of(TABLE_KEYS),
    ),
)
