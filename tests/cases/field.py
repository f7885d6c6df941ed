"""The collection of field reports: its generators make the inputs and the right answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from avrt.logs.decode import parse
from avrt.logs.reader import open_log
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.logs.ros.message import cloud_message, cloud_rows
from avrt.logs.ros.types import CLOUD, known_types
from avrt.logs.writer import LogWriter
from avrt.model.commands import Record
from avrt.payload import PointCloud
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


def as_clouds(path, out):
    """Copy a log; what has a header and no source reads becomes a cloud with that very header.

    The headers of the reports stay as they are, to the nanosecond; log times and order, too.
    """
    point = cloud_rows(PointCloud(np.ones((1, 3), np.float32), None, None))
    with open_log(path) as log, LogWriter(out) as writer:
        store = known_types()
        for raw in log.messages():
            if raw.type != "geometry_msgs/msg/PointStamped":
                writer.add_raw(raw.topic, raw.type, raw.log_ns, bytes(raw.data))
                continue
            cloud = cloud_message(parse(raw).header, point)
            data = bytes(store.serialize_cdr(cloud, CLOUD))
            writer.add_raw(raw.topic, CLOUD, raw.log_ns, data)
    return out


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
