"""`avrt demo --drive-only`: it says what it wrote, in either form."""

import pytest


@pytest.mark.slow
def test_a_drive_alone_is_told(call, tmp_path):
    arguments = ("demo", "--drive-only", "--seconds", "1", "-o", tmp_path)
    drive = tmp_path / "drive.mcap"
    assert call(*arguments, "--json").data == {"drive": str(drive)}
    assert call(*arguments).out == f"drive {drive}\n"
    assert drive.stat().st_size > 0


@pytest.mark.parametrize("seconds", ["nan", "0.9", "60.1", "-1"])
def test_a_drive_too_short_or_too_long_is_refused(call, tmp_path, seconds):
    done = call("demo", "--seconds", seconds, "-o", tmp_path / "new")
    assert (done.code, done.out) == (2, "")
    assert "expected 1 to 60 seconds" in done.err
    assert not (tmp_path / "new").exists()


def test_a_scene_that_is_none_makes_no_folder(call, tmp_path):
    done = call("demo", "--scene", "rain", "-o", tmp_path / "new")
    assert (done.code, done.out) == (2, "")
    assert "no scene 'rain'" in done.err
    assert not (tmp_path / "new").exists()
