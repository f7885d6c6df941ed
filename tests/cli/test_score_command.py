"""`avrt score RUN`: what it finds, what it refuses, and its documented object."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scored import write_pipeline as write_scored_pipeline
from scored import write_scored

REPORT = Path(__file__).parents[2] / "docs" / "report.md"


@pytest.fixture
def scored(call, settled, tmp_path):  # noqa: ARG001 - by its name
    """A log with truth and the record of a run of it."""
    run = tmp_path / "run.mcap"
    log = write_scored(tmp_path / "log.mcap")
    done = call("replay", log, "-p", write_scored_pipeline(tmp_path), "-o", run)
    assert done.code == 0, done.err
    return log, run


def only_line(done):
    assert done.out == ""
    assert done.err.count("\n") == 1
    return done.err


def test_detections_tracks_and_images_are_scored(call, scored):
    _, run = scored
    done = call("score", run, "--json")
    assert (done.code, done.err) == (0, "")
    data = done.data
    assert data["truth"]["scenes"] == 7
    assert data["seen"] == {"sweeps": 6, "points_min": 5}
    detect, track, look = (data["stages"][name] for name in ("detect", "track", "look"))
    assert "count" not in data["stages"]
    assert (detect["recall"]["count"], detect["recall"]["of"]) == (6, 6)  # the hidden one not
    assert (detect["precision"]["count"], detect["precision"]["of"]) == (6, 12)  # nor no class
    assert detect["position_m"]["max"] == pytest.approx(0.0, abs=1e-5)
    near = next(part for part in detect["by_range"] if part["from_m"] == 10)
    far = next(part for part in detect["by_range"] if part["from_m"] == 40)
    assert (near["recall"]["of"], far["precision"]["count"], far["precision"]["of"]) == (6, 0, 6)
    assert set(detect["by_class"]) == {"car"}
    assert (track["recall"]["count"], track["recall"]["of"]) == (4, 6)
    assert track["position_m"]["p50"] == pytest.approx(0.5, abs=1e-5)
    assert track["velocity_m_s"]["p50"] == pytest.approx(1.0)
    (car,) = track["objects"]
    assert (car["latency_ns"], car["tracks"], car["tracked"]) == (200_000_000, [0], 4)
    assert track["existence"]["tracks"] == 18
    assert {part["from"]: part["share"] for part in track["existence"]["bins"]} == {0.2: 0, 0.9: 1}
    assert look["recall"]["of"] > 0
    assert (look["precision"]["of"] - look["precision"]["count"]) >= 6


def test_the_table_says_the_same(call, scored):
    _, run = scored
    done = call("score", run)
    assert done.code == 0
    assert "detect: detections in 6 frames" in done.out
    assert "0.500 (0.254 to 0.746), 6 of 12" in done.out
    assert "seen to tracked ms" in done.out


def test_truth_may_come_from_another_file(call, scored, tmp_path):
    log, _ = scored
    bare, run = write_scored(tmp_path / "bare.mcap", with_truth=False), tmp_path / "bare_run.mcap"
    pipeline = tmp_path / "scored.yaml"
    assert call("replay", bare, "-p", pipeline, "-o", run).code == 0
    told = only_line(call("score", run))
    assert "has no ground truth" in told
    assert "--truth LOG" in told
    assert call("score", run).code == 2
    data = call("score", run, "--truth", log, "--json").data
    assert data["truth"]["file"] == str(log)
    assert data["stages"]["detect"]["recall"]["count"] == 6


def test_truth_of_another_drive_is_refused(call, scored, tmp_path, monkeypatch):
    _, run = scored
    monkeypatch.setattr("scored.START_NS", 1_600_000_000_000_000_000)
    other = write_scored(tmp_path / "other.mcap")
    done = call("score", run, "--truth", other)
    assert done.code == 2
    assert "of other times" in only_line(done)


def test_files_that_are_none(call, scored, tmp_path):
    log, run = scored
    empty = tmp_path / "empty.mcap"
    empty.write_bytes(b"")
    for arguments in ((empty,), (tmp_path / "none.mcap",), (log,), (run, "--truth", empty)):
        done = call("score", *arguments)
        assert done.code == 4
        only_line(done)


def test_a_cut_record_is_scored_as_far_as_it_goes(call, scored):
    _, run = scored
    whole = run.read_bytes()
    codes = []
    for part in range(1, 10):
        run.write_bytes(whole[: len(whole) * part // 10])
        done = call("score", run, "--json")
        codes.append(done.code)
        if done.code == 3:
            assert done.data["damage"]
    assert 3 in codes
    assert set(codes) <= {3, 4}


def test_the_keys_of_the_score_object(call, scored):
    _, run = scored
    data = call("score", run, "--json").data
    section = REPORT.read_text().partition("## A score")[2].partition("\n## ")[0]
    words = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", section))))

    def keys(item):
        if isinstance(item, list):
            for part in item:
                yield from keys(part)
        elif isinstance(item, dict):
            for name, part in item.items():
                yield name
                yield from keys(part)

    chosen = {*data["stages"], "car"}
    assert set(keys(data)) - chosen <= words
