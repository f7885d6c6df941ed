"""`avrt info LOG`: what is in a log, how regular it is, what is odd about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api.fitting import fitting_text
from avrt.cli.output import add_json_option, show, show_json
from avrt.errors import SpecError
from avrt.logs.survey.survey import EVERYTHING, Limit, survey_log
from avrt.report.info import survey_object, survey_text

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "info",
        help="tell what is in a log: topics, rates, gaps, clocks, damage",
        description="Tell what is in a log: topics, types, rates, gaps, jitter, clocks, damage, "
        "and what avrt reads. Of a large log the beginning is read, and its index for the rest.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="what avrt replay takes")
    parser.add_argument(
        "--all", action="store_true", help="read every message, and check every check sum"
    )
    parser.add_argument(
        "--pipeline",
        type=Path,
        metavar="FILE",
        help="write a pipeline that fits the log: what avrt replay runs without -p",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    found = survey_log(options.log, EVERYTHING if options.all else Limit())
    if options.json:
        show_json(survey_object(found))
    else:
        for item in survey_text(options.log.name, found):
            show(item)
    if options.pipeline is not None:
        _write(options.pipeline, fitting_text(options.log, found))
    return 0 if found.damage is None else found.damage.exit_code


def _write(path: Path, text: str) -> None:
    """Write a new file: one that is there may have been made right by hand."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError(f"{path} is there already; give another path") from None
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}") from None
