"""docs/pipeline.md names every key that a pipeline file may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from avrt.config import calibration, pipeline, stage_keys

TEXT = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")
TABLES = {
    "top level": pipeline.PIPELINE_KEYS,
    "device": pipeline.DEVICE_KEYS,
    "source": pipeline.SOURCE_KEYS,
    "stage": stage_keys.STAGE_KEYS,
    "chain": pipeline.CHAIN_KEYS,
    "calibration": calibration.CALIBRATION_KEYS,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_documented(name):
    section = next(part for part in TEXT.split("\n## ") if name in part.splitlines()[0].lower())
    missing = [key.name for key in TABLES[name] if f"`{key.name}`" not in section]
    assert missing == []
