"""`avrt doctor`: is this host good for real time, what to change, and what it costs not to.

Exit code 0 whatever it finds: advice is no failure.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.cli.output import add_json_option, show, show_json
from avrt.drivers.conditions import read_conditions
from avrt.exec.doctor.check import Host
from avrt.exec.doctor.examine import counts, examine
from avrt.exec.doctor.measure import granted_rights, measure
from avrt.exec.realtime import SWITCH_NS, passive_openmp
from avrt.exec.rights import MEASURED_ON
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Iterator, Sequence

    from avrt.exec.doctor.check import Check
    from avrt.exec.doctor.measure import Measured
    from avrt.exec.rights import Right

STYLES = {"ok": "green", "advice": "yellow", "refused": "red"}
FIGURES = ("p50", "p95", "p99", "max")
SHOWN = ("processor", "cores", "system", "load_1min", "python", "date")


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check this host for real time: what to change, and what it costs not to",
        description="Check this host: cores, rights, memory, kernel, libraries, GPU. Every check "
        "says what was found, what to type where it could be better, and what it costs not to. "
        "Nothing is changed. Exit code 0 whatever is found.",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure wake-ups and hand-overs with and without the measures, for some 10 seconds",
    )
    parser.add_argument(
        "--path",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where run records will be written; its free space is checked (default: here)",
    )
    add_json_option(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: Namespace) -> int:
    if not options.path.is_dir():
        options.refuse(f"--path: {options.path} is no folder")
    passive_openmp()
    rights: list[Right] = []
    measured: list[Measured] = []
    if options.measure:
        if sys.stderr.isatty():
            print("measuring for some 10 seconds", file=sys.stderr)
        rights, measured = granted_rights(), measure()
    checks = examine(Host(folder=options.path))
    conditions = read_conditions()
    if options.json:
        show_json(doctor_object(checks, measured, rights, conditions))
        return 0
    show(_check_table(checks))
    for text in _remedies(checks):
        show(text)
    show(_summary(checks))
    if measured:
        show(_measured_table(measured))
        show("granted: " + ", ".join(right.name for right in rights if right.granted))
        for right in rights:
            if not right.granted:
                show(Text(f"refused {right.name}: {right.told}", style="red"))
    on = ", ".join(f"{name} {conditions[name]}" for name in SHOWN)
    show(Text(f"this host: {on}\nfigures under 'costs without' were measured on {MEASURED_ON}"))
    return 0


# For a person


def _check_table(checks: Sequence[Check]) -> Table:
    table = Table(title="this host", title_justify="left")
    for name in ("check", "found", "wanted", "verdict"):
        table.add_column(name, overflow="fold")
    for check in checks:
        verdict = Text(check.verdict, style=STYLES[check.verdict])
        table.add_row(*map(Text, (check.name, check.found, check.wanted)), verdict)
    return table


def _remedies(checks: Sequence[Check]) -> Iterator[Text]:
    """Yield what to do, below the table: no column breaks a command that is to be copied."""
    for check in checks:
        if check.verdict != "ok":
            text = Text(f"{check.name}: {check.remedy}", style=STYLES[check.verdict])
            yield text.append(f"\n    costs without: {check.cost}", style="default")


def _summary(checks: Sequence[Check]) -> str:
    found = counts(checks)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in STYLES)


def _measured_table(measured: Sequence[Measured]) -> Table:
    table = Table(title="measured here, in turns (ms)", title_justify="left")
    for name in ("what", "with"):
        table.add_column(name)
    for name in (*FIGURES, "count", "p99 to the first"):
        table.add_column(name, justify="right")
    first: dict[str, int] = {}
    for row in measured:
        figures = row.taken.summary()
        p99 = figures["p99"]
        if p99 is not None:
            first.setdefault(row.trial, p99)
        ratio = "-" if p99 is None else f"{p99 / first[row.trial]:.2f}"
        cells = [_in_millis(figures[name]) for name in FIGURES]
        table.add_row(row.trial, row.arm, *cells, str(len(row.taken)), ratio)
    return table


def _in_millis(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / NS_PER_MS:.3f}"


# For a program


def doctor_object(
    checks: Sequence[Check],
    measured: Sequence[Measured],
    rights: Sequence[Right],
    conditions: dict[str, str],
) -> dict[str, object]:
    """Return everything as one object; `docs/doctor.md` names its keys."""
    trials: dict[str, dict[str, object]] = {}
    for row in measured:
        trials.setdefault(row.trial, {})[row.arm] = row.taken.summary()
    return {
        "verdicts": counts(checks),
        "checks": [asdict(check) for check in checks],
        "measured": {
            "switch_interval_ns": SWITCH_NS,
            "taken_ns": trials,
            "rights": [asdict(right) for right in rights],
        }
        if measured
        else None,
        "conditions": conditions,
    }
