"""Compare what the built-in world's sensors give with what recorded ones gave.

    python tools/world_against_reality.py ../shared/data

prints a table in Markdown (docs/world.md has it): the sensors of the KITTI sequence and of the
foggy RADIATE drive, each beside the world's with the same beam pattern.

* Rate: of stamps, by the median step; equal stamps are no step.
* Points: median over sweeps, by distance on the ground.
* Ground noise: what is left of a plane through the points of half a metre of road, standard
  deviation, median over patches 5 to 12 m away; it holds sensor's noise and road's roughness.
* Image noise: after J. Immerkaer, "Fast Noise Variance Estimation", CVIU 64(2), 1996.
* White noise of inertial readings and fixes: standard deviation of second differences / sqrt(6).
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import avrt
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.payload import Fix, Image, Imu, PointCloud, Targets
from avrt.units import NS_PER_S
from avrt.world import HDL_32E, HDL_64E_FRONT, SCENES, World, make_scene, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RANGES = (0, 5, 10, 20, 30, 40, 60, 120)  # metres
PATCH = 0.5  # metres
PATCH_POINTS = 12
ROAD_BELOW = (1.2, 2.6)  # metres below the sensor
METRES_A_DEGREE = 111_200.0
WORLD_SECONDS = 6.0


@dataclass
class Seen:
    """What one log gave, by kind of sensor."""

    steps: dict[str, list[float]] = field(default_factory=dict)
    counts: list[list[int]] = field(default_factory=list)
    ground: list[float] = field(default_factory=list)
    image: list[float] = field(default_factory=list)
    rates: list[Array] = field(default_factory=list)
    pushes: list[Array] = field(default_factory=list)
    fixes: list[Array] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def take(self, payload: object) -> None:
        """Note one reading."""
        match payload:
            case PointCloud():
                distance = np.hypot(payload.xyz[:, 0], payload.xyz[:, 1])
                self.counts.append(np.histogram(distance, RANGES)[0].tolist())
                self.ground += ground_noise(payload.xyz)
            case Image():
                self.image.append(image_noise(payload.pixels()))
            case Imu():
                self.rates.append(payload.angular_rate)
                self.pushes.append(payload.acceleration)
            case Fix():
                self.fixes.append(np.array([payload.latitude, payload.longitude]))
            case Targets():
                self.targets.append(payload.count)
            case _:
                pass


def ground_noise(xyz: NDArray[np.float32]) -> list[float]:
    """Return the deviation of the points of each patch of road from its plane, metres."""
    distance = np.hypot(xyz[:, 0], xyz[:, 1])
    below = (-xyz[:, 2] > ROAD_BELOW[0]) & (-xyz[:, 2] < ROAD_BELOW[1])
    near = xyz[below & (distance > 5) & (distance < 12)].astype(np.float64)
    cells = np.floor(near[:, :2] / PATCH).astype(np.int64)
    order = np.lexsort(cells.T)
    near, cells = near[order], cells[order]
    starts = np.nonzero(np.any(np.diff(cells, axis=0) != 0, axis=1))[0] + 1
    found = []
    for patch in np.split(near, starts):
        if len(patch) < PATCH_POINTS or np.ptp(patch[:, 2]) > 0.25:
            continue
        flat = np.column_stack([patch[:, :2] - patch[:, :2].mean(axis=0), np.ones(len(patch))])
        rest = patch[:, 2] - flat @ np.linalg.lstsq(flat, patch[:, 2], rcond=None)[0]
        found.append(float(np.sqrt((rest**2).sum() / (len(patch) - 3))))
    return found


def image_noise(rgb: NDArray[np.uint8]) -> float:
    """Return the noise of an image, of 255."""
    grey = rgb.astype(np.float64).mean(axis=2)
    edges = (
        4 * grey[1:-1, 1:-1]
        - 2 * (grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:])
        + grey[:-2, :-2] + grey[:-2, 2:] + grey[2:, :-2] + grey[2:, 2:]
    )  # fmt: skip
    return float(np.median(np.abs(edges)) / 0.6745 / 6)


def white_noise(values: Iterable[Array], scale: float = 1.0) -> float | None:
    """Return the part of a series that its neighbours do not foretell; None for a short one."""
    table = np.array(list(values))
    if len(table) < 10:
        return None
    step = np.diff(table, n=2, axis=0)
    moved = step[np.any(step != 0, axis=1)]
    return float(np.median(np.abs(moved)) / 0.6745 / np.sqrt(6) * scale)


def of_log(log: Path, pipeline: Path) -> Seen:
    """Return what a recorded log gave to the sources of a pipeline."""
    seen = Seen()
    last: dict[str, int] = {}
    with open_log(log) as reader:
        sources = avrt.Pipeline.load(pipeline).spec.sources
        kinds = {source.name: source.type for source in sources}
        for item in MergedLog(reader, sources):
            name = kinds[item.source]
            if item.source in last:
                step = (item.raw_header_ns - last[item.source]) / NS_PER_S
                seen.steps.setdefault(name, []).append(step)
            last[item.source] = item.raw_header_ns
            seen.take(item.payload)
    return seen


def of_world(beams: object) -> Seen:
    """Return what the world gives over all scenes."""
    seen = Seen()
    for name in SCENES:
        world = World(make_scene(name, 0), WORLD_SECONDS, beams=beams)  # type: ignore[arg-type]
        world.advance()
        last: dict[str, int] = {}
        for reading in readings(world):
            if isinstance(reading.payload, Targets | PointCloud | Imu | Fix | bytes):
                kind = {bytes: "camera", Targets: "radar", PointCloud: "lidar", Imu: "imu",
                        Fix: "gnss"}[type(reading.payload)]  # fmt: skip
                if kind in last:
                    step = (reading.stamp_ns - last[kind]) / NS_PER_S
                    seen.steps.setdefault(kind, []).append(step)
                last[kind] = reading.stamp_ns
            payload: object = reading.payload
            if isinstance(payload, bytes):
                payload = Image("jpeg", np.frombuffer(payload, np.uint8))
            seen.take(payload)
    return seen


def rows(seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield what is shown of one log: name and figure."""
    for kind in ("camera", "lidar", "radar", "imu", "gnss"):
        steps = [step for step in seen.steps.get(kind, []) if step > 0]
        if steps:
            low, middle, high = np.quantile(steps, [0.05, 0.5, 0.95]).tolist()
            spread = f"{1e3 * low:.1f} / {1e3 * high:.1f}"
            yield f"{kind}, Hz (step 5 / 95 %, ms)", f"{1 / middle:.1f} ({spread})"
    counts = np.median(np.array(seen.counts), axis=0)
    total = np.median(np.array(seen.counts).sum(axis=1))
    yield "points a sweep", f"{total:.0f}"
    for (low, high), count in zip(itertools.pairwise(RANGES), counts.tolist(), strict=True):
        yield f"points {low} to {high} m", f"{count:.0f}"
    yield "ground noise, mm", f"{1e3 * np.median(seen.ground):.0f}" if seen.ground else "-"
    yield "image noise, of 255", f"{np.median(seen.image):.1f}" if seen.image else "-"
    for what, values, scale, unit in (
        ("yaw, pitch, roll rate", seen.rates, 1e3, "mrad/s"),
        ("acceleration", seen.pushes, 1e3, "mm/s^2"),
        ("position of a fix", seen.fixes, METRES_A_DEGREE * 1e3, "mm"),
    ):
        found = white_noise(values, scale)
        yield f"white noise of {what}, {unit}", "-" if found is None else f"{found:.1f}"
    yield "radar targets a cycle", f"{np.median(seen.targets):.0f}" if seen.targets else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of kitti_sfnd_seq and radiate_tiny_foggy")
    given = parser.parse_args()
    root = Path(__file__).parents[1] / "pipelines"
    columns = {
        "KITTI": of_log(given.data / "kitti_sfnd_seq/kitti_sfnd_7p8s.mcap", root / "kitti.yaml"),
        "world, 64 beams, front": of_world(HDL_64E_FRONT),
        "RADIATE, fog": of_log(
            given.data / "radiate_tiny_foggy/radiate_tiny_foggy.mcap", root / "radiate.yaml"
        ),
        "world, 32 beams": of_world(HDL_32E),
    }
    shown = {name: dict(rows(seen)) for name, seen in columns.items()}
    names = list(dict.fromkeys(itertools.chain(*shown.values())))
    print("| | " + " | ".join(shown) + " |")
    print("|---" * (len(shown) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(one.get(name, "-") for one in shown.values()) + " |")


if __name__ == "__main__":
    main()
