"""`avrt demo`: the whole way on a drive that avrt makes itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.api.drive import write_drive
from avrt.cli.driving import finish
from avrt.cli.output import add_json_option, progress_bar, show, show_json
from avrt.cli.verify import describe, exit_code
from avrt.drivers.verify import verify
from avrt.errors import SpecError
from avrt.report.page import write_page
from avrt.report.score.plans import PlanScore
from avrt.report.score.run import score_run
from avrt.report.score.tracks import TrackScore
from avrt.units import NS_PER_MS, NS_PER_S
from avrt.world import SCENES, SECONDS_MAX, make_scene

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from avrt.report.score.plans import Entry
    from avrt.report.score.run import RunScore
    from avrt.report.score.tracks import ObjectScore
    from avrt.world.traffic import RoadUser

PIPELINE = Path(__file__).with_name("urban.yaml")
SECONDS, SECONDS_MIN = 20.0, 1.0
ENDINGS = ("mcap", "html", "pftrace")


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="make a drive through a small world and replay it",
        description="Make a drive with camera, LiDAR, radar, inertial unit, satellites and wheels, "
        "replay it through a pipeline, verify the record, score it against the truth, and write a "
        "page and a trace of it.",
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
    if not SECONDS_MIN <= options.seconds <= SECONDS_MAX:
        raise SpecError(
            f"expected {SECONDS_MIN:g} to {SECONDS_MAX:g} seconds, found {options.seconds:g}"
        )
    drive, scene = options.out / "drive.mcap", make_scene(options.scene, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = not options.json
    with progress_bar("drive", wanted=wanted) as progress:
        write_drive(drive, scene, seconds=options.seconds, progress=progress)
    if options.drive_only:
        show_json({"drive": str(drive)}) if options.json else show(f"drive {drive}")
        return 0
    record, page, trace = (options.out / f"run.{ending}" for ending in ENDINGS)
    pipeline = options.out / PIPELINE.name
    shutil.copyfile(PIPELINE, pipeline)
    with progress_bar("replay", wanted=wanted) as progress:
        report = Pipeline.load(pipeline).replay(drive, out=record, trace=trace, progress=progress)
    story = told(score_run(record), scene.users[scene.key_user])
    write_page(page, record, report.summary, remarks=story)
    code = finish(report, as_json=options.json, fail_on_miss=False)
    verification = verify(record)
    if not options.json:
        for line in (*describe(record, verification), "", *story):
            show(line)
        show(
            f"Look at {page} in a browser, at {trace} on ui.perfetto.dev, at {record} in Foxglove."
        )
        show("Next: a stage of your own, see the README.")
    return exit_code(verification) or code


def told(score: RunScore, key: RoadUser) -> list[str]:
    """Return what became of the road user that a scene is about, a sentence each."""
    who, lines = f"{key.label.capitalize()} {key.id}", []
    for stage in score.stages.values():
        match stage:
            case TrackScore():
                lines += [_tracked(who, one) for one in stage.objects if one.id == key.id]
            case PlanScore():
                lines += [_planned(who, one) for one in stage.entries if one.id == key.id]
            case _:
                pass
    return lines


def _tracked(who: str, one: ObjectScore) -> str:
    seen = f"{who} can be seen from {max(0, one.first_seen_ns) / NS_PER_S:.1f} s on"
    if one.latency_ns is None:
        return f"{seen} and is never tracked."
    return f"{seen} and is tracked {one.latency_ns / NS_PER_MS:.0f} ms later."


def _planned(who: str, one: Entry) -> str:
    came = f"{who} comes into the way at {one.entered_ns / NS_PER_S:.1f} s, {one.distance:.1f} m"
    if one.latency_ns is None:
        return f"{came} ahead, and the plan does not slow down for it."
    when = "later" if one.latency_ns >= 0 else "before that"
    return f"{came} ahead, and the plan slows down {abs(one.latency_ns) / NS_PER_MS:.0f} ms {when}."
