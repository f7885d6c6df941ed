"""A scene of nuScenes: `ROOT/v1.0-mini/scene-0061`, which is no file; its data set's folder has it.

* Of `ROOT` or `ROOT/v1.0-mini` the only scene is meant; of several one is to be named.
* `samples` and `sweeps` of all sensors come by their own times; log times are stamps. What
  `sample_data.json` promises and is not there is lost, and told, unless the folder of its sensor
  was not unpacked at all.
* Frames are the sensors' channels, each with the axes that its calibration gives it (those of
  LIDAR_TOP are right, forward, up), `base_link` (the ego vehicle's frame: on the ground below the
  middle of the rear axle) and `map`.
* Odometry is made of the vehicle's poses at the LiDAR's sweeps: differences over time.
* Radar files have returns that the radar itself marks as doubtful (`invalid_state`,
  `ambig_state`); all of them are delivered, with every field. `vx` and `vy` are relative.

| topic | type | from |
|---|---|---|
| `/tf_static` | TFMessage | calibrated_sensor, in `base_link` |
| `/LIDAR_TOP` | PointCloud2 | x y z intensity; the ring is left out |
| `/RADAR_FRONT` ... | PointCloud2 | the PCD's fields as they are |
| `/CAM_FRONT/image_rect_compressed` ... | CompressedImage | the JPEG as it is |
| `/CAM_FRONT/camera_info` ... | CameraInfo | its intrinsics, at the time of each image |
| `/odom` | Odometry | ego_pose |
| `/ground_truth/objects` | ObjectArray | sample_annotation, at each keyframe, if there are any |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import InputError, did_you_mean
from avrt.logs.files import read_picture, read_rows
from avrt.logs.messages import odometry_message, transforms_message
from avrt.logs.nuscenes.poses import Place, place_of, speeds_of
from avrt.logs.nuscenes.tables import Row, Tables, one_of
from avrt.logs.nuscenes.truth import Annotations
from avrt.logs.pcd import read_pcd
from avrt.logs.ros.message import cloud_message, header
from avrt.logs.ros.types import (
    CAMERA_INFO,
    CLOUD,
    COMPRESSED_IMAGE,
    ODOMETRY,
    TRANSFORMS,
    TRUE_OBJECTS,
)
from avrt.logs.series import Series, SeriesReader
from avrt.payload import CameraInfo, PointCloud, Truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

VERSIONS, SCENES = "v1.0-*", "scene.json"
VEHICLE, MAP = "base_link", "map"
NS_PER_US = 1000
TIME_US_MAX, PIXELS_MAX = 1 << 52, 1 << 16
NAMES_MAX = 12
LIDAR_COLUMNS = 5


class Choice(NamedTuple):
    """What a path means: the folders of tables, and the scene's name where it has one."""

    versions: list[Path]
    scene: str | None


@dataclass(slots=True)
class Channel:
    """The files of one sensor in a scene, in the order of time.

    Attributes:
        name: such as "LIDAR_TOP".
        modality: "lidar", "radar" or "camera".
        mounting: its calibrated_sensor.
        rows: its sample_data.
    """

    name: str
    modality: str
    mounting: Row
    rows: list[Row]

    @property
    def stamp_ns(self) -> NDArray[np.int64]:
        return np.array(
            [row.whole("timestamp", TIME_US_MAX) * NS_PER_US for row in self.rows], np.int64
        )


def recognises(path: Path) -> bool:
    return _choice(path) is not None


def open_scene(path: Path, strict: bool) -> SeriesReader:  # noqa: FBT001 - see LogFormat
    """Open a scene.

    Raises:
        InputError: the path has several, or none of this name, or a table is missing or damaged.
    """
    choice = _choice(path)
    assert choice is not None
    if len(choice.versions) > 1:
        names = ", ".join(folder.name for folder in choice.versions)
        what = f"expected one version of nuScenes, found {names}; name one of them"
        raise InputError(what, str(path))
    (folder,) = choice.versions
    tables = Tables(folder)
    scene = _pick(path, choice.scene, {row.text("name"): row for row in tables.rows("scene")})
    return SeriesReader("nuScenes scene", _series(folder.parent, tables, scene), strict=strict)


def _choice(path: Path) -> Choice | None:
    """Return what a path means, where it is of nuScenes."""
    folder, scene = (path, None) if path.is_dir() else (path.parent, path.name)
    if path.is_file() or not folder.is_dir():
        return None
    if (folder / SCENES).is_file():
        return Choice([folder], scene)
    versions = sorted(one for one in folder.glob(VERSIONS) if (one / SCENES).is_file())
    return Choice(versions, scene) if versions else None


def _pick(path: Path, name: str | None, scenes: Mapping[str, Row]) -> Row:
    """Return the scene of a name, or the only one.

    Raises:
        InputError: there is none, or there are several.
    """
    if name is not None:
        if name not in scenes:
            raise InputError(f"no such scene of nuScenes; {did_you_mean(name, scenes)}", str(path))
        return scenes[name]
    if len(scenes) == 1:
        return next(iter(scenes.values()))
    names = list(scenes)
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    listed = ", ".join(names[:NAMES_MAX]) or "none"
    remedy = f"; name one as {path / names[0]}" if names else ""
    raise InputError(f"expected one scene, found {listed}{more}{remedy}", str(path))


def _series(root: Path, tables: Tables, scene: Row) -> Iterator[Series]:
    token = scene.text("token")
    rows = tables.rows("sample", lambda one: one.get("scene_token") == token)
    samples = sorted(
        ((row.text("token"), row.whole("timestamp", TIME_US_MAX) * NS_PER_US) for row in rows),
        key=lambda sample: sample[1],
    )
    if not samples:
        raise InputError("expected samples of the scene, found none", scene.text("name"))
    channels = _channels(root, tables, {name for name, _ in samples})
    if not channels:
        what = "expected files of the scene in samples or sweeps, found no folder of them"
        raise InputError(what, str(root))
    tokens = {row.text("ego_pose_token") for one in channels for row in one.rows}
    poses = {name: place_of(row) for name, row in tables.by_token("ego_pose", tokens).items()}
    yield _mountings(channels)
    for channel in channels:
        yield from _sensor(root, channel)
    main = next((one for one in channels if one.modality == "lidar"), channels[0])
    yield _odometry(main, poses)
    yield from _truth(tables, samples, channels, poses)


def _channels(root: Path, tables: Tables, samples: set[str]) -> list[Channel]:
    """Return the sensors that have files of these samples, by name."""
    mountings, sensors = tables.by_token("calibrated_sensor"), tables.by_token("sensor")
    found: dict[str, Channel] = {}
    unpacked: dict[Path, bool] = {}
    for row in tables.rows("sample_data", lambda one: one.get("sample_token") in samples):
        folder = (root / row.text("filename")).parent
        if not unpacked.setdefault(folder, folder.is_dir()):
            continue
        token = row.text("calibrated_sensor_token")
        mounting = one_of(mountings, token, "calibrated_sensor.json")
        sensor = one_of(sensors, mounting.text("sensor_token"), "sensor.json")
        name = sensor.text("channel")
        channel = found.setdefault(name, Channel(name, sensor.text("modality"), mounting, []))
        channel.rows.append(row)
    for channel in found.values():
        channel.rows.sort(key=lambda row: row.whole("timestamp", TIME_US_MAX))
    return [found[name] for name in sorted(found)]


def _mountings(channels: list[Channel]) -> Series:
    first_ns = min(int(channel.stamp_ns[0]) for channel in channels)
    mounted = [(VEHICLE, one.name, place_of(one.mounting).pose()) for one in channels]
    return Series(
        "/tf_static",
        TRANSFORMS,
        "",
        np.array([first_ns]),
        lambda _index: transforms_message(first_ns, mounted),
    )


def _sensor(root: Path, channel: Channel) -> Iterator[Series]:
    """Yield the topics of a sensor."""
    name, stamp_ns = channel.name, channel.stamp_ns
    paths = [root / row.text("filename") for row in channel.rows]

    def make_cloud(index: int) -> PointCloud:
        rows = read_rows(paths[index], LIDAR_COLUMNS)
        return PointCloud(rows[:, :3], rows[:, 3])

    def make_returns(index: int) -> object:
        return cloud_message(header(int(stamp_ns[index]), name), read_pcd(paths[index]))

    match channel.modality:
        case "lidar":
            yield Series(f"/{name}", CLOUD, name, stamp_ns, make_cloud)
        case "radar":
            yield Series(f"/{name}", CLOUD, name, stamp_ns, make_returns)
        case "camera":
            yield _camera_info(channel)
            topic = f"/{name}/image_rect_compressed"
            yield Series(
                topic, COMPRESSED_IMAGE, name, stamp_ns, lambda index: read_picture(paths[index])
            )
        case _:
            pass


def _camera_info(channel: Channel) -> Series:
    topic = f"/{channel.name}/camera_info"
    try:
        intrinsic = channel.mounting.numbers("camera_intrinsic", 3, 3)
    except InputError as error:
        return Series.damaged(topic, CAMERA_INFO, error)
    projection = np.hstack((intrinsic, np.zeros((3, 1))))

    def make(index: int) -> CameraInfo:
        row = channel.rows[index]
        width, height = (row.whole(key, PIXELS_MAX) for key in ("width", "height"))
        return CameraInfo(width, height, projection)

    return Series(topic, CAMERA_INFO, channel.name, channel.stamp_ns, make)


def _odometry(channel: Channel, poses: Mapping[str, Place]) -> Series:
    places = [poses[row.text("ego_pose_token")] for row in channel.rows]
    stamp_ns = channel.stamp_ns
    speeds = speeds_of(places, stamp_ns)

    def make(index: int) -> object:
        at_ns, pose = int(stamp_ns[index]), places[index].pose()
        return odometry_message(at_ns, (MAP, VEHICLE), pose, speeds[index])

    return Series("/odom", ODOMETRY, VEHICLE, stamp_ns, make)


def _truth(
    tables: Tables,
    samples: list[tuple[str, int]],
    channels: list[Channel],
    poses: Mapping[str, Place],
) -> Iterator[Series]:
    """Yield the annotations, if there are any, where a keyframe says where the vehicle was."""
    vehicle: dict[str, Place] = {}
    for channel in sorted(channels, key=lambda one: one.modality != "lidar"):
        for row in channel.rows:
            if row.flag("is_key_frame"):
                vehicle.setdefault(row.text("sample_token"), poses[row.text("ego_pose_token")])
    topic = "/ground_truth/objects"
    try:
        boxes = Annotations(tables, samples)
    except InputError as error:
        yield Series.damaged(topic, TRUE_OBJECTS, error)
        return
    if not boxes.count:
        return
    known = [number for number, (token, _) in enumerate(samples) if token in vehicle]
    stamp_ns = np.array([samples[number][1] for number in known], np.int64)

    def make(index: int) -> Truth:
        number = known[index]
        return boxes.truth(number, vehicle[samples[number][0]])

    yield Series(topic, TRUE_OBJECTS, VEHICLE, stamp_ns, make)
