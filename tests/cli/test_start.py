"""The command starts fast: nothing that is slow to import comes before it is needed."""

import subprocess
import sys

SLOW = ("torch", "scipy.optimize", "onnxruntime", "playwright")


def test_the_command_imports_nothing_slow_before_it_is_needed():
    code = f"import sys, avrt.cli; print([m for m in {SLOW} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
