"""`avrt doctor`: its table, its object, and how it exits."""

import re
from pathlib import Path

import pytest

from avrt.cli import doctor
from avrt.exec.doctor.check import Check
from avrt.exec.doctor.measure import ORDINARY, REALTIME, Trial, wake_block

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
SHORT = (Trial("wake", wake_block, (ORDINARY, REALTIME), 1),)

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("settled")]


@pytest.fixture
def quick(monkeypatch):
    """Measure next to nothing."""
    plain = doctor.measure
    monkeypatch.setattr(doctor, "measure", lambda: plain(SHORT, rounds=1))


def documented():
    """Return the names of the first column of the table of keys."""
    section = PAGE.partition("## The object")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_check_is_a_row_and_advice_is_no_failure(call):
    done = call("doctor")
    assert done.code == 0
    for name in ("SCHED_FIFO", "memory lock", "clock source", "swap", "threads an operation"):
        assert f" {name} " in done.out
    assert re.search(r"^\d+ ok, \d+ advice, \d+ refused$", done.out, re.MULTILINE)
    assert "this host: processor" in done.out
    assert "measured here" not in done.out


def test_what_to_do_and_what_it_costs_not_to_is_told_for_all_that_is_not_well(call, monkeypatch):
    checks = [
        Check("one", "this", "that", "ok", cost="much"),
        Check("two", "this", "that", "advice", "type [this]", "more"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda _: checks)
    out = call("doctor").out
    assert "two: type [this]\n    costs without: more\n1 ok, 1 advice, 0 refused\n" in out
    assert "much" not in out


@pytest.mark.usefixtures("quick")
def test_measurements_are_a_table_with_what_was_granted(call):
    done = call("doctor", "--measure")
    assert done.code == 0
    assert "measured here, in turns (ms)" in done.out
    assert "all that is granted" in done.out
    assert "granted: " in done.out


def test_what_was_refused_is_told_below_the_measurements(call, monkeypatch, quick):  # noqa: ARG001
    from avrt.exec.rights import refused  # noqa: PLC0415

    monkeypatch.setattr(doctor, "granted_rights", lambda: [refused("fifo", "the limit", "x")])
    assert "refused fifo:x: the limit" in call("doctor", "--measure").out


@pytest.mark.usefixtures("quick")
def test_the_keys_of_the_object(call):
    data = call("doctor", "--measure", "--json").data
    measured = data["measured"]
    found = {
        *data, *data["verdicts"], *data["checks"][0], *measured, *measured["rights"][0],
        *measured["taken_ns"]["wake"]["ordinary"],
    }  # fmt: skip
    assert found == documented()
    assert data["conditions"]["cores"]


def test_without_measurements_there_are_none(call, tmp_path):
    data = call("doctor", "--json", "--path", tmp_path).data
    assert data["measured"] is None
    disk = next(check for check in data["checks"] if check["name"] == "disk")
    assert str(tmp_path) in disk["found"]


def test_a_path_that_is_no_folder_is_refused(call, tmp_path):
    done = call("doctor", "--path", tmp_path / "nowhere")
    assert done.code == 2
    assert "is no folder" in done.err


def test_an_interrupt_ends_it(call, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "granted_rights", stop)
    assert call("doctor", "--measure").code == 130
