"""What a right pipeline file means: defaults, short forms, and the same from Python."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.config.pipeline import from_keys, load, parse
from avrt.config.stage_keys import stage_from_keys
from avrt.errors import SpecError
from avrt.model.codec import decode_pipeline, encode, from_json, to_json
from avrt.model.spec import Criticality, DeviceSpec, InputSpec, SyncSpec

CHECKED = settings(derandomize=True, deadline=None, max_examples=15)
PIPELINES = Path(__file__).parents[2] / "pipelines"
STAGE = {"wcet": "5 ms", "deadline": "20 ms", "period": "100 ms"}


def stage_of(**keys):
    return stage_from_keys("a", {"wcet": "5 ms", "deadline": "20 ms", **keys})


@pytest.mark.parametrize("name", ["hello", "kitti"])
def test_the_pipelines_that_come_with_avrt_are_right(name):
    spec = load(PIPELINES / f"{name}.yaml").spec
    assert spec.name == name
    assert decode_pipeline(from_json(to_json(encode(spec)))) == spec


def test_without_devices_there_is_one_cpu():
    spec = from_keys({"pipeline": "p", "stages": {"a": STAGE}})
    assert spec.devices == (DeviceSpec(name="cpu"),)
    assert spec.stages[0].device == "cpu"


def test_quantities_become_ns_and_policy_defaults_to_edf():
    spec = from_keys(
        {
            "pipeline": "p",
            "sources": {"cam": {"type": "camera", "rate": "30 Hz", "info": "/info"}},
            "stages": {"a": STAGE | {"jitter": "1.5 us", "offset": "0.1 ms"}},
        }
    )
    assert spec.policy == "edf"
    assert spec.source("cam").period_ns == 33_333_333
    assert spec.source("cam").info_topic == "/info"
    assert (spec.stages[0].jitter_ns, spec.stages[0].offset_ns) == (1_500, 100_000)


def test_the_single_input_is_the_trigger():
    assert stage_of(inputs={"image": "cam"}).trigger == "image"


def test_a_timer_or_a_set_has_no_trigger():
    inputs = {"left": "a", "right": "b"}
    assert stage_of(inputs={"image": "cam"}, period="1 s").trigger is None
    synced = stage_of(inputs=inputs, sync={"tolerance": "5 ms", "timeout": "40 ms"})
    assert synced.sync == SyncSpec(tolerance_ns=5_000_000, timeout_ns=40_000_000)
    assert synced.trigger is None


def test_the_long_form_of_an_input():
    stage = stage_of(inputs={"x": {"from": "cam", "optional": True, "max_age": "1 s"}})
    assert stage.inputs == (InputSpec(name="x", source="cam", optional=True, max_age_ns=10**9),)


def test_segments_give_the_device_and_the_wcet_unless_it_is_given():
    gpu = {"device": "gpu", "wcet": "8 ms", "wait": "spin"}
    segments = [{"device": "cpu", "wcet": "1 ms"}, gpu]
    keys = {"deadline": "20 ms", "period": "1 s", "segments": segments}
    stage = stage_from_keys("a", keys, ("cpu", "gpu"))
    assert (stage.device, stage.wcet_ns) == ("cpu", 9_000_000)
    assert [s.wait for s in stage.segments] == ["suspend", "spin"]
    assert stage_from_keys("a", keys | {"wcet": "8 ms"}, ("cpu", "gpu")).wcet_ns == 8_000_000


def test_miss_at_most_sets_the_window():
    stage = stage_of(period="1 s", miss_at_most="1 of 10")
    assert (stage.misses_max, stage.window_jobs) == (1, 10)


@pytest.mark.parametrize(
    ("guarantee", "on_miss"),
    [("hard", "continue"), ("firm", "abort"), ("soft", "continue"), ("best_effort", "continue")],
)
def test_a_guarantee_sets_what_a_miss_does(guarantee, on_miss):
    stage = stage_of(guarantee=guarantee)
    assert (stage.guarantee, stage.on_miss) == (guarantee, on_miss)
    assert stage.criticality is Criticality.QM


def test_an_explicit_on_miss_wins_over_the_guarantee():
    assert stage_of(guarantee="firm", on_miss="skip_next").on_miss == "skip_next"
    assert stage_of(guarantee="hard", on_miss="skip_next").on_miss == "skip_next"


def test_criticality_is_written_with_a_hyphen():
    assert stage_of(criticality="ASIL-C").criticality is Criticality.ASIL_C


def test_params_are_plain_data():
    params = {"model": "x.onnx", "tiles": 3, "scale": 1.5, "on": True, "none": None, "m": [[1, 2]]}
    assert stage_of(params=params).params == params


def test_python_gives_the_same_message_without_a_place():
    with pytest.raises(SpecError) as caught:
        stage_of(budget=25)
    assert str(caught.value) == (
        "stages.a.budget: expected a duration with its unit, such as \"25 ms\", found '25'"
    )


def test_python_errors_between_parts_have_no_place_either():
    with pytest.raises(SpecError, match=r"^stages\.a\.device: no device named 'gpu'"):
        from_keys({"pipeline": "p", "stages": {"a": STAGE | {"device": "gpu"}}})


def test_a_stage_can_name_the_devices_it_knows():
    with pytest.raises(SpecError, match=r"several devices \(a, b\)"):
        stage_from_keys("a", STAGE, devices=("a", "b"))


def test_an_error_found_later_gets_its_line():
    loaded = parse("pipeline: p\nstages:\n  a: {period: 1 s, wcet: 1 s, deadline: 1 s}\n", "f")
    error = loaded.placed(SpecError("is odd", ("stages", "a", "params", "x")))
    assert str(error) == "f:3: stages.a.params.x: is odd"
    assert str(loaded.placed(error)) == str(error)


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "hello.yaml").write_text("pipeline: p\n")
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "helo.yaml")
    assert str(caught.value) == (f"{tmp_path}/helo.yaml: no such file; did you mean 'hello.yaml'?")


def test_a_missing_file_in_an_empty_folder(tmp_path):
    for path in (tmp_path / "x.yaml", tmp_path / "none" / "x.yaml"):
        with pytest.raises(SpecError, match=r"x\.yaml: no such file$"):
            load(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SpecError, match="is a folder; give the pipeline file in it"):
        load(tmp_path)


def test_a_file_that_is_not_utf8_names_the_line(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_bytes(b"pipeline: p\nx: \xff\n")
    with pytest.raises(SpecError) as caught:
        load(path)
    assert str(caught.value) == f"{path}:2: is not UTF-8 (byte 0xff); save it as UTF-8"


def test_a_file_has_a_greatest_size(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_bytes(b"#" * (1 << 19))
    with pytest.raises(SpecError, match="is 524288 bytes long; a pipeline file has at most 262144"):
        load(path)


def test_a_path_that_the_system_refuses():
    with pytest.raises(SpecError, match="cannot be read: embedded null byte"):
        load("a\0b")
    with pytest.raises(SpecError, match="cannot be read: File name too long"):
        load("a" * 5000)


def test_a_byte_order_mark_and_crlf_are_fine(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_bytes(
        b"\xef\xbb\xbfpipeline: p\r\nstages:\r\n  a: {period: 1 s, wcet: 1 s, deadline: 1 s}\r\n"
    )
    assert load(path).spec.name == "p"


names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
plain = st.recursive(
    st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.none()
    | st.text("abc yes.:#'1", max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def pipelines(draw):
    """A valid pipeline as plain keys."""
    all_names = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    split = draw(st.integers(1, len(all_names) - 1))
    sources, stages = all_names[:split], all_names[split:]
    keys = {
        "pipeline": draw(names),
        "policy": draw(st.sampled_from(["edf", "dm", "llf", "fifo"])),
        "devices": {"cpu": {"type": "cpu", "slots": draw(st.integers(1, 8))}},
        "sources": {
            name: {"type": "can", "rate": f"{draw(st.integers(1, 99))} Hz"} for name in sources
        },
        "stages": {},
    }
    for index, name in enumerate(stages):
        known = sources + stages[:index]
        read = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        inputs = {f"i{number}": source for number, source in enumerate(read)}
        wcet = draw(st.integers(1, 10**6))
        keys["stages"][name] = {
            "inputs": inputs,
            "trigger": "i0",
            "wcet": f"{wcet} us",
            "deadline": f"{draw(st.integers(1, 10**6))} us",
            "criticality": draw(st.sampled_from(["QM", "ASIL-A", "ASIL-D"])),
            "params": draw(st.dictionaries(names, plain, max_size=2)),
        }
    return keys


@settings(CHECKED, max_examples=5)
@given(pipelines())
def test_yaml_and_python_mean_the_same(keys):
    text = yaml.safe_dump(keys, sort_keys=False, default_flow_style=False)
    spec = parse(text, "p.yaml").spec
    assert spec == from_keys(keys)
    assert decode_pipeline(from_json(to_json(encode(spec)))) == spec


@CHECKED
@given(st.data())
def test_a_damaged_file_is_a_pipeline_or_a_spec_error_of_one_line(data):
    check_damaged(data)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=1500)
@given(st.data())
def test_many_damaged_files_are_pipelines_or_spec_errors(data):
    check_damaged(data)


def check_damaged(data):
    text = (PIPELINES / "kitti.yaml").read_text()
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 20))
    piece = data.draw(st.text("abcxyz019 :,{}[]-\n\t'\"&*!|>%@#\0é\u2028.~?", max_size=8))
    damaged = text[:start] + piece + text[start + length :]
    try:
        parse(damaged, "p.yaml")
    except SpecError as error:
        line = str(error)
        assert len(line.splitlines()) == 1, line
        assert line.startswith("p.yaml:"), line


@CHECKED
@given(st.text(max_size=40))
def test_any_text_is_a_spec_error(text):
    with pytest.raises(SpecError):
        parse(text, "p.yaml")


@CHECKED
@given(st.dictionaries(names | st.sampled_from(["inputs", "run", "wcet", "deadline"]), plain))
def test_any_keys_in_python_are_a_stage_or_a_spec_error(keys):
    with contextlib.suppress(SpecError):
        stage_from_keys("a", keys)


DESIGN = """\
pipeline: urban
policy: edf                        # edf | rm | dm | fp | llf | fifo | table
devices:
  gpu: {type: "cuda:0", slots: 2, fallback: cpu}
  cpu: {type: cpu, slots: 2, threads: 1}
sources:
  front_camera: {type: camera, topic: /camera/front/image, rate: 10 Hz, frame: camera_front}
  roof_lidar:   {type: lidar, topic: /lidar/points, rate: 10 Hz, frame: lidar_roof}
  front_radar:  {type: radar, topic: /radar/targets, rate: 20 Hz, clock_offset: 0 s}
stages:
  camera_detect:
    run: avrt.stages.camera:Detector
    device: gpu
    inputs: {image: front_camera}
    wcet: 25 ms
    deadline: 60 ms
    criticality: ASIL-B
    on_miss: skip_next
    params: {model: yolox_nano.onnx, tiles: 3}
  fuse:
    run: avrt.stages.fusion:Tracker
    device: cpu
    inputs: {camera: {from: camera_detect, optional: true, max_age: 200 ms}, lidar: roof_lidar}
    trigger: lidar
    wcet: 8 ms
    deadline: 30 ms
    miss_at_most: 1 of 10
  plan: {run: "avrt.stages.planning:Planner", device: cpu, inputs: {scene: fuse}, wcet: 10 ms,
    deadline: 40 ms, criticality: ASIL-D, publish: at_deadline}
chains:
  see_and_plan: {path: [roof_lidar, fuse, plan], reaction: 300 ms, age: 350 ms}
"""


def test_the_example_of_the_design_is_right():
    spec = parse(DESIGN, "urban.yaml").spec
    assert [stage.name for stage in spec.stages] == ["camera_detect", "fuse", "plan"]
    assert spec.device("gpu").fallback == "cpu"
    assert spec.source("front_radar").clock_offset_ns == 0
    assert spec.stage("plan").publish == "at_deadline"
    assert spec.stage("plan").trigger == "scene"
    assert spec.stage("camera_detect").params == {"model": "yolox_nano.onnx", "tiles": 3}
    assert spec.stage("fuse").inputs[0].max_age_ns == 200_000_000
    assert spec.chains[0].age_ns == 350_000_000
