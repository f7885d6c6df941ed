"""`--report PAGE` and `avrt report RUN -o PAGE`: a page beside what is printed, and no more."""

import json
import re
import tempfile
from pathlib import Path

import pytest

DATA = re.compile(r'<script type="application/json" id="run-data">(.*?)</script>', re.DOTALL)
SCENARIO = "scenario: s\npipeline: small.yaml\nduration: 1 s\nseed: 1\nexpect: {all: {late: 3}}\n"


def objects(page):
    """The run objects that a page holds."""
    data = json.loads(DATA.search(page.read_text(encoding="utf-8"))[1])
    return [run["object"] for run in data["runs"]]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder of its own for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def scenario(write_pipeline, tmp_path):
    write_pipeline()
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def test_a_replay_writes_its_page_and_keeps_no_record(
    call, make_drive, write_pipeline, tmp_path, temporary
):
    page = tmp_path / "run.html"
    done = call("replay", make_drive(6), "-p", write_pipeline(), "--report", page, "--json")
    assert done.code == 0
    assert objects(page) == [done.data]
    assert done.data["record"] is None
    assert list(temporary.iterdir()) == []


def test_a_page_beside_a_record_is_the_page_of_the_record(
    call, make_drive, write_pipeline, tmp_path
):
    page, record, again = (tmp_path / name for name in ("a.html", "run.mcap", "b.html"))
    drive, pipeline = make_drive(6), write_pipeline()
    assert call("replay", drive, "-p", pipeline, "-o", record, "--report", page).code == 0
    done = call("report", record, "-o", again, "--json")
    assert done.code == 0
    assert objects(page) == objects(again) == [done.data]
    assert done.data["record"] == str(record)


def test_a_simulation_writes_its_page_with_what_was_expected(call, scenario, tmp_path, temporary):
    page = tmp_path / "run.html"
    done = call("simulate", scenario, "--report", page)
    assert done.code == 1
    assert "record" not in done.out
    assert len(objects(page)) == 1
    assert "0 of 1 expectations met." in page.read_text(encoding="utf-8")
    assert list(temporary.iterdir()) == []


def test_a_what_if_writes_the_page_of_both_runs(call, record, tmp_path, temporary):
    page = tmp_path / "run.html"
    done = call("whatif", record, "--cost", "it=120ms", "--report", page, "--json")
    assert done.code == 0
    before, after = objects(page)
    for name, found in (("before", before), ("after", after)):
        assert found["stages"]["it"]["jobs"] == done.data["stages"]["it"][name]["jobs"]
        assert found["bounds"] == done.data["bounds"][name]
    assert done.data["out"] is None
    assert after["record"] is None
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "{scenario}", "--runs", "3"), "a page shows one run"),
        (("simulate", "{scenario}", "--anomalies"), "a page shows one run"),
        (("whatif", "{record}", "--anomalies"), "a page shows one changed run"),
    ],
)
def test_a_page_shows_one_run(call, record, scenario, tmp_path, arguments, message):
    page = tmp_path / "run.html"
    given = [one.format(scenario=scenario, record=record) for one in arguments]
    done = call(*given, "--report", page)
    assert done.code == 2
    assert message in done.err
    assert not page.exists()


def test_a_page_that_cannot_be_written_is_refused_before_the_run(
    call, make_drive, write_pipeline, record, tmp_path
):
    drive, pipeline = make_drive(6), write_pipeline()
    places = [(drive, "overwrite"), (pipeline, "overwrite"), (tmp_path, "it is a folder")]
    for place, message in [*places, (tmp_path / "no" / "page.html", "there is no folder")]:
        before = place.read_bytes() if place.is_file() else None
        done = call("replay", drive, "-p", pipeline, "--report", place)
        assert (done.code, done.out) == (2, "")
        assert message in done.err
        assert before is None or place.read_bytes() == before
    new = tmp_path / "new"
    for option in ("-o", "--trace"):
        done = call("replay", drive, "-p", pipeline, option, new, "--report", new)
        assert (done.code, done.out) == (2, "")
        assert not new.exists()
    done = call("report", record, "-o", record)
    assert done.code == 2
    assert Path(record).stat().st_size > 0


def test_a_page_overwrites_nothing_that_its_run_reads(
    call, make_drive, write_pipeline, record, scenario, tmp_path
):
    drive, pipeline, kept = make_drive(6), write_pipeline(), Path(record).read_bytes()
    done = call(
        "replay", drive, "-p", pipeline, "--timing", f"recorded:{record}", "--report", record
    )
    assert (done.code, done.out) == (2, "")
    assert "the page would overwrite" in done.err
    assert Path(record).read_bytes() == kept
    small = tmp_path / "small.yaml"
    kept = small.read_bytes()
    done = call("simulate", scenario, "--report", small)
    assert (done.code, done.out) == (2, "")
    assert small.read_bytes() == kept
