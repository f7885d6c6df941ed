"""`avrt inject`: exit codes, the table, the object and its documentation."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from avrt.drivers.virtual import VirtualLoop
from avrt.model.campaign import Injection

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/inject.md").read_text(encoding="utf-8")
DROP = "{where: source.lidar, what: drop, frame: 5}"
RAISE = "{where: stage.it, what: raise, frame: 3}"
WRONG = "{where: stage.it, what: flip, frame: 3}"


@pytest.fixture
def campaign(tmp_path, make_drive, write_pipeline):
    """Return a function that writes a campaign of rows over a log of 16 messages."""

    def write(*rows, log=None):
        write_pipeline()
        path = tmp_path / "campaign.yaml"
        head = ["campaign: small", "pipeline: small.yaml", f"log: {log or make_drive(16).name}"]
        path.write_text("\n".join([*head, "rows:", *(f"  {row}" for row in rows)]) + "\n")
        return path

    return write


def row(name, fault, expect="{}", more=""):
    return f"{name}: {{about: it, faults: [{fault}], expect: {expect}{more}}}"


def test_rows_that_are_as_expected_exit_0(call, campaign):
    expect = "{outcome: recovered, detect: {by: fault, within: 10 ms}, lost: 1}"
    done = call("inject", campaign(row("S1", DROP), row("P3", RAISE, expect)))
    assert done.code == 0
    assert "small, seed 0" in done.out
    assert re.search(r"S1 .* recovered .* nothing .* ok", done.out)
    assert re.search(r"P3 .* recovered .* fault .* 5 ms .* ok", done.out)
    assert "told by fault: 1 of 1 (2.5% .. 100.0% at 95%)" in done.out
    assert "a stage prints" in done.out  # nobody asked for one object


def test_a_row_that_is_not_as_expected_exits_1_and_says_why(call, campaign):
    done = call("inject", campaign(row("B2", WRONG), row("S1", DROP, "{detect: {by: log}}")))
    assert done.code == 1
    assert "it is silent_corruption" in done.out
    assert "nothing told of it" in done.out


def test_a_known_gap_is_shown_and_exits_0_until_it_is_closed(call, campaign):
    gap = ", gap: a check sum"
    done = call("inject", campaign(row("B2", WRONG, more=gap)))
    assert done.code == 0
    assert "known gap: a check sum" in done.out
    done = call("inject", campaign(row("P3", RAISE, more=gap)))
    assert done.code == 1
    assert "remove 'gap'" in done.out


def test_one_row_and_several_seeds(call, campaign):
    path = campaign(row("B2", WRONG, "{outcome: [silent_corruption, masked]}"), row("P3", RAISE))
    data = call("inject", path, "--row", "B2", "--repeat", 3, "--seed", 5, "--json").data
    assert [item["id"] for item in data["rows"]] == ["B2"] * 3
    assert [item["seed"] for item in data["rows"]] == [5, 6, 7]
    again = call("inject", path, "--row", "B2", "--repeat", 3, "--seed", 5, "--json").data
    assert again == data
    seeds = {item["faults"][0]["seed"] for item in data["rows"]}
    assert len(seeds) == 3


def test_pairs_that_do_harm_exit_1(call, campaign):
    path = campaign(row("B2", WRONG), row("S1", DROP))
    done = call("inject", path, "--pairs", 2)
    assert done.code == 1
    assert done.out.splitlines()[-3].startswith("2 pairs: ")
    assert "stage.it flip frame" in done.out
    harmless = campaign(row("P3", RAISE), row("S1", DROP))
    done = call("inject", harmless, "--pairs", 2)
    assert (done.code, "2 pairs: 2 recovered" in done.out) == (0, True)


def test_clean_drives_are_quiet(call, campaign):
    done = call("inject", campaign(row("S1", DROP)), "--clean", 100)
    assert done.code == 0
    assert "16 clean frames in 1 drive: 0 alarms, 0 changes of level" in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--row", "S2"), "no row 'S2'; known are S1"),
        (("--pairs", "2"), "a pair takes two rows"),
        (("--pairs", "-2"), "expected pairs from 0"),
        (("--seed", "-2"), "expected a seed from 0"),
        (("--repeat", "0"), "expected 1 to 100000 runs of a row"),
        (("--pairs", "2", "--clean", "5"), "give either --pairs or --clean"),
        (("--pairs", "2", "--row", "S1"), "drop --row and --repeat"),
    ],
)
def test_what_means_nothing_exits_2(call, campaign, arguments, told):
    done = call("inject", campaign(row("S1", DROP)), *arguments)
    assert done.code == 2
    assert told in done.err


def test_a_page_says_what_the_table_says(call, campaign, tmp_path):
    page, path = tmp_path / "page.html", campaign(row("S1", DROP), row("P3", RAISE))
    plain = call("inject", path, "--json")
    done = call("inject", path, "--json", "--report", page)
    assert (done.code, done.data) == (0, plain.data)
    told = page.read_text(encoding="utf-8")
    assert 'id="S1"' in told
    assert "where: stage.it, what: raise, frame: 3" in told
    assert "All 2 runs are as expected." in told
    for more, said in ((("--pairs", 2), "None of 2 pairs"), (("--clean", 8), "clean frames in 1")):
        assert call("inject", path, *more, "--report", page).code == 0
        assert said in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_refused_before_any_run(call, campaign, tmp_path):
    path = campaign(row("S1", DROP))
    log = next(tmp_path.glob("*.mcap"))
    for place in (path, tmp_path / "small.yaml", log, tmp_path, tmp_path / "no" / "page.html"):
        before = place.read_bytes() if place.is_file() else None
        done = call("inject", path, "--report", place)
        assert (done.code, done.out) == (2, "")
        assert "page" in done.err
        assert before is None or place.read_bytes() == before


def test_a_log_that_is_missing_exits_4_and_a_campaign_that_is_2(call, campaign, tmp_path):
    done = call("inject", campaign(row("S1", DROP), log="nothing.mcap"))
    assert (done.code, "no such log" in done.err) == (4, True)
    done = call("inject", tmp_path / "none.yaml")
    assert done.code == 2
    assert call("inject").code == 2


def test_a_source_that_the_log_lacks_names_its_line(call, campaign, write_pipeline):
    path = campaign(row("S1", DROP))
    write_pipeline(topic="/lidra")
    done = call("inject", path)
    assert done.code == 2
    assert "small.yaml:4: sources.lidar.topic: the log has no topic '/lidra'" in done.err


def test_ctrl_c_exits_130(call, campaign, monkeypatch):
    def interrupted(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(VirtualLoop, "run", interrupted)
    assert call("inject", campaign(row("S1", DROP))).code == 130


def test_the_schema_is_printed(call):
    assert call("inject", "--schema").data["title"] == "avrt campaign"


def test_the_object_has_the_documented_keys_and_no_others(call, campaign):
    path = campaign(row("B2", WRONG, more=", gap: none"), row("P3", RAISE, "{detect: {by: fault}}"))
    data = call("inject", path, "--json").data
    section = DOCS.partition("## The campaign object")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    keys = [key for line in rows for key in re.findall(r"`(\w+)", line.split("|")[1])]
    assert keys == list(data)
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section))))
    assert set(data["rows"][0]) | set(data["coverage"][0]) | set(data["pairs"]) <= words
    detected = data["rows"][1]["detected"]
    assert set(detected) == {"at_ns", "by", "what"} <= words
    assert set(data["rows"][0]["faults"][0]) == {item.name for item in fields(Injection)}
    clean = call("inject", path, "--clean", 8, "--json").data["clean"]
    assert set(clean) <= words
    path = campaign(row("B2", WRONG), row("B3", WRONG))
    pairs = call("inject", path, "--pairs", 2, "--json").data["pairs"]
    assert set(pairs["harmful"][0]) <= words
