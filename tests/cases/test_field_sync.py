"""Four reports from the field of sets of messages that were lost, used twice, or never came.

What the reports' messages hold matters in one of them only; in the others they are clouds with the
headers of the reports.
"""

from __future__ import annotations

from collections import Counter

import pytest

import avrt
from avrt.errors import SpecError
from avrt.logs.reader import open_log
from avrt.logs.writer import LogWriter
from avrt.model.records import JobRecord, SyncRecord
from cases import field

REPORTS = ("SYN-01", "SYN-03", "SYN-05", "SYN-07")
MS = 1_000_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_time.py", REPORTS)


class Together(avrt.Stage):
    """Keeps the stamps of every set that it gets, by the name of the input."""

    def __init__(self):
        self.sets = []

    def process(self, a=None, b=None, c=None):
        given = {"a": a, "b": b, "c": c}
        self.sets.append({name: one.stamp for name, one in given.items() if one is not None})
        return len(self.sets)


def pipeline_of(stage, topics, *, tolerance, timeout="50 ms", optional=(), rates=None):
    """Return a pipeline that gives a stage sets of these topics, as its inputs a, b, c."""
    pipeline = avrt.Pipeline("sets", devices={"cpu": {"type": "cpu"}})
    inputs = {}
    for name, topic in zip("abc", topics, strict=False):
        rate = (rates or {}).get(topic, "10 Hz")
        pipeline.source(f"source_{name}", type="lidar", topic=topic, rate=rate)
        inputs[name] = {"from": f"source_{name}", "optional": name in optional}
    keys = {"inputs": inputs, "sync": {"tolerance": tolerance, "timeout": timeout}}
    pipeline.add(stage, name="together", device="cpu", wcet="1 ms", deadline="90 ms", **keys)
    return pipeline


@pytest.fixture
def replayed(settled, tmp_path, monkeypatch):  # noqa: ARG001 - by its name
    """Return a function that replays a log: the sets, the report, the record, what was dropped."""

    def replay(log, topics, **keys):
        sets, dropped, out = [], [], tmp_path / "run.mcap"
        monkeypatch.setattr(Together, "__init__", lambda self: setattr(self, "sets", sets))
        pipeline = pipeline_of(Together, topics, **keys)
        report = pipeline.replay(log, out=out, dropped=dropped.append)
        return sets, report.data, out, dropped

    return replay


def test_syn_01_a_sensor_that_stops_takes_no_set_with_it(reports, replayed):
    answer = field.answer(reports, "SYN-01")
    timeout_ns = answer["timeout_ms"] * MS
    sets, data, out, dropped = replayed(
        reports / "SYN-01_lostsensor.mcap",
        ("/lidar_A", "/lidar_B", "/lidar_C"),
        tolerance="20 ms",
        timeout=f"{answer['timeout_ms']} ms",
        optional="c",
    )
    assert len(sets) == answer["sets"]
    partial = [index for index, given in enumerate(sets) if len(given) < 3]
    assert partial == answer["partial"]
    assert {tuple(sets[index]) for index in partial} == {("a", "b")}
    assert [record.missing for record in field.records(out, SyncRecord)] == [("c",)] * len(partial)
    assert data["sets"]["together"]["missing"] == {"a": 0, "b": 0, "c": len(partial)}
    assert (dropped, data["sets"]["together"]["dropped"]) == ([], 0)
    released = [job.release_ns for job in field.records(out, JobRecord)]
    for given, release_ns in zip(sets, released, strict=True):
        assert release_ns <= min(stamp.capture_ns for stamp in given.values()) + timeout_ns


def test_syn_03_no_message_is_in_two_sets(reports, replayed, tmp_path):
    answer = field.answer(reports, "SYN-03")
    low, high = answer["sets"]
    sets, data, _, dropped = replayed(
        field.as_clouds(reports / "SYN-03_reuse.mcap", tmp_path / "log.mcap"),
        ("/cam", "/lidar"),
        tolerance="17 ms",
        rates={"/cam": "30 Hz"},
    )
    assert low <= len(sets) <= high
    for name in "ab":
        used = Counter(given[name].sequence for given in sets)
        assert max(used.values()) == answer["max_use_per_message"]
    unused = data["log"]["topics"]["/cam"]["delivered"] - len(sets)
    assert data["sets"]["together"]["dropped_messages"] == {"a": unused, "b": 0}
    assert len(dropped) == unused


def test_syn_05_an_empty_cloud_is_a_message(reports, replayed):
    answer = field.answer(reports, "SYN-05")
    log = reports / "SYN-05_emptymember.mcap"
    sets, data, out, _ = replayed(log, ("/lidar_A", "/lidar_B"), tolerance="20 ms")
    assert len(sets) == answer["sets"]
    assert data["sets"]["together"]["incomplete"] == answer["timeouts"]
    with open_log(log) as messages:
        arrivals = [raw.log_ns for raw in messages.messages(["/lidar_A", "/lidar_B"])]
    last_ns = [at_ns - arrivals[0] for at_ns in arrivals[1::2]]
    assert [job.release_ns for job in field.records(out, JobRecord)] == last_ns


def test_syn_07_a_topic_that_is_not_there_is_told_before_anything_runs(reports, tmp_path):
    answer, given = field.answer(reports, "SYN-07"), field.given(reports, "SYN-07")
    log = field.as_clouds(reports / "SYN-07_unconnected.mcap", tmp_path / "log.mcap")
    pipeline = pipeline_of(Together, given["sync"], tolerance="20 ms")
    with pytest.raises(SpecError) as refused:
        pipeline.replay(log)
    assert repr(answer["must_name"]) in str(refused.value)
    assert f"did you mean {answer['may_suggest']!r}?" in str(refused.value)


@pytest.fixture
def silent(reports, tmp_path):
    """Return a log that has the third topic, but nothing of it that can be read."""
    topics = field.given(reports, "SYN-07")["sync"]
    flowing = field.as_clouds(reports / "SYN-07_unconnected.mcap", tmp_path / "flowing.mcap")
    with open_log(flowing) as log, LogWriter(tmp_path / "log.mcap") as writer:
        messages = list(log.messages(topics))
        for raw in messages:
            writer.add_raw(raw.topic, raw.type, raw.log_ns, bytes(raw.data))
        writer.add_raw(topics[2], messages[0].type, messages[-1].log_ns + 10 * MS, b"")
    return tmp_path / "log.mcap"


def test_syn_07_what_waits_for_a_silent_topic_is_dropped_and_told(reports, replayed, silent):
    """A topic that is in the log, and of which nothing comes: as a sensor that is not connected."""
    answer, topics = field.answer(reports, "SYN-07"), field.given(reports, "SYN-07")["sync"]
    sets, data, _, dropped = replayed(silent, topics, tolerance="20 ms")
    assert len(sets) == answer["sets"]
    figures, count = data["sets"]["together"], 30
    assert figures["dropped"] == figures["incomplete"] == figures["missing"]["c"] == count
    assert figures["dropped_messages"] == {"a": count, "b": count, "c": 0}
    assert [(one.stage, one.missing) for one in dropped] == [("together", ("c",))] * count
    assert dropped[0].at_ns <= answer["within_s"] * 1_000 * MS
    assert dropped[0].captures_ns == {"a": -3 * MS, "b": -3 * MS}
    assert [one.captures_ns["a"] for one in dropped] == [(100 * k - 3) * MS for k in range(count)]


@pytest.mark.live
def test_syn_07_a_live_run_tells_of_dropped_sets_too(reports, silent):
    dropped, topics = [], field.given(reports, "SYN-07")["sync"]
    pipeline = pipeline_of(Together, topics, tolerance="20 ms")
    report = pipeline.run(silent, rate=4, dropped=dropped.append)
    figures = report.data["sets"]["together"]
    assert figures["dropped"] == len(dropped) > 0
    assert sum(figures["dropped_messages"].values()) == sum(len(d.captures_ns) for d in dropped)
    assert {one.missing[-1] for one in dropped} == {"c"}


def test_what_somebody_raises_who_is_told_of_a_dropped_set_ends_the_run(reports, silent):
    def refuse(dropped):
        raise LookupError(dropped.stage)

    pipeline = pipeline_of(Together, field.given(reports, "SYN-07")["sync"], tolerance="20 ms")
    with pytest.raises(LookupError, match="together"):
        pipeline.replay(silent, dropped=refuse)
