"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def call(folder, *command):
    done = subprocess.run(  # noqa: S603 - this interpreter, the README's own text
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_stage_of_the_readme_can_be_written_tested_and_run(tmp_path):
    stage, unit_test, script = blocks("python")
    (pipeline,) = blocks("yaml")
    for name, text in (
        ("mystage.py", stage),
        ("test_mystage.py", unit_test),
        ("near_in_python.py", script),
        ("near.yaml", pipeline),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    call(tmp_path, "-m", "avrt", "demo", "--out", ".", "--seconds", "1", "--drive-only")
    commands = [line for text in blocks("") for line in text.splitlines() if "near.yaml" in line]
    assert len(commands) == 2
    for line in commands:
        call(tmp_path, "-m", *line.split())
    call(tmp_path, "-m", "pytest", "-q", "test_mystage.py")
    assert "9 met" in call(tmp_path, "near_in_python.py")


def test_every_file_that_the_readme_names_is_there():
    root = Path(__file__).parents[1]
    named = re.findall(r"\]\((docs/[\w./]+|[\w]+\.md)\)", README)
    named += re.findall(r"`((?:avrt|pipelines|tools)/[\w/.]+)`", README)
    assert len(named) > 4
    assert [name for name in named if not (root / name).exists()] == []


def test_every_file_that_the_map_of_the_code_names_is_there():
    root = Path(__file__).parents[1]
    text = (root / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`(\w+(?:/\w+)+\.py)`", text)
    assert len(named) > 100
    assert [n for n in named if not ((root / "avrt" / n).exists() or (root / n).exists())] == []
