"""The `avrt` command: one subcommand a file, exit codes by whose fault it was.

0 done; 1 a promise was broken; 2 usage or specification; 3 input damaged, the good part was
delivered; 4 input unusable; 70 a bug; 130 interrupted, outputs closed properly.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from importlib.metadata import version
from typing import TYPE_CHECKING

from avrt.cli import (
    check,
    compare,
    demo,
    doctor,
    info,
    inject,
    profile,
    recover,
    replay,
    report,
    run,
    score,
    simulate,
    verify,
    whatif,
)
from avrt.errors import AvrtError, SpecError
from avrt.model.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

BUG, INTERRUPTED = 70, 130
COMMANDS = (
    demo, info, check, simulate, replay, run, verify, report, score, whatif, compare, inject,
    profile, recover, doctor,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    logging.basicConfig(level=logging.ERROR, format="avrt: %(message)s", stream=sys.stderr)
    parser = _parser()
    options = parser.parse_args(arguments)
    boundary = _Boundary()
    with boundary:
        boundary.code = options.run(options)
        sys.stdout.flush()
    return boundary.code


class _Boundary:
    """Turns whatever leaves a command into its exit code."""

    def __init__(self) -> None:
        self.code = 0

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        match error:
            case None:
                return False
            case AvrtError():
                print(f"avrt: {_shown(error)}", file=sys.stderr)
                self.code = error.exit_code
            case KeyboardInterrupt():
                print("avrt: interrupted", file=sys.stderr)
                self.code = INTERRUPTED
            case BrokenPipeError():
                _give_up_stdout()
                self.code = 0
            case OSError():
                print(f"avrt: {error.filename or 'stdout'}: {error.strerror}", file=sys.stderr)
                _give_up_stdout()
                self.code = SpecError.exit_code
            case Exception():
                traceback.print_exception(kind, error, trace)
                print("avrt: a bug in avrt: please report it with the text above", file=sys.stderr)
                self.code = BUG
            case _:
                return False
        return True


def _shown(error: AvrtError) -> str:
    """Return what an error says, which may name what a log holds."""
    return "\n".join(map(escaped, str(error).split("\n")))


def _give_up_stdout() -> None:
    """Let nothing more be written there, not even what Python has still to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="avrt",
        description="A real-time automotive perception runtime.",
        epilog="exit codes: 0 done; 1 a promise was broken; 2 usage or specification; 3 input "
        "damaged, the good part was delivered; 4 input unusable; 70 a bug; 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"avrt {version('avrt')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
