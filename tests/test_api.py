"""The public API: a pipeline from Python is the one of the file, and wrong input is told."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import avrt
from avrt.config.binding import resolve
from avrt.drivers.verify import verify
from avrt.errors import InputError, SpecError
from avrt.logs.record.run_file import RunFile
from avrt.model.message import Message, Stamp
from avrt.payload import PointCloud

STAGES = """
import numpy as np
import avrt

class Mean(avrt.Stage):
    def __init__(self, axis=0):
        self.axis = axis
        self.last = None

    def process(self, cloud):
        self.last = cloud.payload.xyz.mean(axis=self.axis)
        return {"mean": self.last}

@avrt.stage(wcet="5 ms", deadline="20 ms")
def largest(item):
    return float(np.abs(item.payload["mean"]).max())
"""
PIPELINE = """
pipeline: both
policy: dm
devices:
  cpu: {type: cpu, slots: 2, threads: 1}
sources:
  lidar: {type: lidar, topic: /lidar, rate: 10 Hz, frame: roof}
stages:
  mean:
    run: stages.py:Mean
    inputs: {cloud: lidar}
    wcet: 30 ms
    deadline: 60 ms
    params: {axis: 0}
  largest: {run: "stages.py:largest", inputs: {item: mean}, wcet: 5 ms, deadline: 20 ms}
chains:
  see: {path: [lidar, mean, largest], reaction: 300 ms, age: 200 ms}
"""


@pytest.fixture
def stages(tmp_path):
    (tmp_path / "stages.py").write_text(STAGES)
    return resolve("stages.py:Mean", tmp_path), resolve("stages.py:largest", tmp_path)


def in_python(stages, **keys):
    mean, largest = stages
    devices = {"cpu": {"type": "cpu", "slots": 2, "threads": 1}}
    pipeline = avrt.Pipeline("both", policy="dm", devices=devices, **keys)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz", frame="roof")
    pipeline.add(mean, name="mean", run="stages.py:Mean", inputs={"cloud": "lidar"}, wcet="30 ms",
                 deadline="60 ms", params={"axis": 0})  # fmt: skip
    pipeline.add(largest, run="stages.py:largest", inputs={"item": "mean"})
    pipeline.chain("see", path=["lidar", "mean", "largest"], reaction="300 ms", age="200 ms")
    return pipeline


def in_a_file(tmp_path):
    (tmp_path / "both.yaml").write_text(PIPELINE)
    return avrt.Pipeline.load(tmp_path / "both.yaml")


def test_python_and_yaml_mean_the_same(stages, make_drive, tmp_path):
    python, file = in_python(stages), in_a_file(tmp_path)
    assert python.spec == file.spec
    drive = make_drive(4)
    first, second = python.replay(drive), file.replay(drive)
    assert first.data["digests"] == second.data["digests"]
    assert first.jobs == second.jobs == {**first.jobs, "met": 8, "released": 8}


def test_the_record_holds_the_pipeline_as_it_was(stages, make_drive, tmp_path):
    drive, out = make_drive(2), tmp_path / "run.mcap"
    in_a_file(tmp_path).replay(drive, out=out)
    with RunFile(out) as run:
        assert run.pipeline_yaml == PIPELINE
    in_python(stages).replay(drive, out=out)
    with RunFile(out) as run:
        assert run.pipeline_yaml is None
    assert verify(out).equal


def test_a_report_has_everything(stages, make_drive, tmp_path):
    report = in_python(stages).replay(make_drive(4), out=tmp_path / "run.mcap")
    assert [field.name for field in fields(report)] == ["summary", "damage"]
    assert report.damage is None
    assert report.misses == ()
    assert report.jobs["met"] == 8
    assert report.data == report.summary.data()
    assert report.summary.reproducible
    assert report.data["record"] == str(tmp_path / "run.mcap")
    with pytest.raises(FrozenInstanceError):
        report.damage = 1


def test_misses_are_told_with_their_reasons(make_drive):
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(lambda cloud: 1, name="it", inputs={"cloud": "lidar"}, wcet="9 ms",  # noqa: ARG005
                 deadline="5 ms")  # fmt: skip
    report = pipeline.replay(make_drive(2))
    assert [miss.due_ns for miss in report.misses] == [5_000_000, 105_000_000]
    assert {i.kind for miss in report.misses for i in miss.intervals} == {"running"}


def test_a_stage_function_is_still_a_function():
    @avrt.stage(wcet="1 ms", deadline="2 ms")
    def twice(item):
        """Double it."""
        return 2 * item

    assert twice(4) == 8
    assert twice.__name__ == "twice"
    assert twice.__doc__ == "Double it."


def test_a_stage_class_is_ordinary_python(stages):
    cloud = Message(Stamp("lidar", 0, 0, 0, 0), PointCloud(np.ones((3, 3), np.float32)))
    stage = stages[0]()
    assert stage.process(cloud)["mean"].tolist() == [1, 1, 1]
    assert stage.freeze() is None
    stage.warm()


def test_what_is_given_with_add_counts_more_than_the_contract():
    @avrt.stage(wcet="1 ms", deadline="2 ms")
    def it(cloud):
        return cloud

    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(it, inputs={"cloud": "lidar"}, deadline="7 ms")
    (stage,) = pipeline.spec.stages
    assert (stage.wcet_ns, stage.deadline_ns) == (1_000_000, 7_000_000)


def begin():
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(lambda cloud: 1, name="it", inputs={"cloud": "lidar"}, wcet="1 ms",  # noqa: ARG005
                 deadline="5 ms")  # fmt: skip
    return pipeline


class NoProcess(avrt.Stage):
    """A stage that lacks what makes it one."""


KEYS = {"inputs": {"cloud": "lidar"}, "wcet": "1 ms", "deadline": "5 ms"}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda p: p.add(print, name="it", **KEYS), "stages.it: given twice"),
        (lambda p: p.source("lidar", type="lidar"), "sources.lidar: given twice"),
        (lambda p: p.add(NoProcess, **KEYS), r"NoProcess has no process\(\)"),
        (lambda p: p.add(5, name="five", **KEYS), "expected a stage class or a function, found 5"),
        (lambda p: p.add(lambda *a: a, name="all", **KEYS), "inputs are named parameters"),
        (
            lambda p: p.add(lambda c: c, name="c", **KEYS),
            "has no input 'cloud'; did you mean|known",
        ),
        (lambda p: p.add(lambda cloud: cloud, **KEYS), "expected a name of letters"),
        (lambda p: p.source("a b", type="lidar"), "expected a name of letters"),
        (lambda p: p.source("rear", type="lidr"), "did you mean 'lidar'"),
        (lambda p: p.source("rear"), "'type' is missing"),
        (lambda p: p.source("rear", type="lidar", topc="/x"), "did you mean 'topic'"),
        (lambda p: p.chain("c", path=["lidar", "ti"]), "no source or stage named 'ti'"),
        (lambda p: p.add(lambda cloud: 1, name="x", wcet=5, **without("wcet")), "wcet"),  # noqa: ARG005
        (lambda p: p.add(lambda cloud: 1, name="x", wcet=object(), **without("wcet")), "wcet"),  # noqa: ARG005
        (lambda p: p.add(lambda cloud: 1, name="x", params={"a": 1}, **KEYS), "takes no param"),  # noqa: ARG005
        (lambda p: p.add(avrt.Stage(), name="x", **KEYS), r"has no process\(\)"),
    ],
    ids=range(16),
)
def test_what_is_wrong_is_told_and_changes_nothing(build, message):
    pipeline = begin()
    with pytest.raises(SpecError, match=message):  # noqa: PT012 - told by the call or by check
        build(pipeline)
        pipeline.check()
    if "given twice" in message or "process" in message:
        assert [stage.name for stage in pipeline.check().stages] == ["it"]


def without(key):
    return {name: value for name, value in KEYS.items() if name != key}


def test_a_pipeline_without_stages_is_told():
    with pytest.raises(SpecError, match="stage"):
        avrt.Pipeline("p").check()


def test_a_pipeline_that_was_loaded_is_not_added_to(stages, tmp_path):  # noqa: ARG001 - by its name
    pipeline = in_a_file(tmp_path)
    spec = pipeline.spec
    for call in (
        lambda: pipeline.add(print, name="more"),
        lambda: pipeline.source("more", type="lidar"),
        lambda: pipeline.chain("more", path=["lidar", "mean"]),
    ):
        with pytest.raises(SpecError, match="was loaded whole"):
            call()
    assert pipeline.spec is spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timing": "guess"}, "expected a timing of"),
        ({"timing": 7}, "expected a timing of"),
        ({"hang_timeout": "soon"}, "hang timeout: "),
        ({"hang_timeout": 10}, "hang timeout: "),
        ({"hang_timeout": "0 ms"}, "hang timeout: expected more than 0"),
    ],
    ids=range(5),
)
def test_wrong_arguments_of_replay_are_told(make_drive, tmp_path, arguments, message):
    with pytest.raises(SpecError, match=message):
        begin().replay(make_drive(1), out=tmp_path / "run.mcap", **arguments)
    assert not (tmp_path / "run.mcap").exists()


def test_a_log_that_is_missing_is_the_inputs_fault(tmp_path):
    with pytest.raises(InputError):
        begin().replay(tmp_path / "no.mcap")
    with pytest.raises(SpecError):
        avrt.Pipeline.load(tmp_path / "no.yaml")


@pytest.mark.slow
def test_importing_avrt_brings_neither_torch_nor_an_extra():
    extras = ["torch", "onnxruntime", "foxglove", "ray", "prometheus_client", "numba"]
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras[1:]!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import avrt, avrt.cli
assert avrt.Pipeline("p")
found = [name for name in {extras!r} if name in sys.modules]
assert not found, found
import avrt.drivers.replay, avrt.stages.lidar, avrt.stages.camera
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own code
