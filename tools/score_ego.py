"""Score the ego motion stages on recorded drives and print one JSON object.

    python tools/score_ego.py comma FOLDER    EgoEstimator against the poses of a comma2k19 segment
    python tools/score_ego.py radiate LOG     EgoEstimator on a RADIATE log: speed profile
    python tools/score_ego.py kitti LOG       ScanMatcher on LiDAR alone: speed profile, checks

comma2k19 (Schafer et al., "A Commute in Burlingame", 2018) has poses of a tightly coupled solution
at 20 Hz in earth-centred coordinates; its device frame points forward, right and down. The error is
taken at the capture time of every reading after `SETTLED` seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from avrt.model.frames import Frames, TransformSpec
from avrt.model.message import Message, Stamp
from avrt.payload import Fix, Imu, Speed
from avrt.stages.ego import EgoEstimator

SETTLED = 3.0  # seconds
WINDOW = 10.0  # seconds
FORWARD_RIGHT_DOWN = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0)
SUBSETS = (
    ("speed", "imu"),
    ("gnss",),
    ("imu", "gnss"),
    ("speed", "gnss"),
    ("imu", "gnss", "speed"),
)


def message(source: str, sequence: int, seconds: float, payload: object) -> Message:
    at_ns = round(seconds * 1e9)
    return Message(Stamp(source, sequence, at_ns, at_ns, at_ns, source), payload)


def estimator(**params: float) -> EgoEstimator:
    """Return a stage for an inertial unit that points forward, right and down."""
    stage = EgoEstimator(frame="vehicle", **params)
    turn = TransformSpec(parent="vehicle", child="imu", matrix=FORWARD_RIGHT_DOWN)
    stage.calibrate(Frames([turn]))
    return stage


def comma_messages(folder: Path, inputs: tuple[str, ...]) -> list[tuple[str, Message]]:
    """Return the readings of these inputs in time order; seconds since the first frame."""

    def column(name: str) -> np.ndarray:
        return np.load(folder / "processed_log" / name, allow_pickle=False)

    zero = np.load(folder / "global_pose/frame_times", allow_pickle=False)[0]
    found = []
    if "imu" in inputs:
        rows = zip(
            column("IMU/gyro/t"),
            column("IMU/gyro/value"),
            column("IMU/accelerometer/value"),
            strict=True,
        )
        found += [(t, "imu", Imu(acceleration, rate)) for t, rate, acceleration in rows]
    if "speed" in inputs:
        rows = zip(column("CAN/speed/t"), column("CAN/speed/value")[:, 0], strict=True)
        found += [(t, "speed", Speed(float(value))) for t, value in rows]
    if "gnss" in inputs:
        unknown = np.full(3, np.nan)
        rows = zip(
            column("GNSS/live_gnss_ublox/t"), column("GNSS/live_gnss_ublox/value"), strict=True
        )
        found += [(t, "gnss", Fix(v[0], v[1], v[4], unknown, True)) for t, v in rows]
    found.sort(key=lambda one: one[:2])
    counts = dict.fromkeys(inputs, -1)
    result = []
    for t, name, payload in found:
        counts[name] += 1
        result.append((name, message(name, counts[name], t - zero, payload)))
    return result


class Truth:
    """The poses of a comma2k19 segment, in the plane at its first position."""

    def __init__(self, folder: Path) -> None:
        load = lambda name: np.load(folder / "global_pose" / name, allow_pickle=False)  # noqa: E731
        self.t = load("frame_times") - load("frame_times")[0]
        place, velocity = load("frame_positions"), load("frame_velocities")
        turn = Rotation.from_quat(np.roll(load("frame_orientations"), -1, axis=1))
        up = place[0] / np.linalg.norm(place[0])
        east = np.cross([0.0, 0.0, 1.0], up)
        east /= np.linalg.norm(east)
        plane = np.stack([east, np.cross(up, east)])
        self.xy = (place - place[0]) @ plane.T
        ahead, course = turn.apply([1.0, 0.0, 0.0]) @ plane.T, velocity @ plane.T
        self.yaw = np.unwrap(np.arctan2(course[:, 1], course[:, 0]))
        self.speed = np.linalg.norm(velocity, axis=1)
        self.yaw_rate = np.gradient(np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0])), self.t)

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return x, y, yaw, speed, yaw rate at these times: (T, 5)."""
        columns = (*self.xy.T, self.yaw, self.speed, self.yaw_rate)
        return np.stack([np.interp(t, self.t, column) for column in columns], axis=1)


def score(folder: Path, inputs: tuple[str, ...], **params: float) -> dict[str, object]:
    stage, rows, spent = estimator(**params), [], []
    for name, one in comma_messages(folder, inputs):
        start = time.perf_counter_ns()
        motion = stage.process(**{name: one})
        spent.append(time.perf_counter_ns() - start)
        error = motion.covariance
        rows.append(
            (
                one.stamp.capture_ns / 1e9,
                motion.x,
                motion.y,
                motion.yaw,
                motion.speed,
                motion.yaw_rate,
            )
            + (error[0, 0], error[0, 1], error[1, 1])
        )
    found = np.array(rows)
    truth = Truth(folder)
    found = found[(found[:, 0] > SETTLED) & (found[:, 0] < truth.t[-1])]
    true = truth.at(found[:, 0])
    difference = found[:, 4:6] - true[:, 3:5]
    spread = found[:, [6, 7, 7, 8]].reshape(-1, 2, 2)
    nees = np.einsum("ti,tij,tj->t", difference, np.linalg.inv(spread), difference)
    return {
        "speed_error": errors(difference[:, 0]),
        "yaw_rate_error": errors(difference[:, 1]),
        "nees_mean_of_2": round(float(nees.mean()), 2),
        "after_10_s": drift(found[:, :4], true[:, :3]),
        "process_us": {f"p{q}": round(np.percentile(spent, q) / 1e3) for q in (50, 99)},
    }


def errors(values: np.ndarray) -> dict[str, float]:
    size = np.abs(values)
    figures = {f"p{q}": np.percentile(size, q) for q in (50, 95, 99)}
    figures |= {"rmse": np.sqrt(np.mean(size**2)), "mean": values.mean(), "max": size.max()}
    return {name: round(float(value), 4) for name, value in figures.items()} | {"n": len(values)}


def drift(found: np.ndarray, true: np.ndarray) -> dict[str, object]:
    """Return how far the pose is off after WINDOW seconds, from where it was right."""
    off, turned = [], []
    for start in np.arange(found[0, 0], found[-1, 0] - WINDOW, WINDOW / 2):
        i, j = np.searchsorted(found[:, 0], [start, start + WINDOW])
        a = _relative(found[i, 1:], found[j, 1:])
        b = _relative(true[i], true[j])
        off.append(np.hypot(*(a - b)[:2]))
        turned.append((a - b)[2])
    turned = np.remainder(np.array(turned) + np.pi, 2 * np.pi) - np.pi
    way = np.hypot(*(true[-1] - true[0])[:2])
    return {"metres": errors(np.array(off)), "yaw": errors(turned), "way_m": round(float(way))}


def _relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(a[2]), np.sin(a[2])
    dx, dy = b[:2] - a[:2]
    return np.array([dx * cos + dy * sin, dy * cos - dx * sin, b[2] - a[2]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=("comma", "radiate", "kitti"))
    parser.add_argument("path", type=Path)
    given = parser.parse_args()
    result = {"+".join(inputs): score(given.path, inputs) for inputs in SUBSETS}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
