"""The command in a process of its own: pipes, signals and what is left behind."""

import json
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest


def start(*arguments, **options):
    command = [sys.executable, "-m", "avrt", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # noqa: S603 - our own code


@pytest.mark.slow
def test_python_m_avrt_is_the_command():
    process = start("--version")
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, f"avrt {version('avrt')}\n".encode(), b"")


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_a_reader_that_leaves_early_is_no_error(record, as_json):
    process = start("report", record, *["--json"] * as_json)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, b"")


@pytest.mark.slow
def test_a_full_stdout_exits_2(record):
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        process = subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-m", "avrt", "report", str(record)],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert process.returncode == 2
    assert process.stderr == b"avrt: stdout: No space left on device\n"


@pytest.mark.slow
def test_ctrl_c_exits_130_with_a_whole_record(call, make_drive, write_pipeline, tmp_path):
    (tmp_path / "waits.py").write_text(
        "import signal, threading\n"
        "def it(cloud):\n"
        "  if cloud.stamp.sequence == 20:\n"
        "    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
        "    threading.Event().wait()\n"
        "  return cloud.payload\n"
    )
    path = write_pipeline(run="waits.py:it")
    out = tmp_path / "run.mcap"
    options = ("-p", path, "-o", out, "--json", "--hang-timeout", "1 s")
    process = start("replay", make_drive(60), *options)
    stdout, _ = process.communicate()
    assert process.returncode == 130
    data = json.loads(stdout)
    assert data["interrupted"]
    assert data["jobs"]["open"] == 0
    assert data["stages"]["it"]["reasons"] == {"aborted: stop": 1}
    assert data["jobs"]["met"] == 20
    verified = call("verify", out, "--json")
    assert verified.code == 0
    report = call("report", out, "--json")
    assert report.data == data


@pytest.mark.slow
def test_what_a_hung_stage_leaves_does_not_keep_the_process(make_drive, write_pipeline, tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import threading\ndef it(cloud):\n  threading.Event().wait()\n"
    )
    path = write_pipeline(run="hangs.py:it")
    process = start("replay", make_drive(3), "-p", path, "--hang-timeout", "10 ms", "--json")
    out, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["hangs"] == 1


def test_signals_are_as_they_were_after_a_run(record):
    assert record.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
