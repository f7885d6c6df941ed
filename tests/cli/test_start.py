"""The command starts fast: nothing that is slow to import comes before it is needed."""

import subprocess
import sys

from avrt.__main__ import main

SLOW = ("torch", "scipy.optimize", "onnxruntime", "playwright")


def test_the_command_imports_nothing_slow_before_it_is_needed():
    code = f"import sys, avrt.cli; print([m for m in {SLOW} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


class Interrupted:
    """Finds modules until somebody presses Ctrl-C."""

    @staticmethod
    def find_spec(*_):
        raise KeyboardInterrupt


def test_an_interrupt_while_the_command_is_imported_exits_130(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "avrt.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted])
    assert main() == 130
    assert capsys.readouterr().err == "avrt: interrupted\n"
