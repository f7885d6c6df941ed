"""The page of a run in real time: what streams did, what the host gave, what an incident was."""

from __future__ import annotations

import pytest
from live_records import HOST_NS, MS, RIGHTS, SAMPLES, make_spec, sample, write_live_record
from reading_pages import Read

import avrt
from avrt.logs.record.run_file import RunFile
from avrt.metrics.run import RunFigures
from avrt.report.host import read_host
from avrt.report.page import rows, write_page
from avrt.report.page.verdict import verdict_of
from avrt.report.summary import FlightSummary, RunSummary, read_summary

WHY = "it 1 missed its deadline"
FLIGHT = {"flight": WHY}
FAR_NS = 3_600_000 * MS


@pytest.fixture
def read_live(tmp_path):
    """Return a function that writes a live record and reads its page."""

    def read(*arguments, **keys):
        record, page = tmp_path / "run.mcap", tmp_path / "page.html"
        write_page(page, write_live_record(record, *arguments, **keys))
        return Read(page)

    return read


def test_every_job_has_what_the_gap_before_it_was(read_live):
    first, second, third = (job["more"] for job in read_live().jobs())
    assert "gap_ns" not in first
    assert first["device_ns"] == [103 * MS, 120 * MS]
    assert second["gap_ns"] == [1 * MS, 79 * MS, 2 * MS, 3 * MS]
    assert third["gap_ns"] == [4 * MS, 0, 0, 1 * MS]


def test_streams_are_a_table(read_live):
    page = read_live()
    for share in ("reporting", "idle", "waiting", "handing over", "side by side"):
        assert share in page.text
    assert "36.6%" in page.text  # 17 + 85 + 10 ms of 306 ms


def test_samples_are_by_pipeline_time_from_its_zero_on(read_live):
    host = read_live().data["runs"][0]["host"]
    assert host["since_ns"] == [0, 150 * MS, 250 * MS]
    assert host["at_ns"] == [150 * MS, 250 * MS, 350 * MS]
    assert host["process_cores"] == [1.25, 1.5, 1.25]
    assert host["steal_cores"] == [None] * 3
    assert host["rss_bytes"] == [300 << 20] * 3


def test_host_time_is_stretched_as_the_run_was(tmp_path):
    quick = [{**s, "at_ns": HOST_NS + (s["at_ns"] - HOST_NS) * 10} for s in SAMPLES]
    path = write_live_record(tmp_path / "run.mcap", samples=quick)
    with RunFile(path) as run:
        for one, told in zip(read_host(run).samples, quick, strict=True):
            assert one.at_ns == told["at_ns"] - HOST_NS
            assert one.at_ns - one.since_ns == min(one.at_ns, told["at_ns"] - told["since_ns"])


@pytest.mark.parametrize("bad", [{"process_cores": "x"}, {"cores": None}, {"rss_bytes": 1.5}])
def test_a_sample_that_is_none_is_left_out(tmp_path, bad):
    samples = (SAMPLES[0], sample(150, 250, **bad), SAMPLES[2])
    path = write_live_record(tmp_path / "run.mcap", samples=samples)
    with RunFile(path) as run:
        host = read_host(run)
    assert [one.at_ns for one in host.samples] == [150 * MS, 350 * MS]
    assert host.unusable == 1
    write_page(tmp_path / "page.html", path)
    assert "samples of the host: 1 cannot be used" in Read(tmp_path / "page.html").text


def test_many_samples_are_put_together_and_told(read_live, monkeypatch):
    monkeypatch.setattr(rows, "HOST_MAX", 2)
    page = read_live()
    host = page.data["runs"][0]["host"]
    assert host["since_ns"] == [0, 250 * MS]
    assert host["at_ns"] == [250 * MS, 350 * MS]
    assert host["process_cores"] == [1.35, 1.25]  # 150 ms of 1.25 and 100 ms of 1.5
    assert "samples of the host: 2 of 3 make one step of its charts" in page.text


def test_rights_are_listed_once_with_their_threads(read_live):
    page = read_live()
    assert "granted fifo SCHED_FIFO 40 (it, see)" in page.text
    assert "refused memory lock not permitted (EPERM)" in page.text
    assert "cores: nothing is pinned" in page.text
    assert "realtime" not in page.text
    assert page.text.count("not permitted (EPERM)") == 1
    assert page.text.index("refused memory lock") < page.text.index("granted fifo")


def test_what_the_host_gave_is_told_in_its_section_and_not_again(read_live):
    page = read_live()
    assert page.text.count("by what the host gave then: 1 starved") == 1
    assert page.text.count("others kept 42% of the cores busy") == 1


def test_a_refused_right_is_in_the_verdict_where_a_promise_was_broken(tmp_path):
    path = write_live_record(tmp_path / "run.mcap")
    assert "The host refused memory lock." in verdict_of(read_summary(path)).more
    spec = make_spec()
    kept = RunSummary(spec, RunFigures(spec), "measured", RIGHTS)
    assert not [line for line in verdict_of(kept).more if "refused" in line]


def test_a_record_or_flight_recorder_that_failed_is_in_the_verdict():
    spec = make_spec()
    summary = RunSummary(
        spec,
        RunFigures(spec),
        "measured",
        {},
        record_failure="No space left on device",
        flight=FlightSummary(failure="read-only file system"),
    )
    verdict = verdict_of(summary)
    assert verdict.standing == "bad"
    assert any("Recording FAILED" in line and "No space left" in line for line in verdict.more)
    assert "The flight recorder gave up: read-only file system." in verdict.more


def test_a_flight_record_opens_with_its_incident(read_live):
    samples = [sample(150, 250, FAR_NS), sample(250, 350, FAR_NS)]
    page = read_live(FLIGHT, FAR_NS, samples, closed=False)
    run = page.data["runs"][0]
    assert run["incident"] == {"at_ns": FAR_NS + 280 * MS, "job": 1}
    assert run["object"]["incident_ns"] == FAR_NS + 280 * MS
    assert run["object"]["begin_ns"] == page.data["from_ns"] == FAR_NS + 101 * MS
    assert f"{WHY} at 3600.280 s. A flight record, from 3600.101 s to 3600.306 s" in page.text
    assert "cut short" not in page.text
    assert "pipeline time 0.20 s" in page.text
    density = run["density"]
    assert density["begin_ns"] == FAR_NS + 101 * MS
    assert sum(count > 0 for count in density["tasks"]["it"]["met"]) == 2
    assert run["host"]["since_ns"] == [FAR_NS + 150 * MS, FAR_NS + 250 * MS]
    assert "Host" in page.text


def test_shares_of_a_flight_record_are_of_its_own_time(tmp_path):
    path = write_live_record(tmp_path / "run.mcap", FLIGHT, FAR_NS, closed=False)
    report = str(avrt.Report(read_summary(path)))
    assert "0.20 s of pipeline time" in report
    assert "54.6%" in report  # 112 ms of 205 ms


def test_an_incident_that_the_record_lacks_is_told_without_its_time(read_live):
    page = read_live({"flight": "gpu is lost"}, closed=False)
    assert page.data["runs"][0]["incident"] is None
    assert "gpu is lost. A flight record" in page.text


def test_a_run_in_virtual_time_has_none_of_this(make_drive, tmp_path):
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(lambda cloud: cloud.payload.count, name="it", inputs={"cloud": "lidar"},
                 wcet="5 ms", deadline="50 ms")  # fmt: skip
    pipeline.replay(make_drive(4), out=tmp_path / "run.mcap")
    write_page(tmp_path / "page.html", tmp_path / "run.mcap")
    page = Read(tmp_path / "page.html")
    assert page.data["runs"][0]["host"] is None
    assert page.data["runs"][0]["incident"] is None
    assert not [job for job in page.jobs() if "gap_ns" in job["more"]]
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert not ids & {"streams", "host"}
    starts = [job["more"].get("device_ns", [None])[0] for job in page.jobs()]
    assert set(starts) == {None}


def test_a_flight_record_is_held_against_no_bound(tmp_path):
    path = write_live_record(tmp_path / "run.mcap", conditions=FLIGHT)
    found = read_summary(path).bounds
    assert found.verdict == "unknown"
    assert "what was broken before this record begins is not known" in " ".join(found.notes())
