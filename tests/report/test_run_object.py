"""`docs/report.md` names the keys of the run object, and no others."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import avrt
from avrt.drivers.host_watch import LEVELS
from avrt.exec.starvation import StarvationVerdict
from avrt.logs.merge import TopicCount
from avrt.logs.raw import Anomaly
from avrt.metrics.resources import Level, ResourceLoad
from avrt.metrics.run import RunFigures
from avrt.model.events import DeviceLost, Failed
from avrt.model.guard import FlawRecord, SensorRecord
from avrt.model.records import (
    ChainBroken,
    FaultRecord,
    Interval,
    JobRecord,
    MissRecord,
    ModeRecord,
    ResourceRecord,
    SyncRecord,
)
from avrt.model.spec import StageSpec
from avrt.report.bounds import check_bounds
from avrt.report.summary import RunSummary

VERDICTS = get_args(StarvationVerdict)
REPORT = Path(__file__).parents[2] / "docs" / "report.md"


def full_summary():
    """A summary in which no list and no mapping is empty."""
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(lambda cloud: cloud, name="it", inputs={"cloud": "lidar"}, wcet="1 ms",
                 deadline="5 ms", guarantee="hard")  # fmt: skip
    pipeline.source("radar", type="radar", topic="/radar")
    pipeline.add(lambda cloud, targets: (cloud, targets), name="pair", wcet="1 ms", deadline="5 ms",
                 inputs={"cloud": "lidar", "targets": "radar"},
                 sync={"tolerance": "1 ms", "timeout": "2 ms"})  # fmt: skip
    pipeline.chain("see", path=["lidar", "it"], age="9 ms")
    spec = pipeline.spec
    figures = RunFigures(spec)
    for record in (
        JobRecord(
            0, 0, "it", "it", 0, 0, 0, 5, 0, 9, "aborted", "deadline", 9, None, None, ("cloud",)
        ),
        MissRecord(0, "it", 0, 5, 0, 5, (Interval("running", 0, 5, "it", 0),)),
        ChainBroken("see", 9, "age", 9, 0),
        ModeRecord("full", 0, "start", entered=True),
        FaultRecord(0, "it", 9, "exception"),
        JobRecord(1, 1, "it", "it", 1, 0, 0, 9, 1, 9, "met", "", 8, 2, 8, ()),
        ResourceRecord("it", 9, "lost"),
        SyncRecord("pair", 9, ("cloud",), (None, 3)),
    ):
        figures.add(record)
    figures.sensor(SensorRecord("lidar", 9, "stuck", "ok"))
    figures.flaw(FlawRecord("lidar", 3, 9, "stuck"))
    return RunSummary(
        spec,
        figures,
        "modelled",
        {"host": "here"},
        topics={"/lidar": TopicCount("t", 1, 1, 0, 0)},
        anomalies=[Anomaly("lost", None, None, 1, "one")],
        not_recorded={"it": (1, "no form")},
        damage=["a"],
        resources=ResourceLoad(1, dict.fromkeys(LEVELS, Level()), dict.fromkeys(VERDICTS, 1)),
    )


def rows():
    """Return (names of the key column, names of the whole row) of the table of the run object."""
    table = (
        REPORT.read_text(encoding="utf-8").partition("## The run object")[2].partition("\n## ")[0]
    )
    found = []
    for line in table.splitlines():
        if line.startswith("| `"):
            keys = re.findall(r"`([^`]+)`", line.split("|")[1])
            found.append((keys, set(re.findall(r"`([^`]+)`", line))))
    return found


def test_the_documented_keys_are_those_of_the_object():
    documented = [re.split(r"[.{\[]", key)[0] for keys, _ in rows() for key in keys]
    assert set(documented) == set(full_summary().data())


def test_the_keys_of_every_part_are_documented():
    data = full_summary().data()
    parts = {
        "log.topics{topic}": data["log"]["topics"]["/lidar"],
        "log.anomalies[]": data["log"]["anomalies"][0],
        "stages{name}": data["stages"]["it"],
        "chains{name}": data["chains"]["see"],
        "digests": data["digests"],
        "not_recorded{stage}": data["not_recorded"]["it"],
        "streams{name}": {**data["streams"]["it"], **data["streams"]["it"]["gaps_ns"]},
        "flight": data["flight"],
        "sets{stage}": data["sets"]["pair"],
        "sensors{source}": {**data["sensors"]["lidar"], **data["sensors"]["lidar"]["changes"][0]},
        "host": {**data["host"], **data["host"]["levels"], **data["host"]["misses"]},
    }
    parts["host"] |= data["host"]["levels"]["process_cores"]
    named = {key: names for keys, names in rows() for key in keys}
    for part, value in parts.items():
        plain = {name.removesuffix("[]") for name in named[part]}
        left_out = [name for name in value if name not in plain and "limit" not in name]
        assert left_out == [], part


def test_the_keys_of_the_bounds_are_documented():
    data = full_summary()
    for event in (Failed(0, "exception"), DeviceLost("cpu")):
        data.figures.assumptions.note(3, [event], [])
    high = JobRecord(1, 1, "it", "it", 1, 0, 0, 5, 0, 2 * 10**7, "late", "", 9, None, None, ())
    data.figures.add(high)
    stage = StageSpec(name="it", device="cpu", wcet_ns=1, deadline_ns=5, period_ns=10)
    data.figures.spec = replace(data.pipeline, stages=(stage,), chains=())
    data.figures.chains.clear()
    del data.figures.stages["pair"]
    bounds = check_bounds(data.figures).data()
    row = bounds["stages"]["it"]
    named = {key: names for keys, names in rows() for key in keys}
    assert {*bounds, *bounds["assumption"], *row} <= named["bounds"]
    assert {*row["first_above"]} <= named["bounds.stages{name}.first_above"]


def test_the_least_that_the_design_asks_for_is_there():
    data = full_summary().data()
    for path in (
        "log topics", "log anomalies", "jobs open", "stages it jobs", "stages it response_ns p95",
        "stages it execution_ns max", "stages it warmup", "chains see reaction_ns p99",
        "chains see age_ns count", "chains see broken", "modes", "digests decisions",
        "digests payloads", "record", "conditions",
    ):  # fmt: skip
        value = data
        for step in path.split():
            value = value[step]
