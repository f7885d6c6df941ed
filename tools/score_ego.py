"""Score the ego motion stages on recorded drives and print one JSON object.

    python tools/score_ego.py comma FOLDER    EgoEstimator against the poses of a comma2k19 segment
    python tools/score_ego.py radiate LOG     EgoEstimator and ScanMatcher against each other
    python tools/score_ego.py kitti LOG       ScanMatcher against single sweeps far apart

comma2k19 (Schafer et al., "A Commute in Burlingame", 2018) has poses of a tightly coupled solution
at 20 Hz in earth-centred coordinates; its device frame points forward, right and down. The error is
taken at the capture time of every reading after `SETTLED` seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation

from avrt.drivers.conditions import read_conditions
from avrt.model.frames import IDENTITY, Frames, Matrix, TransformSpec
from avrt.model.message import Message, Stamp
from avrt.payload import Fix, Imu, PointCloud, Speed
from avrt.stages.ego.estimator import EgoEstimator
from avrt.stages.ego.registration import Target
from avrt.stages.ego.scan_matching import ScanMatcher
from avrt.stages.ego.upright import Features, features

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTLED = 3.0  # seconds
WINDOW = 10.0  # seconds
Y_FORWARD = (0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
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
        pose = (one.stamp.capture_ns / 1e9, motion.x, motion.y, motion.yaw)
        rows.append((*pose, motion.speed, motion.yaw_rate, *motion.covariance.ravel()))
    found = np.array(rows)
    truth = Truth(folder)
    found = found[(found[:, 0] > SETTLED) & (found[:, 0] < truth.t[-1])]
    true = truth.at(found[:, 0])
    difference = found[:, 4:6] - true[:, 3:5]
    spread = found[:, 6:].reshape(-1, 2, 2)
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


def read_log(log: Path, *topics: str) -> Iterator[tuple[str, float, object]]:
    """Yield topic, the sensor's own time in seconds, and message, in the order of the log."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    with log.open("rb") as file:
        for schema, channel, raw in make_reader(file).iter_messages(topics=topics):
            one = store.deserialize_cdr(raw.data, schema.name)
            yield channel.topic, one.header.stamp.sec + one.header.stamp.nanosec / 1e9, one


def clouds(log: Path, topic: str) -> list[tuple[float, PointCloud]]:
    """Return the sweeps with their times in seconds."""
    found = []
    for _, at, one in read_log(log, topic):
        rows = one.data.reshape(-1, one.point_step)[:, :12].copy()
        found.append((at, PointCloud(rows.view("<f4").reshape(-1, 3))))
    return found


def matched(sweeps: list[tuple[float, PointCloud]], turn: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return time, x, y, yaw, speed, yaw rate of each sweep, and what it cost, ms."""
    stage, rows, spent = ScanMatcher(frame="vehicle"), [], []
    stage.calibrate(Frames([TransformSpec(parent="vehicle", child="lidar", matrix=turn)]))
    stage.warm()
    for sequence, (at, cloud) in enumerate(sweeps):
        one = message("lidar", sequence, at - sweeps[0][0], cloud)
        start = time.process_time_ns()
        motion = stage.process(one)
        spent.append((time.process_time_ns() - start) / 1e6)
        rows.append((at, motion.x, motion.y, motion.yaw, motion.speed, motion.yaw_rate))
    return np.array(rows), np.array(spent)


def profile(t: np.ndarray, speed: np.ndarray, every: float = 0.5) -> dict[str, float]:
    """Return the speed by seconds since the first time."""
    at = np.arange(0.0, t[-1] - t[0], every)
    found = np.interp(at, t - t[0], speed)
    return {f"{s:.1f}": round(float(v), 2) for s, v in zip(at, found, strict=True)}


def costs(spent: np.ndarray) -> dict[str, float]:
    """Return processor time of one call, ms, without the first two."""
    return {f"p{q}": round(float(np.percentile(spent[2:], q)), 1) for q in (50, 95, 100)}


def score_kitti(log: Path) -> dict[str, object]:
    """Return the speed profile, and how well single sweeps far apart fit where it puts them."""
    sweeps = clouds(log, "/lidar/velodyne/points")
    rows, spent = matched(sweeps, IDENTITY)
    apart = {}
    for i, j in ((0, 10), (0, 20), (20, 40), (40, 60), (60, 77)):
        a, b = (_features(sweeps[k][1]) for k in (i, j))
        told = _relative(rows[i, 1:4], rows[j, 1:4])
        fit = Target(a).fitted(b, told, kernel=0.8).pose
        apart[f"{i}-{j}"] = {"odometry": told.round(3).tolist(), "direct": fit.round(3).tolist()}
    return {
        "speed": profile(rows[:, 0], rows[:, 4]),
        "way_m": round(float(np.hypot(*rows[-1, 1:3])), 3),
        "apart": apart,
        "process_ms": costs(spent),
    }


def _features(cloud: PointCloud) -> Features:
    away = np.hypot(*cloud.xyz[:, :2].T)
    return features(cloud.xyz[(away > 2) & (away < 60)], 0)


def score_radiate(log: Path) -> dict[str, object]:
    """Return the speed by satellites and by LiDAR, and the clock shift that makes them agree."""
    stage, rows, counts = estimator(), [], {"imu": -1, "gnss": -1}
    zero = None
    for topic, at, one in read_log(log, "/imu/data", "/gnss/fix"):
        zero = at if zero is None else zero
        name = "imu" if topic == "/imu/data" else "gnss"
        counts[name] += 1
        motion = stage.process(**{name: message(name, counts[name], at - zero, _payload(one))})
        rows.append((stage.state.capture_ns / 1e9 + zero, motion.speed, motion.yaw_rate))
    told = np.array(rows)
    told = told[told[:, 0] > told[0, 0] + 0.25]
    swept, spent = matched(clouds(log, "/lidar/top/points"), Y_FORWARD)
    shifts = np.arange(60.0, 70.0, 0.05)
    off = [_disagreement(swept[5:], told, shift) for shift in shifts]
    best = int(np.argmin(off))
    return {
        "satellites_and_imu": profile(told[:, 0], told[:, 1]),
        "lidar": profile(swept[2:, 0], swept[2:, 4]),
        "clock_shift_s": round(float(shifts[best]), 2),
        "speed_rms_at_shift": round(float(off[best]), 3),
        "speed_rms_at_64_s": round(float(_disagreement(swept[5:], told, 64.0)), 3),
        "process_ms": costs(spent),
    }


def _disagreement(swept: np.ndarray, told: np.ndarray, shift: float) -> float:
    """Return the rms of the difference in speed, m/s; infinite if less than 2 s overlap."""
    at = swept[:, 0] + shift
    inside = (at >= told[0, 0]) & (at <= told[-1, 0])
    if inside.sum() < 20:
        return np.inf
    speed = np.interp(at[inside], told[:, 0], told[:, 1])
    return float(np.sqrt(np.mean((swept[inside, 4] - speed) ** 2)))


def _payload(one: object) -> Imu | Fix:
    if hasattr(one, "angular_velocity"):
        vectors = (one.linear_acceleration, one.angular_velocity)
        return Imu(*(np.array([v.x, v.y, v.z]) for v in vectors))
    sigma = np.sqrt(np.asarray(one.position_covariance)[[0, 4, 8]])
    return Fix(one.latitude, one.longitude, one.altitude, sigma, one.status.status >= 0)


def score_comma(folder: Path) -> dict[str, object]:
    return {"+".join(inputs): score(folder, inputs) for inputs in SUBSETS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=("comma", "radiate", "kitti"))
    parser.add_argument("path", type=Path)
    given = parser.parse_args()
    scores = {"comma": score_comma, "radiate": score_radiate, "kitti": score_kitti}
    print(json.dumps(scores[given.data](given.path) | {"conditions": read_conditions()}, indent=1))


if __name__ == "__main__":
    main()
