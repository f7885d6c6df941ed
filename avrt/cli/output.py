"""How commands print: tables for people on stdout, or one JSON object and nothing else."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from avrt.model.printable import encodable
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

WIDTH_WITHOUT_TERMINAL = 10_000  # nothing is wrapped: the reader may be grep


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")


def add_trace_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a trace here, such as run.pftrace, that ui.perfetto.dev opens",
    )


def show(item: RenderableType) -> None:
    """Print something for a person to read; text is shown as it is, brackets and all."""
    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(item)
    text = "\n".join(line.rstrip() for line in capture.get().splitlines())
    text = encodable(text, sys.stdout.encoding or "utf-8")
    sys.stdout.write(text + "\n")  # a broken pipe raises here and not within rich, which exits


def show_json(data: object) -> None:
    """Print one JSON object."""
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


@contextmanager
def stdout_kept(*, clean: bool) -> Iterator[None]:
    """Send what a user's modules and stages print to stderr, where stdout is to stay clean."""
    if not clean:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def progress_bar(title: str, *, wanted: bool) -> Iterator[Callable[[int], None] | None]:
    """Give something to tell the pipeline time to; shown on a terminal only."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    with progress_words(title, wanted=True) as words:

        def tell(at_ns: int) -> None:
            if words is not None:
                words(f"{at_ns / NS_PER_S:.1f} s")

        yield tell


@contextmanager
def progress_words(title: str, *, wanted: bool) -> Iterator[Callable[[str], None] | None]:
    """Give something to tell what is being done; shown on a terminal only."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda what: progress.update(task, description=f"{title} {what}")
