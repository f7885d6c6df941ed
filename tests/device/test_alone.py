"""The device package and tools/gpu.py with torch, numpy and the standard library alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

ROOT = Path(__file__).parents[2]
OTHERS = (
    *("mcap", "rosbags", "psutil", "scipy", "threadpoolctl", "yaml", "PIL", "rich", "plotly"),
    *("onnxruntime", "onnx", "pytest", "hypothesis", "jsonschema"),
)

BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OTHERS:
            raise ModuleNotFoundError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
"""

SMALL_RUN = """
from avrt.device import CpuDevice, Executor, SimulatedDevice, conformance
from avrt.device import overlap, transfer
for device in (CpuDevice, SimulatedDevice):
    with Executor(device()) as executor:
        stream = executor.stream("s")
        executor.launch(stream, int)
        executor.synchronize(stream)
print("ran")
"""


def run_alone(code, *arguments):
    """Run code with all other packages blocked, in its child processes too."""
    with TemporaryDirectory() as site:
        Path(site, "sitecustomize.py").write_text(
            BLOCKER.replace("OTHERS", repr(OTHERS)), encoding="utf-8"
        )
        paths = (site, str(ROOT), str(ROOT / "tools"))
        return subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-c", f"import sys\n{code}", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            timeout=300,
            check=False,
        )


@pytest.mark.slow
def test_the_other_packages_are_blocked_here():
    ended = run_alone("import mcap")
    assert "ModuleNotFoundError: mcap is blocked" in ended.stderr


@pytest.mark.slow
def test_devices_need_torch_and_nothing_else():
    ended = run_alone(SMALL_RUN)
    assert ended.stdout == "ran\n", ended.stderr


def run_script(*arguments):
    """Run tools/gpu.py, its children too, without the other packages."""
    return run_alone("import gpu; sys.exit(gpu.main(sys.argv[1:]))", *arguments)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_the_gpu_script_runs_without_a_gpu_and_says_so(tmp_path):
    out = tmp_path / "gpu.json"
    ended = run_script("--out", str(out), "--budget", "100")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found == json.loads(out.read_text())
    sections = found["sections"]
    for name in ("conformance_simulated", "conformance_cpu"):
        assert sections.pop(name)["outcome"] == "done"
    assert set(sections) == {
        *("conformance_cuda", "hops", "streams", "failover", "sanitizer", "soak"),
    }
    assert all(
        section == {"outcome": "not run", "reason": "no CUDA device"}
        for section in sections.values()
    )
    assert "cuda: 0 passed, 0 FAILED, 43 not run" in ended.stderr
    assert "simulated: 43 passed, 0 FAILED, 0 not run" in ended.stderr


@pytest.mark.slow
def test_the_gpu_script_can_be_rehearsed(tmp_path):
    sections = ("hops", "streams", "failover", "sanitizer", "soak")
    out = str(tmp_path / "gpu.json")
    ended = run_script("--rehearse", "--budget", "5", "--out", out, "--only", *sections)
    found = json.loads(ended.stdout)["sections"]
    assert {name: section["outcome"] for name, section in found.items()} == dict.fromkeys(
        sections, "rehearsed"
    ), ended.stderr
    assert found["soak"]["bytes_grown"] == 0
    assert found["sanitizer"]["right"]["ours"] == 0
    assert found["sanitizer"]["mutant"]["ours"] > 0


@pytest.mark.slow
def test_a_section_that_hangs_is_ended_and_says_where():
    code = """
import gpu, time
gpu.START_S = 0.5
def hanging_section(make_device, budget_s):
    time.sleep(60)
gpu.SECTIONS["hops"] = gpu.Section(hanging_section, 0.1, "cpu")
gpu.main(["--child", "hops", "--budget", "1"])
"""
    ended = run_alone(code)
    assert ended.returncode == 1
    assert "hanging_section" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.slow
def test_what_a_section_raises_is_its_outcome_and_a_lost_process_is_one_too():
    code = """
import gpu, json, os
gpu.SECTIONS["hops"] = gpu.Section(lambda *_: 1 / 0, 0.1, "cpu")
print(json.dumps(gpu.measured("hops", 300.0, rehearse=False)["reason"]))
gpu.__file__ = "/dev/null"
print(json.dumps(gpu.isolated("hops", 300.0, rehearse=False)))
"""
    ended = run_alone(code)
    raised, lost = map(json.loads, ended.stdout.splitlines())
    assert raised == "ZeroDivisionError: division by zero"
    assert lost == {"outcome": "FAILED", "reason": "the process ended with 0"}
