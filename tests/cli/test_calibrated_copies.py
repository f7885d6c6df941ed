"""Copies in several precisions: refused unmeasured, measured by `avrt profile`, then agreeing."""

import pytest
import yaml

from avrt.config import profile

COPIES = '''
import torch

from avrt import Stage


class Layer(Stage):
    """One layer of a network, the same weights in every copy."""

    dtype = torch.float32

    def warm(self):
        made = torch.Generator().manual_seed(1)
        self.weights = torch.randn((3, 8), generator=made).to(self.dtype)

    def process(self, cloud):
        points = torch.tensor(cloud.payload.xyz).to(self.dtype)
        return torch.relu(points @ self.weights).mean(0).float().numpy()


class Bfloat16(Layer):
    dtype = torch.bfloat16


class Float16(Layer):
    dtype = torch.float16
'''
PIPELINE = """
pipeline: precise
devices: {{cpu: {{type: cpu, slots: 3}}}}
sources: {{lidar: {{type: lidar, topic: /lidar, rate: 10 Hz}}}}
stages:
  see:
    inputs: {{cloud: lidar}}
    wcet: 20 ms
    deadline: 90 ms
    redundancy: {{copies: 3, runs: [{}]{}}}
"""
RUNS = '"copies.py:Layer", "copies.py:Bfloat16", "copies.py:Float16"'


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the pipeline with more keys of its redundancy."""

    def make(more=""):
        (tmp_path / "copies.py").write_text(COPIES)
        path = tmp_path / "precise.yaml"
        path.write_text(PIPELINE.format(RUNS, f", {more}" if more else ""))
        return path

    return make


def votes(call, drive, pipeline):
    done = call("replay", drive, "-p", pipeline, "--json")
    assert done.code == 0
    return done.data["stages"]["see"]["votes"]


def test_copies_of_different_code_are_refused_unless_it_is_said_how_far_they_differ(call, write):
    done = call("check", write())
    assert done.code == 2
    assert "precise.yaml:10: stages.see.redundancy: its copies run different code" in done.err
    assert "avrt profile -o FILE" in done.err
    assert call("check", write("tolerance: 1e-5")).code == 0
    assert call("check", write("vote: exact")).code == 0


def test_a_profile_says_how_far_copies_differ_and_a_pipeline_takes_it(
    call, write, make_drive, tmp_path, monkeypatch
):
    monkeypatch.setattr(profile, "FRAMES_MIN", 30)
    drive, out = make_drive(30, points=16), tmp_path / "see.yaml"
    done = call("profile", drive, "-p", write("tolerance: 1e-5"), "-o", out, "--json")
    copies = done.data["stages"]["see"]["copies"]
    assert copies["frames"] == 30
    assert copies["tolerance"] == 10 * copies["largest"] > 1e-3
    kept = yaml.safe_load(out.read_text())
    assert kept["stages"]["see"]["copies"] == copies
    assert {"date", "processor", "log", "torch"} <= set(kept["conditions"])
    other = make_drive(60, points=16, seed=1, name="other.mcap")
    assert votes(call, other, write("tolerance: 1e-5"))["blamed"]
    calibrated = votes(call, other, write("tolerance: see.yaml"))
    assert (calibrated["verdicts"], calibrated["blamed"]) == ({"unanimous": 60}, {})


def test_what_was_measured_is_told(call, write, make_drive):
    done = call("profile", make_drive(3), "-p", write("tolerance: 1e-5"))
    assert "see: outputs of its copies lie at most" in done.out
    assert "in 3 frames; calibrated tolerance" in done.out


@pytest.mark.slow
def test_healthy_copies_in_other_precisions_raise_no_alarm_in_10_000_frames(
    call, write, make_drive, tmp_path
):
    """Row B11 of the list of faults."""
    clean = make_drive(1_000, points=16)
    assert call("profile", clean, "-p", write("tolerance: 1e-5"), "-o", tmp_path / "see.yaml")
    drive = make_drive(10_000, points=16, seed=1, name="long.mcap")
    calibrated = votes(call, drive, write("tolerance: see.yaml"))
    assert (calibrated["verdicts"], calibrated["blamed"]) == ({"unanimous": 10_000}, {})
    assert sum(votes(call, clean, write("tolerance: 1e-5"))["blamed"].values()) > 900
