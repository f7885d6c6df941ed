"""Pipelines of functions over a small log, and what came of each of their jobs."""

import pytest

import avrt
from avrt.drivers import replay
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Record
from avrt.model.records import JobRecord


def _pipeline(*sources, slots=4, **keys):
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": slots}}, **keys)
    for name in sources or ("lidar",):
        pipeline.source(name, type="lidar", topic=f"/{name}", rate="10 Hz")
    return pipeline


@pytest.fixture
def make_pipeline():
    """Return a function that begins a pipeline of LiDAR sources, each of its own topic."""
    return _pipeline


def _read_records(path, kind=JobRecord):
    with RunFile(path) as run:
        entries = [parse_entry(line.text) for line in run.journal()]
    commands = [command for entry in entries for command in entry.commands]
    records = [command.record for command in commands if isinstance(command, Record)]
    return [record for record in records if isinstance(record, kind)]


@pytest.fixture
def read_records():
    """Return a function that gives a run's records of one kind, jobs by default."""
    return _read_records


@pytest.fixture
def read_ends():
    """Return a function that gives the (outcome, reason) of a task's jobs, by index."""

    def read(path, task):
        jobs = sorted((j for j in _read_records(path) if j.task == task), key=lambda j: j.index)
        return [(job.outcome, job.reason) for job in jobs]

    return read


@pytest.fixture
def workers(monkeypatch):
    """The workers of the replays of this test, each with the most messages it ever held."""
    made = []

    class Spied(replay.StageWorker):
        def __init__(self, *arguments, **keys):
            super().__init__(*arguments, **keys)
            self.messages_max = 0
            made.append(self)

        def obey(self, command, at_ns):
            self.messages_max = max(self.messages_max, len(self._messages) + len(self._drafts))
            return super().obey(command, at_ns)

    monkeypatch.setattr(replay, "StageWorker", Spied)
    return made
