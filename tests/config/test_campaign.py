"""The campaign file: what it says, what is refused and how, and its schema."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from avrt.config.campaign import LoadedCampaign
from avrt.config.node import plain
from avrt.config.schema import campaign_schema
from avrt.config.yaml_text import read_yaml
from avrt.errors import SpecError

ROOT = Path(__file__).parents[2]
SCHEMA = campaign_schema()
SHIPPED = [
    path
    for path in sorted((ROOT / "scenarios/faults").glob("*.yaml"))
    if "campaign:" in path.read_text(encoding="utf-8")
]
PIPELINE = """
pipeline: p
devices: {cpu: {type: cpu, slots: 3}, gpu: {type: simulated, fallback: cpu}}
sources: {lidar: {type: lidar, topic: /lidar, rate: 10 Hz}}
stages:
  see: {run: "s.py:see", device: gpu, inputs: {cloud: lidar}, wcet: 5 ms, deadline: 50 ms}
  plan:
    {run: "s.py:see", device: cpu, inputs: {cloud: see}, wcet: 5 ms, deadline: 50 ms,
     criticality: ASIL-D, redundancy: {copies: 3, one_domain: true}}
  halt: {run: "s.py:halt", device: cpu, period: 50 ms, wcet: 1 ms, deadline: 20 ms}
ladder: {devices: [gpu], levels: {full: {devices: 1}, stop: {without: [see, plan]}}}
"""
FAULT = "{where: source.lidar, what: drop, frame: 3}"
ROW = f"about: it, faults: [{FAULT}]"


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a campaign of these rows and of more lines."""
    (tmp_path / "p.yaml").write_text(PIPELINE)

    def load(rows, *lines, feed="log: drive.mcap"):
        path = tmp_path / "campaign.yaml"
        text = "\n".join(["campaign: c", "pipeline: p.yaml", feed, *lines, f"rows: {rows}"])
        path.write_text(text + "\n")
        return LoadedCampaign(path).spec

    return load


def test_a_campaign_says_what_is_broken_and_what_must_come_of_it(load, tmp_path):
    expect = "{outcome: [masked, degraded], detect: {by: vote, within: 5 ms}, levels: [stop]}"
    spec = load(
        "{B1: {about: a bit, faults: [{where: stage.plan.1, what: flip, frame: 7, count: 2}],"
        f" expect: {expect}, gap: none}}}}",
        "seed: 5",
    )
    (row,) = spec.rows.values()
    (fault,) = row.faults
    assert (fault.where, fault.kind, fault.frame, fault.count) == ("stage.plan.1", "flip", 7, 2)
    assert row.expect.outcomes == ("masked", "degraded")
    assert (row.expect.detected_by, row.expect.detected_ns) == (("vote",), 5_000_000)
    assert (row.expect.levels, row.gap, spec.seed) == (("stop",), "none", 5)
    assert spec.drive.log == str(tmp_path / "drive.mcap")


def test_a_device_may_be_wrong_by_a_number(load):
    row = "{A: {about: it, faults: [{where: device.gpu, what: wrong, by: -2.5, at: 1 s}]}}"
    (fault,) = load(row).rows["A"].faults
    assert (fault.where, fault.kind, fault.by) == ("device.gpu", "wrong", -2.5)


def test_a_fault_hits_messages_by_number_or_by_time(load):
    rows = load(
        "{A: {about: it, faults: [{where: source.lidar, what: drop, at: 1 s, for: 1 s},"
        " {where: source.lidar, what: drop, frame: 2, count: 2},"
        " {where: source.lidar, what: drop, at: 5 s}]}}"
    ).rows
    timed, counted, endless = rows["A"].faults
    second = 1_000_000_000
    assert [timed.covers(0, n * second // 2) for n in range(5)] == [False, False, True, True, False]
    assert [counted.covers(n, 0) for n in range(5)] == [False, False, True, True, False]
    assert [endless.covers(0, n * second) for n in (4, 5, 1000)] == [False, True, True]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            "{A: {about: it, faults: [{where: source.lidar, what: cross, with: lidar, at: 1 s}]}}",
            "no other source named 'lidar'",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: cross, at: 1 s}]}}",
            "'with' is missing; add it, such as \"with: radar\"",
        ),
        ("{}", "campaign.yaml:4: rows: expected 1 to 1000 rows, found 0"),
        (f"{{A: {{{ROW}, expects: 1}}}}", "unknown key 'expects'; did you mean 'expect'?"),
        ("{A: {about: it, faults: []}}", "a row without a fault tells nothing"),
        ("{A: {about: it}}", "'faults' is missing"),
        (
            "{A: {about: it, faults: [{where: sensor.lidar, what: drop, frame: 1}]}}",
            "no such place",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidr, what: drop, frame: 1}]}}",
            "no source named 'lidr'; did you mean 'lidar'?",
        ),
        (
            "{A: {about: it, faults: [{where: stage.plan.3, what: nan, frame: 1}]}}",
            "no stage named 'plan.3'; did you mean",
        ),
        (
            "{A: {about: it, faults: [{where: device.gpu, what: drop, at: 1 s}]}}",
            "nothing of a device can 'drop'; known are lost, slow, flap, wrong",
        ),
        ("{A: {about: it, faults: [{where: source.lidar, what: drop}]}}", "say when it begins"),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: drop, at: 1 s, frame: 1}]}}",
            "say when it begins",
        ),
        (
            "{A: {about: it, faults: [{where: device.gpu, what: lost, frame: 1}]}}",
            "a device has no frames; say 'at'",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: drop, at: 1 s, count: 2}]}}",
            "'count' goes with 'frame'",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: drop, frame: 1, for: 2 s}]}}",
            "say 'count' here",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: drop, frame: 1, by: 2 s}]}}",
            "it takes no 'by' here; remove it",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: delay, frame: 1}]}}",
            "'by' is missing; add it",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: delay, frame: 1, by: 3}]}}",
            'expected a duration with its unit, such as "25 ms"',
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: wrong, frame: 1, by: 3 s}]}}",
            'expected a number, such as "3"',
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: fill, frame: 1, by: 3}]}}",
            "only a camera can 'fill', and lidar is a lidar",
        ),
        (
            "{A: {about: it, faults: [{where: source.lidar, what: points, frame: 1, by: -3}]}}",
            'expected a number from 0 to 10,000,000, such as "3", found',
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: voter, frame: 1}]}}",
            "nobody votes on see; name a stage with a redundancy",
        ),
        (
            "{A: {about: it, faults: [{where: bus.lidr, what: flip, frame: 1}]}}",
            "no bus named 'lidr'; did you mean 'lidar'?",
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: weights, frame: 1, bit: 64}]}}",
            "expected 0 to 63, found",
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: flip, frame: 1, bit: 3}]}}",
            "it takes no 'bit' here; remove it",
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: ghost, frame: 1, aside: 3}]}}",
            "'by' is missing; add it",
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: miss, at: 1 s, by: 3, aside: 2m}]}}",
            "expected a number from -1000 to 1,000, such as \"3\", found '2m'",
        ),
        (
            "{A: {about: it, faults: [{where: stage.see, what: swerve, frame: 1, by: 11}]}}",
            "expected a number from -10 to 10",
        ),
        (f"{{A: {{{ROW}, expect: {{outcome: []}}}}}}", "expected at least one"),
        (f"{{A: {{{ROW}, expect: {{outcome: maskd}}}}}}", "did you mean 'masked'?"),
        (f"{{A: {{{ROW}, expect: {{detect: none}}}}}}", "expected a mapping with keys such as by"),
        (f"{{A: {{{ROW}, expect: {{levels: [stopp]}}}}}}", "did you mean 'stop'?"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(load, rows, told):
    with pytest.raises(SpecError, match=re.escape(told)) as raised:
        load(rows)
    assert "campaign.yaml:4: " in str(raised.value)


def test_a_campaign_has_one_drive(load):
    for feed in ("seed: 1", "log: x\nworld: {scene: cut_in, duration: 2 s}"):
        with pytest.raises(SpecError, match="say what feeds the sources"):
            load(f"{{A: {{{ROW}}}}}", feed=feed)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", 'is empty; a campaign starts with "campaign: NAME"'),
        (PIPELINE, "this is a pipeline, not a campaign"),
        ("scenario: s", "this is a scenario, not a campaign"),
        ("campaign: c\nrows: {}", "'pipeline' is missing"),
        ("campaign: c\npipeline: q.yaml\nrows: {}", "no file"),
    ],
)
def test_another_file_is_refused(tmp_path, text, told):
    (tmp_path / "p.yaml").write_text(PIPELINE)
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=re.escape(told)):
        LoadedCampaign(path)


def test_the_shipped_schema_is_the_one_of_the_tables():
    """Write it anew with `avrt inject --schema > schemas/campaign.schema.json`."""
    Draft7Validator.check_schema(SCHEMA)
    file = ROOT / "schemas/campaign.schema.json"
    assert file.read_text(encoding="utf-8") == json.dumps(SCHEMA, indent=2) + "\n"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_campaign_reads_and_fits_the_schema_that_it_names(path):
    text = path.read_text(encoding="utf-8")
    Draft7Validator(SCHEMA).validate(plain(read_yaml(text, path.name, "campaign")))
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / "schemas/campaign.schema.json"
    assert LoadedCampaign(path).spec.rows


def test_the_documented_campaign_reads(tmp_path):
    text = (ROOT / "docs/inject.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    path = ROOT / "scenarios/faults"
    made = tmp_path / "documented.yaml"
    made.write_text(block.replace("brake.yaml", str(path / "brake.yaml")))
    assert list(LoadedCampaign(made).spec.rows) == ["B4", "S3"]
