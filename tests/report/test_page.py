"""The page of a run: its figures are the summary's, its jobs the journal's, its text only text."""

import re

import pytest
from reading_pages import Read

import avrt
from avrt.api.scenario import Scenario
from avrt.api.whatif import what_if
from avrt.config.changes import Changes
from avrt.errors import SpecError
from avrt.logs.record.run_file import RunFile
from avrt.model.records import OUTCOMES
from avrt.report.page import history, write_page, write_what_if_page
from avrt.report.page.assembly import CAMPAIGN, RUN, asset, script
from avrt.report.page.markup import joined, script_json, table, tag
from avrt.report.summary import read_summary

ODD = "</script><script>alert(1)</script><!-- & \"x\" 'y' <b>"
MS = 1_000_000


def late_pipeline(topic="/lidar"):
    """Every second job of `it` waits for the one before; `after` has another fault a job."""
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 1}})
    pipeline.source("lidar", type="lidar", topic=topic, rate="10 Hz")
    pipeline.add(lambda cloud: cloud.payload.count, name="it", inputs={"cloud": "lidar"},
                 wcet="120 ms", deadline="150 ms", miss_at_most="1 of 4")  # fmt: skip
    pipeline.chain("see", path=["lidar", "it"], reaction="300 ms", age="280 ms")
    return pipeline


@pytest.fixture
def late_run(make_drive, tmp_path):
    path = tmp_path / "run.mcap"
    return late_pipeline().replay(make_drive(12), out=path), path


@pytest.fixture
def read_page(tmp_path):
    """Return a function that writes the page of a record and reads it."""

    def read(record, summary=None, **more):
        path = tmp_path / "page.html"
        write_page(path, record, summary, **more)
        return Read(path)

    return read


def test_its_figures_are_those_of_the_summary(late_run, read_page):
    report, path = late_run
    page = read_page(path, report.summary)
    assert page.data["runs"][0]["object"] == report.data
    assert read_page(path).data["runs"][0]["object"] == read_summary(path).data()


def test_every_job_is_there_with_its_times_and_what_held_it_up(late_run, read_page):
    report, path = late_run
    jobs = read_page(path).jobs()
    counts = {name: sum(job["outcome"] == name for job in jobs) for name in OUTCOMES}
    assert counts == {name: report.jobs[name] for name in OUTCOMES}
    late = next(job for job in jobs if job["outcome"] == "late")
    assert late["end"] > late["due"]
    miss = report.misses[0]
    assert late["index"] == miss.index
    assert [one[0] for one in late["more"]["miss"]] == [i.kind for i in miss.intervals]
    assert sum(end - start for _, start, end, _, _ in late["more"]["miss"]) == (
        miss.at_ns - miss.release_ns
    )
    assert late["more"]["host_ns"] > 0


def test_text_says_what_the_terminal_says(late_run, read_page):
    report, path = late_run
    page = read_page(path)
    response = report.summary.figures.stages["it"].response.summary()
    for which in ("p50", "p95", "p99", "max"):
        assert f"{response[which] / MS:.1f}" in page.text
    assert "why it was late" in page.text
    assert report.summary.decisions in page.text
    assert "(m,k) was broken" in page.text


def test_slices_count_every_response_once(late_run, read_page):
    report, path = late_run
    chart = read_page(path).data["responses"]["it"]
    assert sum(chart["counts"][0]) == len(report.summary.figures.stages["it"].response)
    longest = report.summary.figures.stages["it"].response.summary()["max"]
    assert chart["counts"][0][longest // chart["slice_ns"]]


def test_a_name_is_text_and_nothing_else(make_drive, tmp_path, read_page):
    path = tmp_path / "run.mcap"
    pipeline = late_pipeline(ODD)
    pipeline.replay(make_drive(3, topics=(ODD,)), out=path)
    page = read_page(path, remarks=[ODD])
    assert " ".join(ODD.split()) in page.text
    scripts = [attributes for name, attributes in page.elements if name == "script"]
    assert len(scripts) == 3
    assert not [name for name, _ in page.elements if name == "b" and "alert" in name]
    assert "alert(1)</script>" not in page.source


def test_it_names_no_address(late_run, read_page):
    _, path = late_run
    page = read_page(path)
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", page.source)
    for name, attributes in page.elements:
        assert name not in {"link", "iframe", "img", "object", "embed"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for n, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_what_is_too_much_is_thinned_and_told(late_run, read_page, monkeypatch):
    report, path = late_run
    monkeypatch.setattr(history, "MISSED_MAX", 3)
    monkeypatch.setattr(history, "MET_MAX", 1)
    monkeypatch.setattr(history, "OUTPUTS_MAX", 2)
    page = read_page(path)
    jobs = page.jobs()
    missed = report.jobs["released"] - report.jobs["met"]
    assert len(jobs) < report.jobs["released"]
    assert f"jobs not met: 1 in 4 of {missed} is drawn one by one" in page.text
    assert "outputs of chain see: 1 in" in page.text
    longest = report.summary.figures.stages["it"].highs[-1]
    assert longest.index in {job["index"] for job in jobs}
    density = page.data["runs"][0]["density"]["tasks"]["it"]
    assert sum(density["met"]) == report.jobs["met"]
    assert sum(density["missed"]) == missed
    assert page.data["runs"][0]["object"]["jobs"] == report.jobs


def test_jobs_around_a_miss_are_kept_before_others(late_run, monkeypatch):
    _, path = late_run
    monkeypatch.setattr(history, "MET_MAX", 1)
    monkeypatch.setattr(history, "AROUND", 2)
    summary = read_summary(path)
    kept = history.History(summary.pipeline, summary.end_ns)
    with RunFile(path) as run:
        kept.read(run)
    missed = [row.record.index for row in kept.jobs if row.record.outcome != "met"]
    met = [row.record.index for row in kept.jobs if row.record.outcome == "met"]
    assert missed
    assert {missed[0] - 1, missed[0] - 2} & set(range(12)) <= set(met)


def test_nothing_left_out_is_said_too(tmp_path, read_page):
    path = tmp_path / "run.mcap"
    pipeline = avrt.Pipeline("p")
    pipeline.source("wheels", type="can", topic="/wheels", rate="10 Hz")
    with avrt.logs.writer.LogWriter(tmp_path / "log.mcap") as log:
        log.add_speed("/wheels", "base", 10**18, avrt.payload.Speed(3.0))
    pipeline.add(lambda speed: speed.payload.speed, name="it", inputs={"speed": "wheels"},
                 wcet="1 ms", deadline="9 ms")  # fmt: skip
    pipeline.replay(tmp_path / "log.mcap", out=path)
    page = read_page(path)
    assert "Nothing: every job, message and picture" in page.text
    assert page.scene is None


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_damaged_record_has_a_page_that_says_so(late_run, read_page, share):
    _, path = late_run
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 0xFF
    path.write_bytes(bytes(data))
    page = read_page(path)
    assert "Damaged: " in page.text
    assert page.data["runs"][0]["object"] == read_summary(path).data()


def test_a_record_that_was_cut_short_has_a_page(late_run, read_page):
    _, path = late_run
    path.write_bytes(path.read_bytes()[:-3000])
    assert "The record was cut short" in read_page(path).text


SCENARIO = """
scenario: s
pipeline: p.yaml
duration: 2 s
seed: 3
faults:
  - {at: 1 s, device_lost: gpu}
  - {at: 1300 ms, device_back: gpu}
"""
SIMULATED = """
pipeline: simulated
devices: {gpu: {type: cpu, slots: 1}}
sources: {lidar: {type: lidar, topic: /l, rate: 10 Hz}}
stages:
  it: {run: "nowhere:it", inputs: {cloud: lidar}, device: gpu, wcet: 60 ms, deadline: 90 ms}
"""


def test_a_simulation_has_a_page_without_pictures(tmp_path, read_page):
    (tmp_path / "p.yaml").write_text(SIMULATED)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    path = tmp_path / "run.mcap"
    report, _ = Scenario.load(tmp_path / "s.yaml").run(out=path)
    page = read_page(path, report.summary)
    assert page.scene is None
    assert len(page.jobs()) == sum(report.jobs[name] for name in OUTCOMES)
    assert [mark["kind"] for mark in page.data["runs"][0]["marks"]][:2] == ["resource", "resource"]
    assert page.data["steps"] == page.data["runs"][0]["sources"][0]["arrivals"]
    assert not [attributes for _, attributes in page.elements if attributes.get("id") == "birdseye"]


def test_a_what_if_shows_both_runs_and_what_changed(make_drive, tmp_path):
    before, after = tmp_path / "run.mcap", tmp_path / "changed.mcap"
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(lambda cloud: cloud.payload.count, name="it", inputs={"cloud": "lidar"},
                 wcet="5 ms", deadline="50 ms")  # fmt: skip
    pipeline.replay(make_drive(6), out=before)
    report = what_if(before, Changes(cost=("it=120ms",)), after)
    write_what_if_page(tmp_path / "page.html", before, after, report)
    page = Read(tmp_path / "page.html")
    assert [run["name"] for run in page.data["runs"]] == ["recorded", "what if"]
    assert [job["outcome"] for job in page.jobs(0)] == ["met"] * 6
    assert [job["outcome"] for job in page.jobs(1)] == ["late"] * 6
    assert page.data["changes"] == [
        {"kind": "appears", "task": "it", "before": i, "after": i} for i in range(6)
    ]
    for run, side in zip(page.data["runs"], (report.before, report.after), strict=True):
        assert run["object"]["stages"]["it"]["response_ns"] == (
            side.figures.stages["it"].response.summary()
        )
    assert "With cost it=120ms, 6 jobs are not met instead of 0." in page.text
    assert "Misses that change" in page.text


def test_a_page_is_not_written_over_its_record_or_into_nowhere(late_run, tmp_path):
    _, path = late_run
    before = path.read_bytes()
    with pytest.raises(SpecError, match="would overwrite"):
        write_page(path, path)
    assert path.read_bytes() == before
    with pytest.raises(SpecError, match="cannot write the page"):
        write_page(tmp_path / "no" / "page.html", path)


def test_the_same_run_gives_the_same_page(late_run, tmp_path):
    _, path = late_run
    pages = []
    for name in ("a.html", "b.html"):
        write_page(tmp_path / name, path)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_markup_escapes_what_is_no_markup():
    assert (
        tag("p", "<b>", tag("i", "&"), title='"') == '<p title="&quot;">&lt;b&gt;<i>&amp;</i></p>'
    )
    assert joined(["<", tag("b")]) == "&lt;<b></b>"
    assert "<td>&lt;</td>" in table(["a"], [["<"]])
    assert script_json({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'


@pytest.mark.parametrize("layout", [RUN, CAMPAIGN], ids=lambda layout: layout.page)
def test_scripts_define_no_name_twice_and_say_their_idea(layout):
    defined = r"^(?:async )?(?:function|class|const|let) (\w+)"
    names = re.findall(defined, script(layout), re.MULTILINE)
    assert len(names) == len(set(names))
    for name in layout.scripts:
        text = asset(f"script/{name}.js")
        assert text.startswith("// ")
        assert len(text.splitlines()) <= 250
        assert not re.search(r"fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", text)
