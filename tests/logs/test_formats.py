"""Formats of installed packages: the example of docs/formats.md, and packages that are broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from avrt.errors import InputError, SpecError
from avrt.logs import open_log
from avrt.logs.formats import BUILT_IN, GROUP

ROOT = Path(__file__).parents[2]
LINES_MAX = 100
BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def install(folder, entries, name="track_drive"):
    """Put a package where Python finds it, as pip would: modules beside what it says of itself."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")


@pytest.fixture
def package(tmp_path):
    """Write the files of the documentation's example, and install them."""
    text = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    files = dict(BLOCK.findall(text))
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    project = tomllib.loads(files["pyproject.toml"])["project"]
    install(tmp_path, project["entry-points"][GROUP])
    return tmp_path


def run(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "COLUMNS": "200"}
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-m", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_example_is_short(package):
    count = sum(len(path.read_text().splitlines()) for path in package.glob("track_drive.py"))
    assert 0 < count < LINES_MAX


@pytest.mark.slow
def test_the_example_keeps_to_the_rules_and_every_command_reads_it(package):
    found = run(package, "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=made")
    assert found.returncode == 0, found.stdout
    drive = next((package / "made").glob("test_messages_come_in_*0"))
    info = run(package, "avrt", "info", str(drive))
    assert info.returncode == 0, info.stderr
    assert "test track drive" in info.stdout
    assert "nothing is odd" in info.stdout
    replay = run(package, "avrt", "replay", str(drive))
    assert replay.returncode == 0, replay.stderr
    assert "input /lidar/points: 5 of 5 delivered" in replay.stdout


def test_a_path_of_no_format_is_told_those_of_packages_too(package, monkeypatch):
    monkeypatch.syspath_prepend(package)
    (package / "empty").mkdir()
    with pytest.raises(InputError, match="rosbag2 folder or file or a drive on our test track"):
        open_log(package / "empty")


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("1 / 0", "broken:FORMAT cannot be loaded: ZeroDivisionError: division by zero"),
        ("FORMAT = 3", "expected broken:FORMAT to be an avrt.logs.LogFormat, found 3"),
        ("", "broken:FORMAT cannot be loaded: AttributeError"),
    ],
)
def test_a_package_that_is_broken_is_named_and_touches_no_other_log(
    tmp_path, monkeypatch, write_log, code, what
):
    (tmp_path / "broken.py").write_text(code)
    install(tmp_path, {"mine": "broken:FORMAT"}, "broken")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    (tmp_path / "a.csv").write_text("1,2,3")
    with pytest.raises(SpecError, match=what) as caught:
        open_log(tmp_path / "a.csv")
    assert caught.value.key == (GROUP, "mine")
    with open_log(write_log(tmp_path / "log.mcap")) as log:
        assert log.format == "MCAP"


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.name)
def test_no_format_takes_a_path_for_its_own_that_is_of_none(tmp_path, one):
    (tmp_path / "words.txt").write_text("0 1 of many words, none of which is a label\n")
    (tmp_path / "folder").mkdir()
    for name in ("words.txt", "folder", "missing", "missing/further", "folder/0000"):
        assert not one.recognises(tmp_path / name)
