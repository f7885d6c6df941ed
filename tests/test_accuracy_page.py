"""The page of accuracies says what it could not score, and is what the tool writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared/data"

pytestmark = pytest.mark.slow


@pytest.fixture
def accuracy():
    sys.path.append(str(ROOT / "tools"))
    import accuracy  # noqa: PLC0415

    return accuracy


def test_what_is_missing_is_told(accuracy, tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "DRIVES", [one for one in accuracy.DRIVES if one.needs])
    text = "\n".join(accuracy.page(tmp_path))
    assert "Not scored: kitti_object_labelled is not there." in text
    assert "Not scored: kitti_object_labelled, models is not there." in text
    assert "Not scored: kitti_tracking_text is not there." in text


@pytest.mark.skipif(not (DATA / "kitti_object_labelled").is_dir(), reason="no ../shared/data")
def test_the_shipped_page_has_the_figures_of_a_fresh_score(accuracy):
    page = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    found = accuracy.score(next(one for one in accuracy.DRIVES if one.needs), DATA.resolve())
    lines = list(accuracy._stage("lidar_detect", found.stages["lidar_detect"]))
    assert len(lines) > 10
    assert [line for line in lines if line not in page] == []
