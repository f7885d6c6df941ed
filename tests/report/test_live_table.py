"""The table of a run while it goes on."""

from rich.console import Console

from avrt.metrics.distribution import Distribution
from avrt.metrics.progress import RECENT, Progress, StageProgress, progress_of, recent
from avrt.metrics.run import RunFigures
from avrt.model.guard import SensorRecord
from avrt.model.records import JobRecord, ResourceRecord
from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec
from avrt.report.live_table import live_table

MS = 1_000_000
STAGE = StageSpec(name="see", device="cpu", wcet_ns=MS, deadline_ns=50 * MS, period_ns=100 * MS)
SPEC = PipelineSpec(name="p", devices=(DeviceSpec(name="cpu"),), stages=(STAGE,))


def shown(progress):
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(live_table(SPEC, progress))
    return capture.get()


def job(index, outcome, response_ns):
    return JobRecord(
        index, index, "see", "see", index, 0, 0, 50 * MS, 0, response_ns, outcome, "",
        response_ns, None, None, (),
    )  # fmt: skip


def test_it_shows_outcomes_recent_responses_and_what_is_wrong():
    figures = RunFigures(SPEC)
    figures.add(job(0, "met", 20 * MS))
    figures.add(job(1, "late", 60 * MS))
    figures.add(ResourceRecord("gpu", 5, "lost"))
    figures.add(ResourceRecord("npu", 6, "lost"))
    figures.add(ResourceRecord("npu", 7, "back"))
    figures.sensor(SensorRecord("camera", 8, "blind", "ok"))
    figures.sensor(SensorRecord("radar", 0, "ok", "ok"))
    late = Distribution()
    late.add(2 * MS)
    text = shown(progress_of(figures, 3_500 * MS, late))
    assert "p  3.5 s" in text
    assert "20.0/60.0/60.0" in text
    assert "driver late at planned instants, last 100: 2.0/2.0/2.0 ms" in text
    assert "gpu is lost" in text
    assert "npu" not in text
    assert "sensor camera is blind" in text
    assert "radar" not in text


def test_it_shows_what_was_dropped_and_how_the_host_is():
    stages = {"see": StageProgress(dict.fromkeys(
        ("released", "met", "late", "aborted", "skipped", "shed", "open"), 0), 0,
        Distribution().summary())}  # fmt: skip
    progress = Progress(
        0, stages, Distribution().summary(), (), {"hang": 2}, {"lidar": 3}, ("1.20 cores",),
        sets={"see": "3 sets lacked radar"},
    )  # fmt: skip
    assert "see: 3 sets lacked radar" in shown(progress)
    text = shown(progress)
    assert "lidar: 3 messages dropped" in text
    assert "fault hang (2x)" in text
    assert "1.20 cores" in text


def test_only_the_newest_responses_count():
    figure = Distribution()
    for value in range(500):
        figure.add(value)
    assert recent(figure)["count"] == RECENT
    assert recent(figure)["max"] == 499
    assert recent(figure)["p50"] == 449
