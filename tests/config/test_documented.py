"""docs/pipeline.md, scenario.md and inject.md name every key that such a file may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from avrt.config import (
    arrivals,
    calibration,
    campaign,
    execution,
    expectations,
    expected,
    faults,
    guard,
    injections,
    ladder,
    overheads,
    pipeline,
    scenario,
    stage_keys,
)
from avrt.model.campaign import DETECTORS, OUTCOMES

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "pipeline.md").read_text(encoding="utf-8")
INJECT = (DOCS / "inject.md").read_text(encoding="utf-8")
SCENARIO = (DOCS / "scenario.md").read_text(encoding="utf-8")
TABLES = {
    "top level": pipeline.PIPELINE_KEYS,
    "device": (*pipeline.DEVICE_KEYS, *pipeline.SUPPLY_KEYS),
    "stage": (*stage_keys.STAGE_KEYS, *stage_keys.VARIANT_KEYS),
    "source": (*pipeline.SOURCE_KEYS, *guard.GUARD_KEYS),
    "chain": pipeline.CHAIN_KEYS,
    "a table": pipeline.TABLE_KEYS,
    "a ladder": (*ladder.LADDER_KEYS, *ladder.LEVEL_KEYS, *ladder.STAGE_LEVEL_KEYS),
    "calibration": calibration.CALIBRATION_KEYS,
}
SCENARIO_TABLES = {
    "top level": [key.name for key in scenario.SCENARIO_KEYS],
    "execution": [
        *execution.KINDS,
        execution.DEVICES,
        *(key.name for key in execution.MEASURED_KEYS),
    ],
    "overheads": [key.name for key in overheads.KEYS],
    "arrivals": [key.name for key in arrivals.ARRIVAL_KEYS],
    "faults": [*faults.FAULT_KEYS, *(k.name for keys in faults.FAULT_KEYS.values() for k in keys)],
    "expectations": [
        key.name
        for keys in (
            expectations.EXPECT_KEYS,
            expectations.WINDOW_KEYS,
            expectations.ALL_KEYS,
            expectations.STAGE_KEYS,
            expectations.CHAIN_KEYS,
        )
        for key in keys
    ],
}
INJECT_TABLES = {
    "top level": [key.name for key in (*campaign.CAMPAIGN_KEYS, *campaign.WORLD_KEYS)],
    "rows": [key.name for key in campaign.ROW_KEYS],
    "faults": [
        *(key.name for key in injections.FAULT_KEYS),
        *(kind for kinds in injections.KINDS.values() for kind in kinds),
    ],
    "expectations": [
        *(key.name for key in (*expected.EXPECT_KEYS, *expected.DETECT_KEYS)),
        *OUTCOMES,
        *DETECTORS,
    ],
}


@pytest.mark.parametrize("name", INJECT_TABLES)
def test_every_key_and_word_of_a_campaign_is_documented(name):
    section = next(p for p in INJECT.split("\n## ") if name in p.splitlines()[0].lower())
    words = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", section))))
    assert [key for key in INJECT_TABLES[name] if key not in words] == []


@pytest.mark.parametrize("name", SCENARIO_TABLES)
def test_every_key_of_a_scenario_is_documented(name):
    section = next(p for p in SCENARIO.split("\n## ") if name in p.splitlines()[0].lower())
    words = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", section))))
    assert [key for key in SCENARIO_TABLES[name] if key not in words] == []


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_documented(name):
    section = next(part for part in TEXT.split("\n## ") if name in part.splitlines()[0].lower())
    missing = [key.name for key in TABLES[name] if f"`{key.name}`" not in section]
    assert missing == []
