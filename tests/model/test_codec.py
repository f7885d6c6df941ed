"""Whatever the model can hold is written as JSON and comes back equal; damage is a ValueError."""

from __future__ import annotations

import contextlib
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.model import codec
from avrt.model.commands import Command, Dispatch, Publish, Record
from avrt.model.events import Arrived, Completed, Drain, Event
from avrt.model.records import AnyRecord, Interval, MissRecord
from avrt.model.spec import Criticality, DeviceSpec, PipelineSpec, StageSpec, SyncSpec

CHECKED = settings(derandomize=True, deadline=None, max_examples=40)

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
events = st.one_of([st.from_type(kind) for kind in get_args(Event)])
records = st.one_of([st.from_type(kind) for kind in get_args(AnyRecord)])
commands = st.one_of(
    [
        st.builds(Record, records) if kind is Record else st.from_type(kind)
        for kind in get_args(Command)
    ]
)
stages = st.builds(
    StageSpec,
    name=st.text(max_size=5),
    device=st.text(max_size=5),
    wcet_ns=st.integers(),
    deadline_ns=st.integers(),
    sync=st.none() | st.from_type(SyncSpec),
    criticality=st.sampled_from(Criticality),
    params=st.dictionaries(st.text(), plain, max_size=2),
)
pipelines = st.builds(
    PipelineSpec,
    name=st.text(),
    devices=st.lists(st.from_type(DeviceSpec), max_size=2).map(tuple),
    stages=st.lists(stages, max_size=2).map(tuple),
)


def there_and_back(item: object) -> object:
    return codec.from_json(codec.to_json(codec.encode(item)))


@CHECKED
@given(events)
def test_every_event_comes_back_equal(event):
    assert codec.decode_event(there_and_back(event)) == event


@CHECKED
@given(commands)
def test_every_command_comes_back_equal(command):
    assert codec.decode_command(there_and_back(command)) == command


@CHECKED
@given(records)
def test_every_record_comes_back_equal(record):
    assert codec.decode_record(there_and_back(record)) == record


@CHECKED
@given(pipelines)
def test_every_pipeline_comes_back_equal(spec):
    assert codec.decode_pipeline(there_and_back(spec)) == spec


@CHECKED
@given(plain)
def test_any_other_data_is_a_value_error(data):
    for decode in (codec.decode_event, codec.decode_command, codec.decode_record):
        with pytest.raises(ValueError, match="expected"):
            decode(data)


@CHECKED
@given(st.text(max_size=20) | st.binary(max_size=20))
def test_any_text_is_json_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        codec.from_json(text)


@CHECKED
@given(events | commands | records | pipelines, st.data())
def test_a_damaged_object_is_another_object_or_a_value_error(item, data):
    tree = there_and_back(item)
    where, key = data.draw(st.sampled_from(places(tree)))
    where[key] = data.draw(plain)
    with contextlib.suppress(ValueError):
        codec.decode(type(item), tree)


def places(tree):
    found = []
    open_nodes = [tree]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, list | dict):
            for key in range(len(node)) if isinstance(node, list) else list(node):
                found.append((node, key))
                open_nodes.append(node[key])
    return found


def test_the_text_is_canonical():
    event = Completed(job=3, buffer=7, device_ns=12)
    text = '["Completed",{"job":3,"buffer":7,"device_ns":12}]'
    assert codec.to_json(codec.encode(event)) == text
    assert codec.to_json(codec.encode(Drain())) == '["Drain",{"at_once":false}]'


def test_a_nested_union_is_tagged_and_a_fixed_class_is_not():
    interval = Interval("running", 1, 2, "plan", None)
    record = Record(MissRecord(1, "plan", 0, 2, 0, 1, (interval,)))
    tagged = codec.encode(record)[1]["record"]
    assert tagged[0] == "MissRecord"
    assert tagged[1]["intervals"][0]["kind"] == "running"


def test_an_enum_is_written_by_name():
    stage = StageSpec(
        name="a", device="cpu", wcet_ns=1, deadline_ns=1, criticality=Criticality.ASIL_B
    )
    assert codec.encode(stage)[1]["criticality"] == "ASIL_B"


def test_a_field_with_a_default_may_be_missing():
    data = ["DeviceSpec", {"name": "cpu"}]
    assert codec.decode(DeviceSpec, data) == DeviceSpec(name="cpu")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected [class, fields] of one of Arrived, Started, SegmentEnded"),
        (["Completed"], "expected [class, fields] of one of Arrived"),
        (["Compleeted", {}], "Hung, Voted, StreamLost, StreamBack, DeviceLost, DeviceBack"),
        (["Drain", 3], "expected the fields of Drain, found 3"),
        (["Drain", {"at": 1}], "expected the fields of Drain (at_once), found at"),
        (["Hung", {}], "expected the fields of Hung (job), found none"),
        (["Hung", {"job": "3"}], "Hung.job: expected an integer, found '3'"),
        (["Hung", {"job": True}], "Hung.job: expected an integer, found True"),
        (["StreamLost", {"stream": None}], "StreamLost.stream: expected text, found None"),
    ],
)
def test_damage_names_what_was_expected(data, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        codec.decode_event(data)
    assert message in str(caught.value)


STAGE = {"name": "a", "device": "cpu", "wcet_ns": 1, "deadline_ns": 1, "criticality": "ASIL-B"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"devices": 3}, "PipelineSpec.devices: expected a list, found 3"),
        ({"policy": "late"}, "PipelineSpec.policy: expected one of edf, rm, dm, fp, llf, fifo"),
        ({"stages": [STAGE]}, "StageSpec.criticality: expected one of QM, ASIL_A"),
        ({"stages": [{}]}, "PipelineSpec.stages: expected the fields of StageSpec (name, device"),
    ],
)
def test_damage_inside_a_pipeline_names_the_field(fields, message):
    data = codec.encode(PipelineSpec(name="p", devices=(), stages=()))
    data[1].update(fields)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        codec.decode_pipeline(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "params", [{"a": float("nan")}, {"a": float("inf")}, {"a": object()}, {"a": {1: 2}}]
)
def test_params_are_plain_data(params):
    stage = StageSpec(name="a", device="cpu", wcet_ns=1, deadline_ns=1, params=params)
    with pytest.raises(ValueError, match="expected"):
        codec.encode(stage)


def test_params_have_a_depth():
    deep: dict[str, object] = {}
    for _ in range(codec.PLAIN_DEPTH_MAX + 1):
        deep = {"a": deep}
    stage = StageSpec(name="a", device="cpu", wcet_ns=1, deadline_ns=1, params=deep)
    with pytest.raises(ValueError, match="at most 32 levels"):
        codec.encode(stage)


def test_params_come_back_as_plain_lists():
    stage = StageSpec(
        name="a", device="cpu", wcet_ns=1, deadline_ns=1, params={"a": (1, [2.5], None)}
    )
    back = codec.decode(StageSpec, there_and_back(stage))
    assert back.params == {"a": [1, [2.5], None]}


def test_params_of_another_kind_are_refused():
    data = codec.encode(StageSpec(name="a", device="cpu", wcet_ns=1, deadline_ns=1))
    data[1]["params"] = []
    with pytest.raises(ValueError, match="expected names with values"):
        codec.decode(StageSpec, data)


def test_endless_nesting_is_a_value_error():
    with pytest.raises(ValueError, match="bounded depth"):
        codec.from_json("[" * 100_000)


def test_only_model_objects_are_encoded():
    with pytest.raises(ValueError, match=r"expected an object of avrt\.model, found a int"):
        codec.encode(3)


def test_decode_of_one_class_refuses_the_others():
    with pytest.raises(ValueError, match="expected one of Dispatch, found 'Publish'"):
        codec.decode(Dispatch, codec.encode(Publish(1, 2, 3)))


def test_the_order_of_fields_in_the_text_does_not_matter():
    data = ["Arrived", dict(reversed(codec.encode(Arrived("cam", 1, 2, 3, 4))[1].items()))]
    assert codec.decode_event(data) == Arrived("cam", 1, 2, 3, 4)
