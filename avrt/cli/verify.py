"""`avrt verify RUN`: does a fresh kernel decide as this record says?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, show, show_json
from avrt.drivers.verify import Verification, verify

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "verify",
        help="check a run record decision for decision",
        description="Feed the recorded events to a fresh kernel and compare every command. Exit 1 "
        "at the first difference, 3 when all that can be read is equal but the record is damaged "
        "or was cut short.",
    )
    parser.add_argument("record", type=Path, metavar="RUN")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    result = verify(options.record)
    if options.json:
        show_json({"record": str(options.record), "equal": result.equal, **asdict(result)})
    else:
        for line in describe(options.record, result):
            show(line)
    return exit_code(result)


def exit_code(result: Verification) -> int:
    """Return what a verification comes to: equal, different, or equal as far as it goes."""
    if result.difference is not None:
        return 1
    return 0 if result.equal else 3


def describe(path: Path, result: Verification) -> list[str]:
    """Return the verification in words."""
    if result.difference is not None:
        difference = result.difference
        return [
            f"{path}: differs at entry {difference.index}, at_ns {difference.at_ns}",
            f"  expected: {difference.expected}",
            f"  found:    {difference.found}",
        ]
    lines = [f"{path}: damaged: {problem}" for problem in result.damage]
    state = "" if result.complete else ", as far as it goes: the record was cut short"
    lines.append(f"{path}: equal in {result.entries} entries{state}")
    return [*lines, f"decisions {result.digest}"]
