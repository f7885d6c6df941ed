"""A pipeline file with its stages beside it, and the command called in this process."""

import json
import logging

import pytest

from avrt.cli import main

STAGES = """
import avrt

def count(cloud):
    print("a stage prints")
    return cloud.payload.count

def fails(cloud):
    raise ValueError("boom")

class Threshold(avrt.Stage):
    def __init__(self, least=0):
        self.least = least

    def process(self, cloud):
        return cloud.payload.count > self.least
"""
PIPELINE = """
pipeline: small
sources:
  lidar: {{type: lidar, topic: {topic}, rate: 10 Hz}}
stages:
  it: {{run: "{run}", inputs: {{cloud: lidar}}, wcet: {wcet}, deadline: {deadline}{more}}}
"""


@pytest.fixture
def write_pipeline(tmp_path):
    """Return a function that writes a pipeline file and returns its path."""

    def write(
        *, run="stages.py:count", topic="/lidar", wcet="5 ms", deadline="50 ms", more="",
        name="small.yaml",
    ):  # fmt: skip
        (tmp_path / "stages.py").write_text(STAGES)
        path = tmp_path / name
        path.write_text(
            PIPELINE.format(run=run, topic=topic, wcet=wcet, deadline=deadline, more=more)
        )
        return path

    return write


class Called:
    """What a command printed and how it exited."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    @property
    def data(self):
        """The one JSON object on stdout."""
        data = json.loads(self.out)
        assert isinstance(data, dict)
        return data


@pytest.fixture
def call(capsys, monkeypatch):
    """Return a function that calls `avrt ARGUMENTS` in this process."""
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)

    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = error.code
        captured = capsys.readouterr()
        return Called(code, captured.out, captured.err)

    return run


@pytest.fixture
def record(call, make_drive, write_pipeline, tmp_path):
    """The record of a small run."""
    path = tmp_path / "run.mcap"
    assert call("replay", make_drive(6), "-p", write_pipeline(), "-o", path).code == 0
    return path
