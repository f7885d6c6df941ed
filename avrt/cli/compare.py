"""`avrt compare A B`: two recorded runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, show, show_json
from avrt.report.comparison import compare

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="show two recorded runs side by side",
        description="Show outcomes, responses, execution times and chains of two run records side "
        "by side, what differs in their conditions and pipelines, and the first decision that "
        "differs when the pipelines are equal.",
    )
    parser.add_argument("a", type=Path, metavar="A")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument(
        "--fail-on-difference",
        action="store_true",
        help="exit 1 if the pipelines or any decision differ",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    comparison = compare(options.a, options.b)
    if options.json:
        show_json(comparison.data())
    else:
        show(comparison.render())
    if options.fail_on_difference and not comparison.equal:
        what = "pipelines" if comparison.pipeline else "decisions"
        print(f"avrt: exit 1: the {what} differ", file=sys.stderr)
        return 1
    return 3 if comparison.damage else 0
