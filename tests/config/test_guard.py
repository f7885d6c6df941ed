"""The key `guard` of a source: what it reads, and what it refuses."""

import pytest

from avrt.config.guard import DEFAULTS
from avrt.config.pipeline import SENSORS, from_keys, parse
from avrt.errors import SpecError
from avrt.model.codec import decode_pipeline, encode


def keys(kind="camera", **more):
    stage = {"run": "a:one", "inputs": {"it": "it"}, "wcet": "1 ms", "deadline": "10 ms"}
    source = {"type": kind, "topic": "/it", "rate": "10 Hz", **more}
    return {"pipeline": "p", "sources": {"it": source}, "stages": {"see": stage}}


def read(kind="camera", **more):
    return from_keys(keys(kind, **more)).source("it").guard


def test_without_the_key_nothing_is_asked_of_messages():
    assert read() is None


@pytest.mark.parametrize("kind", SENSORS)
def test_default_is_what_its_kind_of_sensor_has(kind):
    assert read(kind, guard="default") == DEFAULTS[kind] == read(kind, guard={})


def test_every_threshold_can_be_replaced():
    spec = read(
        guard={
            "bad": 4, "back": 5, "silent": 0, "silent_for": "1 s", "skips": 1,
            "age": "200 ms", "faster": 2, "foreign": 7,
            "least": 100, "most": 1000, "stuck": 6, "blind": 0, "dark": 5, "bright": 250.5,
            "contrast": 1.5, "covered": 0.5, "covered_for": "2 s",
        }
    )  # fmt: skip
    assert (spec.bad, spec.back, spec.silent, spec.skips_max) == (4, 5, 0, 1)
    assert (spec.silent_ns, spec.foreign) == (1_000_000_000, 7)
    assert (spec.age_ns, spec.faster, spec.least, spec.most) == (200_000_000, 2.0, 100, 1000)
    assert (spec.stuck, spec.blind, spec.dark, spec.bright) == (6, 0, 5.0, 250.5)
    assert (spec.contrast, spec.covered, spec.covered_ns) == (1.5, 0.5, 2_000_000_000)
    assert read("lidar", guard={"nonfinite": 0.1}).nonfinite == 0.1
    assert read("lidar", guard={"turning": 0.3}).turning == 0.3


def test_it_is_part_of_the_recorded_pipeline():
    spec = from_keys(keys(guard={"blind": 5}))
    assert decode_pipeline(encode(spec)) == spec


@pytest.mark.parametrize(
    ("kind", "guard", "key", "message"),
    [
        ("camera", "on", "guard", "expected default or thresholds, found 'on'"),
        ("camera", 3, "guard", "expected"),
        ("camera", {"blnd": 3}, "guard", "unknown key 'blnd'; did you mean"),
        ("camera", {"bad": 0}, "guard.bad", "a whole number of 1 or more, found '0'"),
        ("camera", {"back": 1.5}, "guard.back", "expected a whole number, found '1.5'"),
        ("camera", {"stuck": -1}, "guard.stuck", "a whole number of 0 or more, found '-1'"),
        ("camera", {"age": 3}, "guard.age", "a duration"),
        ("camera", {"age": "-1 s"}, "guard.age", "a duration of 0 or more"),
        ("camera", {"faster": 0.5}, "guard.faster", "a number of 1 or more, or 0 for no limit"),
        ("camera", {"faster": "much"}, "guard.faster", "a number of 1 or more"),
        ("camera", {"covered": 30}, "guard.covered", "a share from 0 to 1"),
        ("camera", {"dark": 256}, "guard.dark", "a grey level from 0 to 255"),
        ("camera", {"dark": 240}, "guard", "expected dark below bright, found 240 and 230"),
        ("camera", {"nonfinite": 0.5}, "guard.nonfinite", "for a lidar or a radar or an imu"),
        ("lidar", {"blind": 3}, "guard.blind", "is only for a camera, and this source is a lidar"),
        ("imu", {"most": 3}, "guard.most", "is only for a camera or a lidar"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(kind, guard, key, message):
    with pytest.raises(SpecError) as caught:
        read(kind, guard=guard)
    assert message in str(caught.value)
    assert ".".join(caught.value.key) == f"sources.it.{key}"


def test_the_line_of_the_file_is_named():
    text = """pipeline: p
sources:
  it:
    type: camera
    topic: /it
    guard:
      blind: 3
      dark: 300
stages:
  see: {run: "a:one", inputs: {it: it}, wcet: 1 ms, deadline: 10 ms}
"""
    with pytest.raises(SpecError, match=r"p\.yaml:8.*dark.*grey level from 0 to 255, found '300'"):
        parse(text, "p.yaml")
