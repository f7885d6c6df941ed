"""Each kind of mistake in a whole file gives one line: place, key, what is wrong, remedy."""

# ruff: noqa: E501 - a message is one line

from __future__ import annotations

import pytest
from spoilt import told

from avrt.config.pipeline import load
from avrt.errors import SpecError

FILES = [
    ("empty", "", '1: is empty; a pipeline starts with "pipeline: NAME"'),
    ("comments only", "# one\n", '1: is empty; a pipeline starts with "pipeline: NAME"'),
    (
        "a list at the root",
        "- a\n",
        "1: expected a mapping with keys such as pipeline, policy, devices, found a list",
    ),
    (
        "text at the root",
        "hello\n",
        "1: expected a mapping with keys such as pipeline, policy, devices, found 'hello'",
    ),
    (
        "no stage",
        "pipeline: a\nstages: {}\n",
        "2: stages: no stage is declared; add one under 'stages:'",
    ),
    (
        "stages as a list",
        "pipeline: a\nstages: [b]\n",
        "2: stages: expected stages by name, found a list",
    ),
    (
        "stage as text",
        "pipeline: a\nstages:\n  b: mine\n",
        "3: stages.b: expected a mapping with keys such as run, device, inputs, found 'mine'",
    ),
    (
        "no device",
        "pipeline: a\ndevices: {}\nstages:\n  b: {period: 1 s, wcet: 1 s, deadline: 1 s}\n",
        "4: stages.b: no device is declared; say which one with 'device'",
    ),
    (
        "several devices and none chosen",
        "pipeline: a\ndevices: {c: {}, d: {}}\nstages:\n  b: {period: 1 s, wcet: 1 s, deadline: 1 s}\n",
        "4: stages.b: several devices (c, d); say which one with 'device'",
    ),
    (
        "no period for rate-monotonic",
        "pipeline: a\npolicy: rm\nsources:\n  c: {type: can}\nstages:\n  b: {inputs: {x: c}, wcet: 1 s, deadline: 1 s}\n",
        "6: stages.b: rate-monotonic needs a period; give its source a 'rate' or choose policy: dm",
    ),
    (
        "a tab",
        "pipeline: a\nstages:\n\tb: 1\n",
        "3: not valid YAML: a tab cannot indent; use spaces",
    ),
    (
        "an open bracket",
        "pipeline: a\nstages: {b: [1\n",
        "3: not valid YAML: expected ',' or ']', but got '<stream end>'; check indentation, colons and brackets here and just above",
    ),
    (
        "a second colon",
        "pipeline: a: b\n",
        "1: not valid YAML: mapping values are not allowed here; check indentation, colons and brackets here and just above",
    ),
    (
        "a control character",
        "pipeline: a\nx: \x07\n",
        "2: not valid YAML: character U+0007 is not allowed; remove it",
    ),
    (
        "an anchor",
        "pipeline: a\nx: &one 1\n",
        "2: x: anchors and aliases are not used; write the value out",
    ),
    (
        "an alias",
        "pipeline: a\nx: *one\n",
        "2: x: anchors and aliases are not used; write the value out",
    ),
    ("a merge key", "<<: {a: 1}\n", "1: merge keys are not used; write the values out"),
    (
        "a tag",
        "a: !!python/name:os.system ''\n",
        "1: a: tags such as 'tag:yaml.org,2002:python/name:os.system' are not used; drop it",
    ),
    ("two documents", "a: 1\n---\nb: 2\n", "2: holds a second document; one file is one pipeline"),
    (
        "on as a key",
        "on: 1\n",
        "1: 'on' is not used; write true, or put it in quotes if it is text",
    ),
    ("a number as key", "1: 2\n", "1: expected a name as key, found '1'"),
    ("a list as key", "? [a]\n: 1\n", "1: expected a name as key, found a list or a mapping"),
    (
        "True",
        "a: True\n",
        "1: a: 'True' is not used; write true, or put it in quotes if it is text",
    ),
    (
        "an octal number",
        "a: 010\n",
        "1: a: '010' is ambiguous; write a plain decimal number, or put it in quotes if it is text",
    ),
    ("a huge float", "a: 1e999\n", "1: a: expected a finite number, found '1e999'"),
    (
        "endless nesting",
        "[" * 100,
        "1: 0.0.0: nested deeper than 30 levels",
    ),
]


@pytest.mark.parametrize(("text", "message"), [pytest.param(*f[1:], id=f[0]) for f in FILES])
def test_a_wrong_file_is_told_in_one_line(text, message):
    assert told(text) == f"p.yaml:{message}"


def test_a_log_given_as_a_pipeline_is_told(tmp_path):
    path = tmp_path / "drive.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + bytes(10))
    with pytest.raises(SpecError, match="is an MCAP log; a pipeline file is YAML text"):
        load(path)
