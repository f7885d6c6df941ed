"""`docs/check.md` names the keys of the object of `avrt check --json`, and no others."""

import re
from pathlib import Path

import pytest

from avrt.config.schema import pipeline_schema

CHECK = Path(__file__).parents[2] / "docs" / "check.md"
CHAIN = "\nchains:\n  see: {path: [lidar, it], reaction: 1 s}\n"


def rows():
    """Return (names of the key column, names of the whole row) of the table of the object."""
    table = CHECK.read_text(encoding="utf-8").partition("## The object")[2]
    found = []
    for line in table.splitlines():
        if line.startswith("| `"):
            keys = re.findall(r"`([^`]+)`", line.split("|")[1])
            found.append((keys, set(re.findall(r"`([^`]+)`", line))))
    return found


@pytest.fixture
def checked(call, write_pipeline):
    """The objects of a pipeline that meets its promises and of one that does not."""
    objects = []
    for wcet in ("5 ms", "60 ms"):
        path = write_pipeline(wcet=wcet)
        path.write_text(path.read_text() + CHAIN)
        objects.append(call("check", path, "--json").data)
    return objects


def test_the_documented_keys_are_those_of_the_object(checked):
    documented = [re.split(r"[.{\[]", key)[0] for keys, _ in rows() for key in keys]
    for data in checked:
        assert set(documented) == set(data)


def test_the_keys_of_every_part_are_documented(checked):
    good, bad = checked
    parts = {
        "devices{name}": good["devices"]["cpu"],
        "stages{name}": good["stages"]["it"],
        "chains{name}": good["chains"]["see"],
        "sensitivity": good["sensitivity"],
        "remedies[]": bad["remedies"][0],
    }
    named = {key: names for keys, names in rows() for key in keys}
    for part, value in parts.items():
        assert set(value) | {part} <= named[part], part
    assert set(good["stages"]["it"]["response"]) <= named["stages{name}"]


def test_verdicts_exit_codes_and_remedies(call, write_pipeline, checked):
    good, bad = checked
    assert (good["verdict"], bad["verdict"]) == ("meets", "misses")
    assert bad["sensitivity"] is None
    assert good["remedies"] == []
    path = write_pipeline(wcet="60 ms")
    done = call("check", path)
    assert done.code == 1
    assert "enough would be: wcet of it to at most 50 ms" in done.out
    path = write_pipeline(wcet="50 ms")
    done = call("check", path)
    assert (done.code, done.err) == (0, "")
    assert "all wcets may be 1 times as long" in done.out
    quick = call("check", path, "--quick", "--json").data
    assert (quick["sensitivity"], quick["remedies"]) == (None, [])


def test_a_pipeline_of_which_too_little_is_known_is_no_failure(call, write_pipeline):
    path = write_pipeline()
    path.write_text(path.read_text().replace(", rate: 10 Hz", ""))
    done = call("check", path)
    assert done.code == 0
    assert "whether it meets all its deadlines is not known" in done.out
    assert call("check", path, "--json").data["stages"]["it"]["response"]["label"] == "unknown"


def test_the_schema_is_printed_without_a_pipeline(call):
    done = call("check", "--schema")
    assert (done.code, done.err) == (0, "")
    assert done.data == pipeline_schema()


def test_a_check_of_nothing_says_what_is_missing(call):
    done = call("check")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("avrt check: error: give a PIPELINE, or --schema\n")


LADDER = Path(__file__).parents[2] / "pipelines" / "ladder.yaml"


@pytest.mark.slow
def test_every_level_of_a_ladder_is_judged(call):
    done = call("check", LADDER, "--quick", "--json")
    data = done.data
    assert (done.code, data["verdict"]) == (0, "meets")
    assert list(data["levels"])[::5] == ["four_gpus", "stop"]
    assert data["levels"]["cpu_only"]["utilisation"]["cpu"] == pytest.approx(0.99)


@pytest.mark.slow
def test_a_level_that_misses_makes_the_whole_miss(call, tmp_path):
    text = LADDER.read_text().replace("wcet: 33 ms", "wcet: 43 ms")
    (tmp_path / "p.yaml").write_text(text)
    done = call("check", tmp_path / "p.yaml", "--quick")
    assert done.code == 1
    assert "at level cpu_only: front_detect can take 43 ms of 40 ms" in done.out


def test_the_ladder_is_drawn(call):
    done = call("check", LADDER, "--diagram")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("stateDiagram-v2\n")


def test_without_a_ladder_nothing_is_drawn(call):
    done = call("check", LADDER.with_name("hello.yaml"), "--diagram")
    assert (done.code, done.err) == (2, "avrt: the pipeline has no 'ladder' to draw\n")
