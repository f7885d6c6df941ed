"""The campaigns come out as they expect, and docs/fault_tolerance.md says what they show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from avrt.units import duration_ns

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "fault_tolerance.md").read_text(encoding="utf-8")
CAMPAIGNS = (
    "clocks", "copies", "devices", "eyes", "gaps", "objects", "pair", "planner", "sensors",
    "turned",
)  # fmt: skip


def rows_of(campaign):
    """Return the rows of the table of a campaign, each by its columns."""
    found = re.search(rf"(\| row of {campaign} \|.*)\n\|[-|]+\|\n((?:\|.*\n)+)", DOC)
    if found is None:
        return []
    head, *lines = (
        [c.strip() for c in t[1:-1].split("|")] for t in "\n".join(found.groups()).splitlines()
    )
    return [dict(zip(["id", *head[1:]], line, strict=True)) for line in lines]


def test_there_are_tables():
    assert len(rows_of("copies")) > 4
    assert len(rows_of("devices")) > 2
    assert len(rows_of("pair")) == len(rows_of("objects")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_row_of_a_campaign_is_as_expected_and_as_told(call, name):
    done = call("inject", ROOT / "scenarios" / "faults" / f"{name}.yaml", "--json")
    campaign = json.loads(done.out)
    assert [(row["id"], row["failure"]) for row in campaign["rows"] if row["failure"]] == []
    assert (done.code, campaign["met"]) == (0, True)
    shown = {row["id"]: row for row in campaign["rows"]}
    for told in rows_of(name):
        row = shown[told["id"]]
        assert told["what"] == row["about"]
        assert told["outcome"] == row["outcome"]
        assert told["told by"] == row["detected"]["by"]
        assert duration_ns(told["after"]) == row["detected_ns"]
        assert told.get("levels", " > ".join(row["levels"])) == " > ".join(row["levels"])
        for count, key in (("lost", "lost"), ("wrong", "incorrect")):
            assert int(told.get(count, row[key])) == row[key]
    gaps = [row["gap_ns"] for row in campaign["rows"] if row["outcome"] != "hang"]
    assert max(gaps) < duration_ns("500 ms")
