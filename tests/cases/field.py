"""The collection of field reports: its generators make the inputs and the right answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Record
from cases.reference import SHARED

FOLDER = SHARED / "cases" / "field"


def generated(folder, generator, names):
    """Return a folder with the inputs and answers of these reports; skips where they are absent."""
    if not FOLDER.is_dir():
        pytest.skip(f"the field reports are not here: {FOLDER}")
    subprocess.run(  # noqa: S603 - our own generator
        [sys.executable, generator, str(folder), *names],
        cwd=FOLDER,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
    )
    return folder


def given(folder, name, part="*"):
    """Return the input of a report."""
    (path,) = folder.glob(f"{name}_{part}.json")
    return json.loads(path.read_text(encoding="utf-8"))


def answer(folder, name):
    """Return the right answer of a report."""
    return json.loads((folder / "_expected" / f"{name}.json").read_text(encoding="utf-8"))


def records(path, kind):
    """Return what the kernel recorded of one kind in a run."""
    with RunFile(path) as run:
        entries = [parse_entry(line.text) for line in run.journal()]
    commands = [command for entry in entries for command in entry.commands]
    found = [command.record for command in commands if isinstance(command, Record)]
    return [record for record in found if isinstance(record, kind)]
