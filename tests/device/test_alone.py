"""The device package and tools/gpu.py with torch, numpy and the standard library alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    text = BLOCKER.replace("OTHERS", repr(OTHERS)) + code
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tools'}"}
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_devices_need_torch_and_nothing_else():
    ended = run_alone(SMALL_RUN)
    assert ended.stdout == "ran\n", ended.stderr


@pytest.mark.slow
def test_the_gpu_script_runs_without_a_gpu_and_says_so(tmp_path):
    out = tmp_path / "gpu.json"
    ended = run_alone("import gpu; sys.exit(gpu.main(sys.argv[1:]))", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found == json.loads(out.read_text())
    sections = found["sections"]
    assert sections.pop("conformance")["outcome"] == "done"
    assert len(sections) == 5
    import torch  # noqa: PLC0415

    if not torch.cuda.is_available():
        assert {section["outcome"] for section in sections.values()} == {"not run"}
        assert {section["reason"] for section in sections.values()} == {"no CUDA device"}
        assert "cuda: 0 passed, 0 FAILED, 41 not run" in ended.stderr


@pytest.mark.slow
def test_the_gpu_script_can_be_rehearsed(tmp_path):
    code = "import gpu; sys.exit(gpu.main(sys.argv[1:]))"
    sections = ("hops", "streams", "failover", "soak")
    out = str(tmp_path / "gpu.json")
    ended = run_alone(code, "--rehearse", "--budget", "5", "--out", out, "--only", *sections)
    found = json.loads(ended.stdout)["sections"]
    assert {name: section["outcome"] for name, section in found.items()} == dict.fromkeys(
        sections, "rehearsed"
    ), ended.stderr
    assert found["soak"]["bytes_grown"] == 0
