"""`avrt recover LOG -o OUT`: a whole MCAP file of what is good in a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, show, show_json
from avrt.errors import DamagedInputError
from avrt.logs.mcap.recover import recover

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "recover",
        help="make a whole file of a run record or MCAP log that was cut or damaged",
        description="Copy what is good in an MCAP file, a run record or a log, into a new one with "
        "an index: of a file that was cut all whole chunks and the whole messages of the last one. "
        "Exit code 3 when something was lost or wrong, 0 when the file was whole.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="an MCAP file")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help="the new file")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    found = recover(options.log, options.out)
    if options.json:
        show_json(
            {
                "messages": found.messages,
                "last_ns": found.last_ns,
                "lost": found.lost,
                "damage": [str(error) for error in found.damage],
            }
        )
    else:
        for error in found.damage:
            show(f"damaged: {error}")
        to = "" if found.last_ns is None else f", the last at {found.last_ns} ns"
        show(f"{options.out}: {found.messages} messages{to}; {found.lost} lost")
    return DamagedInputError.exit_code if found.damage or found.lost else 0
