"""`avrt demo`: the whole way on a small drive that avrt makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.cli.output import add_json_option, progress_bar, show
from avrt.cli.replay import finish
from avrt.cli.verify import describe, exit_code
from avrt.drivers.verify import verify
from avrt.errors import SpecError
from avrt.logs.writer import LogWriter
from avrt.units import NS_PER_S
from avrt.world import camera_info, make_scene, render, sweep

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

PIPELINE = Path(__file__).with_name("demo.yaml")
START_NS = 1_700_000_000 * NS_PER_S  # the drive's own clock: an ordinary date, as in a real log
PERIOD_NS = NS_PER_S // 10
CAMERA_DELAY_NS = 10_000_000
FRAMES = 100


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="make a small drive and replay it",
        description="Make a ten-second drive with LiDAR and camera, replay it through a pipeline, "
        "verify the record.",
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), metavar="FOLDER")
    parser.add_argument("--seed", type=count, default=0, help="another seed, another drive")
    parser.add_argument(
        "--frames", type=count, default=FRAMES, help="length in tenths of a second (default: 100)"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def count(text: str) -> int:
    """Return a whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def run(options: Namespace) -> int:
    if not options.frames:
        raise SpecError("expected at least 1 frame, found 0")
    options.out.mkdir(parents=True, exist_ok=True)
    drive, record = options.out / "drive.mcap", options.out / "run.mcap"
    write_drive(drive, seed=options.seed, frames=options.frames)
    with progress_bar("replay", wanted=not options.json) as progress:
        report = Pipeline.load(PIPELINE).replay(drive, out=record, progress=progress)
    code = finish(report, as_json=options.json, fail_on_miss=False)
    verification = verify(record)
    if not options.json:
        for line in describe(record, verification):
            show(line)
        show(f"\nThe drive is {drive}, the run record {record}: open either in Foxglove.")
        show("Next: a stage of your own, see the README.")
    return exit_code(verification) or code


def write_drive(path: Path, *, seed: int, frames: int) -> None:
    """Write the drive of this seed as an ordinary MCAP log of ROS 2 messages."""
    scene = make_scene(seed)
    with LogWriter(path) as log:
        for index in range(frames):
            at_ns = index * PERIOD_NS
            cloud = sweep(scene, at_ns)
            stamp_ns = START_NS + at_ns
            log.add_cloud("/lidar/points", "lidar_roof", stamp_ns, cloud.xyz, cloud.intensity)
            image_ns = stamp_ns + CAMERA_DELAY_NS
            jpeg = render(scene, at_ns + CAMERA_DELAY_NS)
            log.add_jpeg("/camera/front/compressed", "camera_front", image_ns, jpeg)
            info = camera_info()
            log.add_camera_info("/camera/front/camera_info", "camera_front", image_ns, info)
