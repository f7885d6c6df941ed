"""A camera that goes blind or gets stuck in the middle of a log: its guard, and the tracks.

    python tools/spoilt_camera.py LOG PIPELINE OUT [--fault blind] [--camera camera] [--seed 0]

LOG is replayed three times: as it is, with the images of the camera spoilt from some frame on, and
the same without the guard of the camera. Blind images are black: the noise of each (a sensor's dark
current, grey levels 0 to 3) and the first frame are drawn from the seed. A stuck camera sends the
image before that frame again, with stamps that advance. Told are the first spoilt image, what the
guard rejected and when the camera was out, and how many of the confirmed tracks of the undisturbed
run have one within a metre, and how many tracks of the others have none in the undisturbed run.
Networks are looked for in the current folder.
"""

from __future__ import annotations

import argparse
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.api import Pipeline
from avrt.config.guard import DEFAULTS
from avrt.logs.decode import parse
from avrt.logs.reader import open_log
from avrt.logs.record.run_file import read_outputs
from avrt.logs.ros.types import types_of
from avrt.logs.writer import LogWriter
from avrt.payload import Tracks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.api import Report
    from avrt.logs.raw import RawMessage
    from avrt.payload import Track

NEAR_M = 1.0
DARK_MAX = 3
BLIND, STUCK = "blind", "stuck"
MS = 1e6


def image_of(raw: RawMessage) -> NDArray[np.uint8]:
    """Return the encoded image of a message."""
    message = parse(raw)
    assert isinstance(message, ros.sensor_msgs__msg__CompressedImage)
    return message.data


def black(image: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return a black image of the same size and encoding."""
    with PillowImage.open(io.BytesIO(image.tobytes())) as picture:
        (width, height), kind = picture.size, picture.format
    dark = generator.integers(0, DARK_MAX + 1, (height, width, 3), np.uint8)
    file = io.BytesIO()
    PillowImage.fromarray(dark).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


def with_image(raw: RawMessage, image: NDArray[np.uint8]) -> bytes:
    """Return a message with another image."""
    message = parse(raw)
    assert isinstance(message, ros.sensor_msgs__msg__CompressedImage)
    return bytes(types_of(raw.channel).serialize_cdr(replace(message, data=image), raw.type))


def write_spoilt(log: Path, out: Path, topic: str, seed: int, fault: str) -> tuple[int, int, int]:
    """Copy a log, the camera blind or stuck from a frame on.

    Returns that frame, how many there are, and how long after the first message it comes, ns.
    """
    generator = np.random.default_rng(seed)
    with open_log(log) as reader, LogWriter(out) as copy:
        count = reader.topics()[topic].messages
        first = int(generator.integers(count // 4, count // 2))
        frame, zero_ns, first_ns = 0, None, 0
        last = np.zeros(0, np.uint8)
        for raw in reader.messages():
            zero_ns = raw.log_ns if zero_ns is None else zero_ns
            data = bytes(raw.data)
            if raw.topic == topic:
                if frame == first:
                    first_ns = raw.log_ns - zero_ns
                if frame < first:
                    last = image_of(raw)
                else:
                    data = with_image(raw, last if fault == STUCK else black(last, generator))
                frame += 1
            copy.add_raw(raw.topic, raw.type, raw.log_ns, data)
    return first, count, first_ns


def replayed(path: Path, log: Path, run: Path, camera: str, *, guarded: bool) -> Report:
    """Replay a log with the guard of its kind on the camera, or without one."""
    pipeline = Pipeline.load(path)
    loaded = pipeline.loaded
    assert loaded is not None
    sources = tuple(
        replace(source, guard=DEFAULTS[source.type] if guarded else None)
        if source.name == camera
        else source
        for source in loaded.spec.sources
    )
    pipeline.loaded = replace(loaded, spec=replace(loaded.spec, sources=sources))
    return pipeline.replay(log, out=run)


def sweeps(run: Path) -> dict[int, list[Track]]:
    """Return the confirmed tracks of each sweep, by its capture time."""
    return {
        message.stamp.capture_ns: [t for t in message.payload.objects if t.confirmed]
        for message in read_outputs(run, "track")
        if isinstance(message.payload, Tracks)
    }


def kept(before: dict[int, list[Track]], after: dict[int, list[Track]]) -> tuple[int, int, float]:
    """Return how many tracks there were, how many are still there, and the greatest distance."""
    count = found = 0
    farthest = 0.0
    for capture_ns, tracks in before.items():
        there = [(t.box.x, t.box.y) for t in after.get(capture_ns, [])]
        for track in tracks:
            apart = [math.dist((track.box.x, track.box.y), place) for place in there]
            nearest = min(apart, default=math.inf)
            count += 1
            if nearest <= NEAR_M:
                found += 1
                farthest = max(farthest, nearest)
    return count, found, farthest


def tell(title: str, report: Report, camera: str) -> None:
    data = report.data
    jobs = {name: stage["jobs"]["met"] for name, stage in data["stages"].items()}
    print(f"{title}: jobs met {jobs}")
    print(f"  track jobs without an input: {data['stages']['track']['absent_inputs']}")
    sensor = data["sensors"].get(camera)
    if sensor is not None:
        changes = [(c["state"], c["at_ns"] / MS) for c in sensor["changes"]]
        print(f"  {camera} rejected {sensor['rejected']}, states (ms) {changes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("out", type=Path, help="a folder for the log and the run records")
    parser.add_argument("--fault", choices=(BLIND, STUCK), default=BLIND)
    parser.add_argument("--camera", default="camera")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    topic = Pipeline.load(options.pipeline).spec.source(options.camera).topic
    spoilt = options.out / "log.mcap"
    first, count, first_ns = write_spoilt(options.log, spoilt, topic, options.seed, options.fault)
    runs = {
        "undisturbed": (options.log, True),
        options.fault: (spoilt, True),
        f"{options.fault}, no guard": (spoilt, False),
    }
    found: dict[str, dict[int, list[Track]]] = {}
    for title, (log, guarded) in runs.items():
        run = options.out / f"{title.replace(', ', '_').replace(' ', '_')}.mcap"
        report = replayed(options.pipeline, log, run, options.camera, guarded=guarded)
        found[title] = sweeps(run)
        tell(title, report, options.camera)
    what = f"{options.fault} from frame {first} of {count} on, at {first_ns / MS:.1f} ms"
    print(f"{options.camera} {what}")
    for title in list(runs)[1:]:
        total, still, farthest = kept(found["undisturbed"], found[title])
        more, new, _ = kept(found[title], found["undisturbed"])
        told = f"{still} of {total} confirmed tracks are still there, at most {farthest:.3f} m away"
        print(f"{title}: {told}; {more - new} of {more} are nowhere in the undisturbed run")


if __name__ == "__main__":
    main()
