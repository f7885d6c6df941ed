"""The schema that editors use: refuses nothing that is sound, and what a schema can refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import test_stage_errors
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from spoilt import GOOD
from test_pipeline import DESIGN, pipelines
from test_pipeline_errors import MISTAKES

from avrt.config.node import from_python, plain
from avrt.config.pipeline import parse
from avrt.config.reader import duration, rate, ratio
from avrt.config.schema import pipeline_schema
from avrt.config.shape import SHAPES
from avrt.config.yaml_text import read_yaml
from avrt.errors import SpecError
from pipelines import examples

ROOT = Path(__file__).parents[2]
SCHEMA = pipeline_schema()
FILE = ROOT / "schemas/pipeline.schema.json"
SHIPPED = sorted(path.resolve() for path in (ROOT / "pipelines").glob("*.yaml"))
MODELINE = "# yaml-language-server: $schema="
ALL = [*MISTAKES, *test_stage_errors.MISTAKES]
ONLY_CHECKED = {  # what holds between the parts of a file, or in what they name, is no shape
    "optional trigger",
    "unknown source",
    "unknown source in the long form",
    "preemptive on a real device",
    "a supply on several slots",
    "a supply of more than there is",
    "a supply once in a lifetime",
    "a supply that begins too late in its period",
    "unknown fallback",
    "its own fallback",
    "camera info of a lidar",
    "sync of one input",
    "a chain that is not connected",
    "a chain that starts inside",
    "an unknown name in a chain",
    "too long a time",
    "several inputs without a trigger",
    "nothing releases it",
    "wrong trigger",
    "unknown device",
    "cycle",
    "a stage named like a source",
    "no priority for fixed priority",
    "too short a scrub",
    "impossible m of k",
    "hard and abort",
    "hard and abort on overrun",
    "best case above the worst",
    "negative jitter",  # -0.1 ns is 0 ns
    "negative tolerance",
}


def refuses(text):
    """Whether an editor would underline something in this text."""
    data = plain(read_yaml(text, "p.yaml"))
    return not Draft7Validator(SCHEMA).is_valid(data)


def fragments():
    for name in ("docs/pipeline.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)):
            yield pytest.param(block, id=f"{name} {number}")


def test_the_schema_is_one():
    Draft7Validator.check_schema(SCHEMA)


def test_the_shipped_copy_is_the_schema():
    """Write it anew with `avrt check --schema > schemas/pipeline.schema.json`."""
    assert FILE.read_text(encoding="utf-8") == json.dumps(SCHEMA, indent=2) + "\n"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_pipeline_is_sound_and_names_the_schema(path):
    text = path.read_text(encoding="utf-8")
    assert not refuses(text)
    first = text.splitlines()[0]
    assert first.startswith(MODELINE)
    assert (path.parent / first.removeprefix(MODELINE)).resolve() == FILE


@pytest.mark.parametrize("block", list(fragments()))
def test_a_documented_example_is_sound(block):
    data = plain(read_yaml(block, "p.yaml"))
    shape = dict(SCHEMA)
    if "pipeline" not in data:
        del shape["required"]
    if data.keys() & {"segments", "redundancy", "variants"}:
        stage = SCHEMA["properties"]["stages"]["additionalProperties"]
        shape = {key: stage[key] for key in ("type", "properties", "additionalProperties")}
    Draft7Validator(shape).validate(data)


def test_the_files_that_tests_spoil_are_sound():
    assert not refuses(GOOD)
    assert not refuses(DESIGN)


def test_every_key_is_described():
    def walk(shape):
        for name, child in shape.get("properties", {}).items():
            assert child["description"], name
        for child in shape.values():
            if isinstance(child, dict):
                walk(child)

    walk(SCHEMA)


@pytest.mark.parametrize(("name", "old", "new", "message"), ALL, ids=[m[0] for m in ALL])
def test_a_mistake_is_underlined_where_a_schema_can_tell(name, old, new, message):
    assert message
    try:
        refused = refuses(GOOD.replace(old, new, 1))
    except SpecError:
        return  # no YAML that anyone reads alike
    assert refused != (name in ONLY_CHECKED)


@given(pipelines())
@examples(30)
def test_what_python_writes_is_sound(keys):
    from_python(keys)
    assert Draft7Validator(SCHEMA).is_valid(keys)


@given(st.data())
@examples(80)  # 5,000 with --hypothesis-profile=nightly
def test_what_is_sound_is_never_refused(data):
    text = data.draw(st.sampled_from([GOOD, DESIGN, *(p.read_text() for p in SHIPPED)]))
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 6))
    piece = data.draw(st.text("abcxms019 :,{}[]-+\n.e\"'", max_size=5))
    damaged = text[:start] + piece + text[start + length :]
    try:
        parse(damaged, str(SHIPPED[0]))
    except SpecError:
        return
    assert not refuses(damaged)


@given(st.text("0123456789.+-  \tmsunHzof\u00a0\u0085", max_size=12))
@example("5 ms\u0085")
@example(" .5s ")
@example("1 of 10")
@examples(150)
def test_a_quantity_that_is_read_has_the_shape(text):
    for read in (duration, rate, ratio):
        try:
            value = read(from_python(text))
        except SpecError:
            continue
        if read is not rate or value > 0:  # a source's period is above 0
            assert Draft7Validator(SHAPES[read]).is_valid(text)
