"""Radar targets from the messages that radar drivers send.

Radars have no common message, so the fields of a point cloud are found by the names that drivers
use. Rates and speeds are taken as positive away from the sensor (a range rate), as `radar_msgs`
users, SICK and comma do. A row that lies exactly in the sensor, or nowhere, is no target: drivers
send the unused rows of a list of fixed length as zeros (SICK sends its list after each new row).

Shapes: N targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.decode.points import Points, unpack
from avrt.payload import Targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.logs.raw import RawMessage
    from avrt.logs.ros.message import Column

RATES = (
    "range_rate", "vrad", "vrel", "v_r", "radial_speed", "radial_velocity", "doppler",
    "doppler_velocity", "velocity",
)  # fmt: skip
STRENGTHS = ("strength", "amplitude", "rcs", "power", "snr", "snr_db", "intensity")
IDS = ("id", "objid", "object_id", "track_id", "target_id")
ID_BITS = (1 << 63) - 1


class Return(Protocol):
    """radar_msgs/RadarReturn."""

    range: float
    azimuth: float
    elevation: float
    doppler_velocity: float
    amplitude: float


class Track(Protocol):
    """radar_msgs/RadarTrack: covariances are the upper triangle of x, y, z."""

    uuid: ros.unique_identifier_msgs__msg__UUID
    position: ros.geometry_msgs__msg__Point
    velocity: ros.geometry_msgs__msg__Vector3
    position_covariance: NDArray[np.float32]


class SickObject(Protocol):
    """sick_scan/RadarObject."""

    id: int
    velocity: ros.geometry_msgs__msg__TwistWithCovariance
    object_box_center: ros.geometry_msgs__msg__PoseWithCovariance


class RadarScan(Protocol):
    returns: Sequence[Return]


class RadarTracks(Protocol):
    tracks: Sequence[Track]


class SickScan(Protocol):
    targets: ros.sensor_msgs__msg__PointCloud2
    objects: Sequence[SickObject]


def read_radar_cloud(raw: RawMessage, message: object) -> Targets:
    assert isinstance(message, ros.sensor_msgs__msg__PointCloud2)
    points = unpack(raw, message)
    if not points.count:
        return _targets(np.empty((0, 2)))
    names = {name.lower(): name for name in points.fields}
    columns: dict[str, Column | None] = {
        "range_rate": _first(points, names, RATES),
        "strength": _first(points, names, STRENGTHS),
        "ids": _first(points, names, IDS),
    }
    if names.keys() >= {"vx", "vy"}:
        both = [points.column(names["vx"]), points.column(names["vy"])]
        columns["velocity"] = np.stack(both, axis=1)
    return _targets(points.xyz()[:, :2], **columns)


def read_radar_scan(_raw: RawMessage, message: object) -> Targets:
    rows = np.array(
        [
            (r.range, r.azimuth, r.elevation, r.doppler_velocity, r.amplitude)
            for r in cast("RadarScan", message).returns
        ],
        np.float64,
    ).reshape(-1, 5)
    distance, azimuth, elevation, rate, amplitude = rows.T
    flat = distance * np.cos(elevation)
    xy = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth)], axis=1)
    return _targets(xy, range_rate=rate, strength=amplitude)


def read_radar_tracks(_raw: RawMessage, message: object) -> Targets:
    tracks = cast("RadarTracks", message).tracks
    xy = _pairs([(t.position.x, t.position.y) for t in tracks])
    covariance = np.array([t.position_covariance for t in tracks], np.float64).reshape(-1, 6)
    return _targets(
        xy,
        velocity=_pairs([(t.velocity.x, t.velocity.y) for t in tracks]),
        sigma=_turned(xy, covariance[:, 0], covariance[:, 1], covariance[:, 3]),
        ids=np.array([_number(t.uuid.uuid) for t in tracks], np.int64),
    )


def read_sick_radar(raw: RawMessage, message: object) -> Targets:
    """Read SICK's scan: its single returns, then the objects that the sensor tracks."""
    scan = cast("SickScan", message)
    single = _targets(np.empty((0, 2)))
    if len(scan.targets.data):
        single = read_radar_cloud(raw, scan.targets)
    centres = [o.object_box_center.pose.position for o in scan.objects]
    speeds = [o.velocity.twist.linear for o in scan.objects]
    tracked = _targets(
        _pairs([(c.x, c.y) for c in centres]),
        velocity=_pairs([(v.x, v.y) for v in speeds]),
        ids=np.array([o.id for o in scan.objects], np.int64),
    )
    return Targets(
        np.concatenate([single.xy, tracked.xy]),
        np.concatenate([single.sigma, tracked.sigma]),
        np.concatenate([single.range_rate, tracked.range_rate]),
        np.concatenate([single.velocity, tracked.velocity]),
        np.concatenate([single.strength, tracked.strength]),
        np.concatenate([single.ids, tracked.ids]),
    )


def _targets(xy: Column, **columns: Column | None) -> Targets:
    """Return the targets of rows that are some; a column that is not given is NaN, or id -1."""
    count, places = len(xy), xy.astype(np.float32)
    there: NDArray[np.bool_] = np.logical_and(
        np.isfinite(places).all(axis=1), places.astype(bool).any(axis=1)
    )

    def column(name: str, width: int = 0) -> NDArray[np.float32]:
        given = columns.get(name)
        if given is None:
            given = np.full((count, width) if width else count, np.nan)
        return given[there].astype(np.float32)

    numbers = _numbers(columns.get("ids"), there)
    return Targets(
        places[there],
        column("sigma", 2),
        column("range_rate"),
        column("velocity", 2),
        column("strength"),
        numbers,
    )


def _numbers(ids: Column | None, there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the numbers of targets; one that two of them share is the sensor's word for none."""
    if ids is None:
        return np.full(int(there.sum()), -1, np.int64)
    numbers = np.where(np.abs(ids) < ID_BITS, ids, -1)[there].astype(np.int64)
    _, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.where(times[place] > 1, -1, numbers)


def _first(points: Points, names: dict[str, str], known: Sequence[str]) -> Column | None:
    name = next((names[name] for name in known if name in names), None)
    return None if name is None else points.exact(name)


def _pairs(rows: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    return np.array(rows, np.float64).reshape(-1, 2)


def _turned(
    xy: NDArray[np.float64],
    xx: NDArray[np.float64],
    cross: NDArray[np.float64],
    yy: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (N, 2) standard deviations along the line of sight and across it."""
    angle = np.arctan2(xy[:, 1], xy[:, 0])
    cos, sin = np.cos(angle), np.sin(angle)
    along = cos * cos * xx + 2 * cos * sin * cross + sin * sin * yy
    across = sin * sin * xx - 2 * cos * sin * cross + cos * cos * yy
    variances = np.stack([along, across], axis=1)
    return np.sqrt(np.where(variances > 0, variances, np.nan))


def _number(uuid: NDArray[np.uint8]) -> int:
    """Return 63 bits of a UUID: equal numbers mean the same object."""
    return int.from_bytes(uuid.tobytes()[:8], "little") & ID_BITS
