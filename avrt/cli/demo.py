"""`avrt demo`: the whole way on a small drive that avrt makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("demo", help="make a small drive and replay it")
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), metavar="FOLDER")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    del options
    return 0
