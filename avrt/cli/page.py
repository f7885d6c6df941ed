"""`--report PAGE`: the page of a run beside what is printed.

A page is made from a run record; where none was asked for, one is made in a temporary file.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from avrt.errors import SpecError
from avrt.report.outputs import keep_apart

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator


def add_page_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        type=Path,
        metavar="PAGE",
        help="write the report page here: one HTML file that needs nothing else",
    )


@contextmanager
def recorded_for(
    page: Path | None, out: Path | None, *others: Path | None
) -> Iterator[Path | None]:
    """Give where the run is to be recorded: `out`, or for a page alone a temporary file.

    Args:
        page: where the page is to be, None when none is wanted.
        out: where the record was asked for.
        others: what else the run reads or writes.

    Raises:
        SpecError: the page cannot be written there, or would overwrite one of the others.
    """
    if page is None:
        yield out
        return
    check_page(page, out, *others)
    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="avrt-") as folder:
        yield Path(folder) / "run.mcap"


def check_page(page: Path, *others: Path | None) -> None:
    """Refuse a page before the run whose figures it would lose.

    Raises:
        SpecError: it cannot be written there, or would overwrite one of the others.
    """
    if page.is_dir() or not page.parent.is_dir():
        what = "it is a folder" if page.is_dir() else f"there is no folder {page.parent}"
        raise SpecError(f"cannot write the page {page}: {what}")
    keep_apart("the page", page, others)
