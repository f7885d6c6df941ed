"""Reports from the field of runs that did not end, and of recordings and errors that were lost.

Runs are processes of their own, as the reports have them. How long one may take to end is what the
report says, times SLACK: the machine that tests is shared.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader

import avrt
from avrt.drivers.verify import verify
from avrt.logs.record.run_file import RunFile
from avrt.report.summary import read_summary
from cases import field

pytestmark = pytest.mark.live

REPORTS = ("NOD-01", "NOD-03", "NOD-05", "NOD-07", "NOD-09")
SLACK = 6
START_S = 60
PHASES_S = [round(float(s), 3) for s in np.random.default_rng(1).uniform(0.0, 0.5, 20)]

SENSOR = """
import os, threading, time
import numpy as np
import avrt
from avrt.payload import PointCloud

def say(what):
    file = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{time.monotonic_ns()} {what}\\n".encode())
    os.close(file)

class Steady(avrt.Source):
    def __init__(self, count=1_000_000, period_s=0.005):
        self.number, self.count, self.period_s = -1, count, period_s
        self.closed = threading.Event()

    def read(self):
        if self.number >= 0:
            say(self.number)  # whoever asks for the next one has taken this one
        self.number += 1
        if self.closed.wait(self.period_s) or self.number == self.count:
            return None
        return avrt.Reading(PointCloud(np.full((400, 3), self.number, np.float32), None, None))

    def close(self):
        self.closed.set()

class Silent(Steady):
    def read(self):
        say("waiting")
        self.closed.wait()

def number(cloud):
    return cloud.stamp.sequence

def tick():
    return 1
"""
PIPELINE = """
pipeline: field
sources:
  lidar: {{type: lidar, topic: /lidar, run: "sensor.py:{source}", rate: 200 Hz, params: {params}}}
stages:
  number: {{run: "sensor.py:number", inputs: {{cloud: lidar}}, wcet: 1 ms, deadline: 1 s}}
"""


def fed_by(source, **params):
    """Return the pipeline file of one stage behind a source."""
    return PIPELINE.format(source=source, params=json.dumps(params))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_run.py", REPORTS)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts `avrt run` on a pipeline as a process, which ends with us."""
    made = []

    def begin(pipeline, *options, limit_bytes=None):
        (tmp_path / "sensor.py").write_text(SENSOR, encoding="utf-8")
        (tmp_path / "field.yaml").write_text(pipeline, encoding="utf-8")
        command = [sys.executable, "-m", "avrt", "run", "field.yaml", *map(str, options)]

        def limit():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

        process = subprocess.Popen(  # noqa: S603 - this interpreter
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(avrt.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=limit,  # noqa: PLW1509 - one thread
        )
        made.append(process)
        return process

    yield begin
    for process in made:
        process.kill()
        process.communicate()


def said(folder):
    """Return when the sensor said what, by the monotonic clock."""
    path = folder / "said"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(at_ns), what) for at_ns, what in (line.split() for line in lines)]


def await_said(folder, process, count=1):
    """Wait until the sensor has said so many things; fail if the process ends before."""
    give_up_s = time.monotonic() + START_S
    while len(said(folder)) < count:
        if process.poll() is not None or time.monotonic() > give_up_s:
            pytest.fail(f"the run did not begin: {process.communicate()[1].decode()}")
        time.sleep(0.01)


def waits(report):
    """Return how long a report lets the program take to end."""
    runs = report.get("runs", [report])
    return [step["wait"] for run in runs for step in run["steps"] if "wait" in step]


@pytest.mark.slow
@pytest.mark.parametrize("phase_s", PHASES_S)
def test_sigint_leaves_a_whole_record(reports, start, tmp_path, phase_s):
    """NOD-01: exit 0 or 130, a footer, and everything that was accepted before the signal."""
    report = field.given(reports, "NOD-01")
    checks = report["checks"]
    out = tmp_path / "out.mcap"
    process = start(fed_by("Steady"), "--record", out)
    await_said(tmp_path, process, checks["min_messages"])
    time.sleep(phase_s)
    signalled_ns = time.monotonic_ns()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SLACK * waits(report)[0])
    assert process.returncode in checks["exit_in"]

    accepted = {int(number) for at_ns, number in said(tmp_path) if at_ns < signalled_ns}
    with out.open("rb") as file:  # this reader begins at the footer
        found = [m.sequence for _, _, m in make_reader(file).iter_messages(["/lidar"])]
    assert len(accepted) >= checks["min_messages"]
    assert found == list(range(len(found)))
    assert accepted <= set(found)
    verified = verify(out)
    assert verified.equal
    summary = read_summary(out)
    jobs = summary.figures.jobs()
    assert summary.interrupted
    assert not summary.not_recorded
    assert jobs["released"] == len(found)
    assert jobs["open"] == 0
    assert len(avrt.read_outputs(out, "number")) == jobs["met"] + jobs["late"]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [b"", b" "])
def test_ctrl_c_ends_a_run_in_which_nothing_happens(reports, start, tmp_path, keys):
    """NOD-03: nothing can be paused live; a sensor that says nothing is the same wait."""
    report = field.given(reports, "NOD-03")
    page = tmp_path / "page.html"
    process = start(fed_by("Silent"), "--json", "--report", page)
    await_said(tmp_path, process)
    process.stdin.write(keys)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SLACK * waits(report)[0])
    assert process.returncode in report["checks"]["exit_in"], err.decode()
    assert json.loads(out)["interrupted"]
    assert page.stat().st_size


@pytest.mark.slow
def test_a_full_disk_ends_the_record_and_not_the_run(reports, start, tmp_path):
    """NOD-05: a limit of the file's size; perception goes on, and what was written can be read."""
    report = field.given(reports, "NOD-05")
    run, checks = report["runs"][0], report["runs"][0]["checks"]
    out = tmp_path / "out.mcap"
    limit_bytes = run["limits"]["fsize"]
    pipeline = fed_by("Steady", count=300, period_s=0.002)
    process = start(pipeline, "--record", out, "--json", limit_bytes=limit_bytes)
    told, err = process.communicate(timeout=START_S + SLACK * waits(report)[0])
    lines = err.decode().splitlines()
    assert process.returncode not in checks["exit_not"]
    assert sum("ERROR" in line or "recording failed" in line for line in lines) == 1, lines
    assert all(any(word in line for line in lines) for word in checks["stderr_has"])
    assert "Traceback" not in err.decode()
    data = json.loads(told)
    assert "File too large" in data["record_failure"]
    assert data["jobs"]["released"] == 300
    assert data["jobs"]["open"] == 0

    assert 0 < out.stat().st_size <= limit_bytes
    left = read_summary(out)
    assert not left.complete
    assert 0 < left.figures.jobs()["released"] < 300
    numbers = [output.payload for output in avrt.read_outputs(out, "number")]
    assert numbers
    assert all(after == before + 1 for before, after in pairwise(numbers))
    assert verify(out).difference is None


@pytest.mark.slow
def test_a_disk_that_is_full_from_the_start_is_told(reports, start, tmp_path):
    """NOD-05: nothing runs yet, so the run is refused, and says why."""
    checks = field.given(reports, "NOD-05")["runs"][1]["checks"]
    (tmp_path / "out.mcap").symlink_to("/dev/full")
    process = start(fed_by("Steady", count=20), "--record", "out.mcap")
    _, err = process.communicate(timeout=START_S)
    assert process.returncode not in checks["exit_not"]
    assert all(word in err.decode() for word in checks["stderr_has"])
    assert "Traceback" not in err.decode()


def test_no_exception_of_a_stage_is_lost(reports, make_drive, tmp_path, caplog):
    """NOD-07: stage, frame and place are logged, each time, and the stage is tried again."""
    path = reports / "NOD-07_lostexc.py"
    spec = spec_from_file_location("lost", path)
    lost = module_from_spec(spec)
    spec.loader.exec_module(lost)
    answer = field.answer(reports, "NOD-07")
    frames = answer["ok_frames"] + len(answer["logged"])

    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 2}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    shared = {"inputs": {"cloud": "lidar"}, "wcet": "5 ms", "deadline": "5 s"}
    pipeline.add(lambda cloud: lost.stage(cloud.stamp.sequence), name="raises", **shared)
    pipeline.add(lambda cloud: cloud.stamp.sequence, name="other", **shared)
    out = tmp_path / "out.mcap"
    report = pipeline.run(make_drive(frames), rate=20, record=out)

    told = [message for message in caplog.messages if "raises" in message]
    assert len(told) == len(answer["logged"])
    for frame, message in zip(answer["logged"], told, strict=True):
        assert "stage raises failed" in message
        assert f"lidar {frame}:" in message
        assert f"ZeroDivisionError: division by zero at {__file__}:" in message
    stages = report.summary.figures.stages
    assert stages["raises"].jobs()["met"] == answer["ok_frames"]
    assert stages["raises"].jobs()["aborted"] == len(answer["logged"])
    assert report.data["faults"] == {"raises: exception": len(answer["logged"])}
    assert stages["other"].jobs()["met"] == frames
    with RunFile(out) as run:
        assert run.complete


@pytest.mark.slow
def test_timers_end_with_the_log(reports, start, make_drive):
    """NOD-09: the process ends by itself, with exit code 0 and its report."""
    graph, answer = field.given(reports, "NOD-09"), field.answer(reports, "NOD-09")
    source, (data, tick) = graph["source"], graph["stages"]
    period_ns = source["period_ms"] * 1_000_000
    log = make_drive(source["n"], topics=(source["topic"],), period_ns=period_ns)
    text = f"""
pipeline: ends
sources: {{s: {{type: lidar, topic: {source["topic"]}, rate: 10 Hz}}}}
stages:
  {data["name"]}: {{run: "sensor.py:number", inputs: {{cloud: s}}, wcet: 1 ms, deadline: 1 s}}
  {tick["name"]}:
    {{run: "sensor.py:tick", period: {tick["timer_ms"]} ms, wcet: 1 ms, deadline: 100 ms}}
"""
    process = start(text, "--log", log, "--json")
    told, err = process.communicate(timeout=START_S + SLACK * answer["max_wall_s_virtual"])
    assert process.returncode == answer["exit"], err.decode()
    stages = json.loads(told)["stages"]
    assert stages[data["name"]]["jobs"]["released"] == answer["data_jobs"]
    assert stages[tick["name"]]["jobs"]["released"] in answer["tick_jobs"]
    assert all(stage["jobs"]["open"] == 0 for stage in stages.values())
