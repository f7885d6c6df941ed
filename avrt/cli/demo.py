"""`avrt demo`: the whole way on a drive that avrt makes itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.api.drive import write_drive
from avrt.cli.output import add_json_option, progress_bar, show
from avrt.cli.replay import finish
from avrt.cli.verify import describe, exit_code
from avrt.drivers.verify import verify
from avrt.errors import SpecError
from avrt.world import SCENES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

PIPELINE = Path(__file__).with_name("urban.yaml")
SECONDS, SECONDS_MAX = 20.0, 60.0


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="make a drive through a small world and replay it",
        description="Make a drive with camera, LiDAR, radar, inertial unit, satellites and wheels, "
        "replay it through a pipeline, verify the record.",
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), metavar="FOLDER")
    parser.add_argument(
        "--scene", default="cut_in", help=f"{', '.join(SCENES)} (default: %(default)s)"
    )
    parser.add_argument("--seed", type=count, default=0, help="another seed, another drive")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"length of the drive, at most {SECONDS_MAX:g} (default: %(default)g)",
    )
    parser.add_argument("--drive-only", action="store_true", help="make the drive, replay nothing")
    add_json_option(parser)
    parser.set_defaults(run=run)


def count(text: str) -> int:
    """Return a whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def run(options: Namespace) -> int:
    if not 1.0 <= options.seconds <= SECONDS_MAX:
        raise SpecError(f"expected 1 to {SECONDS_MAX:g} seconds, found {options.seconds:g}")
    options.out.mkdir(parents=True, exist_ok=True)
    drive, record = options.out / "drive.mcap", options.out / "run.mcap"
    wanted = not options.json
    with progress_bar("drive", wanted=wanted) as progress:
        write_drive(
            drive, options.scene, seed=options.seed, seconds=options.seconds, progress=progress
        )
    if options.drive_only:
        return 0
    pipeline = options.out / PIPELINE.name
    shutil.copyfile(PIPELINE, pipeline)
    with progress_bar("replay", wanted=wanted) as progress:
        report = Pipeline.load(pipeline).replay(drive, out=record, progress=progress)
    code = finish(report, as_json=options.json, fail_on_miss=False)
    verification = verify(record)
    if not options.json:
        for line in describe(record, verification):
            show(line)
        show(f"\nThe drive is {drive}, the run record {record}: open either in Foxglove.")
        show("Next: a stage of your own, see the README.")
    return exit_code(verification) or code
