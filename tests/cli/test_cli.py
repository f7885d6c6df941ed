"""Every command with right and wrong input: what it prints and the code it exits with."""

import shutil
from importlib.metadata import version

import numpy as np
import pytest

from avrt import cli
from avrt.cli import COMMANDS

NAMES = (
    "demo", "check", "simulate", "replay", "run", "verify", "report", "score", "whatif", "compare",
    "inject", "profile", "doctor", "info", "recover",
)  # fmt: skip
READERS = ("verify", "report")


def damage_journal(path):
    """Change one decision in a run record."""
    data = path.read_bytes()
    assert data.count(b'"outcome":"met"')
    path.write_bytes(data.replace(b'"outcome":"met"', b'"outcome":"mat"', 1))
    return path


# Usage


def test_help_names_every_command(call):
    done = call("--help")
    assert done.code == 0
    assert len(COMMANDS) == len(NAMES)
    for name in NAMES:
        assert name in done.out


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(call, name):
    done = call(name, "--help")
    assert done.code == 0
    assert f"usage: avrt {name}" in done.out
    assert "--json" in done.out


def test_the_version_is_that_of_the_package(call):
    assert call("--version").out == f"avrt {version('avrt')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("replay",),
        ("info",),
        ("check",),
        ("verify", "a", "b"),
        ("report", "--nonsense", "x"),
        ("demo", "--seconds", "many"),
        ("demo", "--seed", "-1"),
    ],
    ids=lambda arguments: "_".join(arguments) or "nothing",
)
def test_wrong_usage_exits_2_and_prints_nothing_on_stdout(call, arguments):
    done = call(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "usage: avrt" in done.err


def only_line(text):
    assert text.startswith("avrt: ")
    assert text.endswith("\n")
    assert "Traceback" not in text
    return text


# check


def test_a_sound_pipeline(call, write_pipeline):
    path = write_pipeline()
    done = call("check", path)
    assert (done.code, done.err) == (0, "")
    assert f"{path}: sound" in done.out
    assert call("check", path, "--json").data["warnings"] == []


def test_a_pipeline_that_will_be_late_is_sound_with_a_warning_and_exits_1(call, write_pipeline):
    path = write_pipeline(wcet="60 ms")
    done = call("check", path)
    assert done.code == 1
    assert f"{path}: sound; it is known to miss deadlines" in done.out
    assert "it: wcet 60 ms is above its deadline 50 ms: every job will be late" in done.out
    assert len(call("check", path, "--json").data["warnings"]) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wcet": "5"}, "small.yaml:6: stages.it.wcet: "),
        ({"run": "stages.py:cuont"}, "did you mean 'count'?"),
        ({"run": "stagse.py:count"}, "did you mean 'stages.py'?"),
        ({"run": "no.such.module:x"}, "no module named 'no'"),
        ({"more": ", params: {least: 3}"}, "is a function and takes no parameters"),
        ({"run": "stages.py:Threshold", "more": ", params: {lest: 3}"}, "did you mean 'least'?"),
    ],
    ids=range(6),
)
def test_an_unsound_pipeline_exits_2_with_one_line(call, write_pipeline, changes, message):
    done = call("check", write_pipeline(**changes))
    assert done.code == 2
    assert message in only_line(done.err)
    assert done.err.count("\n") == 1
    assert done.out == ""


FAILING = [
    "raise RuntimeError('at import')",
    "import sys\nsys.exit(0)",
    "class Own(Exception): pass\nraise Own('at import')",
    "raise KeyError('at import')",
    "this is no python",
    "import no_such_module_at_all",
    "raise BaseException('at import')",
]


@pytest.mark.parametrize("text", FAILING, ids=range(len(FAILING)))
@pytest.mark.parametrize("command", ["check", "replay"])
def test_a_module_that_cannot_be_imported_is_the_users_fault(
    call, write_pipeline, make_drive, tmp_path, text, command
):
    path = write_pipeline(run="broken.py:count")
    (tmp_path / "broken.py").write_text(text)
    arguments = ("check", path) if command == "check" else ("replay", make_drive(1), "-p", path)
    done = call(*arguments)
    assert done.code == 2
    assert "small.yaml:6: stages.it.run: " in only_line(done.err)
    assert done.out == ""


@pytest.mark.parametrize("error", ["RuntimeError", "Own", "SystemExit", "NotImplementedError"])
def test_a_stage_that_cannot_be_made_is_the_users_fault(
    call, write_pipeline, make_drive, tmp_path, error
):
    path = write_pipeline(run="broken.py:Made")
    (tmp_path / "broken.py").write_text(
        "import avrt\nclass Own(Exception): pass\nclass Made(avrt.Stage):\n"
        f"  def __init__(self):\n    raise {error}('no')\n  def process(self, cloud): return 1\n"
    )
    done = call("replay", make_drive(1), "-p", path)
    assert done.code == 2
    assert "small.yaml:6: stages.it" in only_line(done.err)
    assert f"{error}: no at " in done.err


def test_a_stage_that_cannot_warm_up_is_the_users_fault(call, write_pipeline, make_drive, tmp_path):
    path = write_pipeline(run="broken.py:Cold")
    (tmp_path / "broken.py").write_text(
        "import avrt\nclass Cold(avrt.Stage):\n  def warm(self): raise OSError('no weights')\n"
        "  def process(self, cloud): return 1\n"
    )
    done = call("replay", make_drive(1), "-p", path)
    assert done.code == 2
    assert "small.yaml:6: stages.it.run: warm() failed: OSError: no weights" in only_line(done.err)


@pytest.mark.parametrize(
    ("command", "place"), [("replay", "small.yaml:6: stages.it"), ("inject", "stages.it")]
)
def test_two_copies_with_another_file_of_weights_are_refused(
    command, place, call, write_pipeline, make_drive, tmp_path
):
    """Row B8: the file is swapped once the first copy was made; two of three have the same one."""
    more = ", redundancy: {copies: 3, one_domain: true}"
    path = write_pipeline(run="swapped.py:Table", more=more)
    names = [tmp_path / "right.npy", tmp_path / "wrong.npy"]
    for name, content in zip(names, (1.0, 2.0), strict=True):
        np.save(name, np.full(4, content))
    (tmp_path / "swapped.py").write_text(
        f"import avrt, numpy\nleft = [{str(names[1])!r}] * 2 + [{str(names[0])!r}]\n"
        "class Table(avrt.Stage):\n"
        "  def __init__(self): self.table = numpy.load(left.pop())\n"
        "  def weight_arrays(self): return [self.table]\n"
        "  def process(self, cloud): return 1\n"
    )
    log = make_drive(2)
    campaign = tmp_path / "campaign.yaml"
    fault = "{where: stage.it.0, what: nan, frame: 1}"
    rows = f"rows: {{B4: {{about: it, faults: [{fault}]}}}}"
    campaign.write_text(f"campaign: c\npipeline: small.yaml\nlog: {log.name}\n{rows}\n")
    done = call("inject", campaign) if command == "inject" else call("replay", log, "-p", path)
    assert done.code == 2
    assert place in only_line(done.err)
    assert "it.0 and it.1 run the same code with different weights: 32 bytes, CRC32 " in done.err


@pytest.mark.parametrize("content", [None, "", "a: [", "\0", "- 1", b"\xff\xfe"], ids=range(6))
def test_no_pipeline_at_all_exits_2(call, tmp_path, content):
    path = tmp_path / "it.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = call("check", path)
    assert done.code == 2
    assert "it.yaml" in only_line(done.err)


def test_a_folder_is_no_pipeline(call, tmp_path):
    assert call("check", tmp_path).code == 2


# verify and report


def test_a_good_record_verifies_and_reports(call, record):
    done = call("verify", record)
    assert done.code == 0
    assert "equal in " in done.out
    assert "cut short" not in done.out
    assert call("verify", record, "--json").data["equal"] is True
    report = call("report", record)
    assert report.code == 0
    assert "6 jobs: 6 met" in report.out
    assert call("report", record, "--json").data["jobs"]["met"] == 6


def test_a_changed_decision_exits_1_and_is_named(call, record):
    damage_journal(record)
    done = call("verify", record)
    assert done.code == 1
    for part in ("differs at entry ", "at_ns ", "expected: ", "found: "):
        assert part in done.out
    difference = call("verify", record, "--json").data["difference"]
    assert set(difference) == {"index", "at_ns", "expected", "found"}
    assert call("report", record).code == 3


def test_a_record_that_was_cut_exits_3_equal_as_far_as_it_goes(call, record):
    data = record.read_bytes()
    record.write_bytes(data[: int(len(data) * 0.6)])
    done = call("verify", record)
    assert done.code == 3
    assert "equal in " in done.out
    assert "the record was cut short" in done.out
    answer = call("verify", record, "--json")
    assert (answer.code, answer.data["equal"], answer.data["difference"]) == (3, False, None)
    report = call("report", record)
    assert report.code == 3
    assert "the record was cut short" in report.out


def test_text_with_brackets_is_shown_as_it_is(call, record, tmp_path):
    odd = tmp_path / "[red]run[" / ".mcap"
    odd.parent.mkdir()
    shutil.copy(record, odd)
    for command in READERS:
        assert "[red]run[" in call(command, odd).out
    damage_journal(odd)
    assert "[red]run[" in call("verify", odd).out


@pytest.mark.parametrize("command", ["replay", "verify", "report"])
def test_a_bug_exits_70_and_asks_for_a_report(call, record, write_pipeline, monkeypatch, command):
    def broken(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("avrt.cli.replay.Pipeline.load", broken)
    monkeypatch.setattr("avrt.cli.verify.verify", broken)
    monkeypatch.setattr("avrt.cli.report.read_summary", broken)
    more = ("-p", write_pipeline()) if command == "replay" else ()
    done = call(command, record, *more)
    assert done.code == 70
    assert "ZeroDivisionError: a bug" in done.err
    assert "please report" in done.err
    assert done.out == ""


def test_an_interrupt_outside_of_a_run_exits_130(call, record, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("avrt.cli.verify.verify", interrupted)
    done = call("verify", record)
    assert (done.code, done.err) == (130, "avrt: interrupted\n")


# demo


def test_a_folder_that_cannot_be_made_exits_2(call, tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "_give_up_stdout", lambda: None)
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        done = call("demo", "-o", out, "--seconds", "1")
        assert done.code == 2
        assert str(tmp_path / "file") in only_line(done.err)
    assert call("demo", "-o", tmp_path / "out", "--seconds", "0").code == 2


@pytest.mark.slow
def test_the_demo_makes_a_drive_replays_and_verifies_it(call, tmp_path):
    done = call("demo", "-o", tmp_path / "out", "--seconds", "1")
    assert done.code == 0
    assert "equal in " in done.out
    data = call("demo", "-o", tmp_path / "out", "--seconds", "1", "--json").data
    assert data["jobs"]["met"] == data["jobs"]["released"] > 100
    assert data["reproducible"]
