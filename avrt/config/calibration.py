"""The `calibration` section: where the sensors are mounted, and what the cameras are like.

    calibration:
      tf: [/tf_static]                            # topics of the log
      files:
        calib.txt: {format: kitti}                # beside the pipeline file
      frames:
        lidar_top: {parent: base_link, translation: [0 m, 0 m, 2.1 m], rotation: [0 deg, 0 deg, -90 deg]}
      cameras:
        camera_front: {size: [672, 376], projection: [[338, 0, 342, 0], [0, 339, 201, 0], [0, 0, 1, 0]]}

`rotation` is roll, pitch and yaw about the parent's fixed x, y and z, in this order, as tf's static
publisher takes them; `matrix` gives rotation and translation at once, in metres. Transforms that
say different things about the same frames are an error.
"""  # noqa: E501 - lines as they stand in a file

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.calibration_files import FORMATS, Calibration, read_calibration_file
from avrt.config.reader import (
    Key,
    Rows,
    Triple,
    angle,
    build,
    integer,
    length,
    one_of,
    section,
    text,
)
from avrt.config.shape import AT_LEAST_ONE, TEXT, by_name, list_of, object_of, shape_of
from avrt.model.frames import TURN_ERROR_MAX, Matrix, TransformSpec, merged, placed, turn_error
from avrt.model.spec import CameraSpec

if TYPE_CHECKING:
    from avrt.config.node import Node

ZERO = (0.0, 0.0, 0.0)


def fill_calibration(root: Node, values: dict[str, object]) -> None:
    """Replace a pipeline's calibration node by `transforms`, `cameras` and `tf_topics`.

    Raises:
        SpecError: a value is wrong, a file cannot be read, or two transforms contradict each other.
    """
    if values.pop("calibration", None) is None:
        return
    node = root.mapping()["calibration"]
    found = section(node, CALIBRATION_KEYS)
    own, files = found.get("own", ()), found.get("files", ())
    cameras = found.get("cameras", ())
    assert isinstance(own, tuple)
    assert isinstance(files, tuple)
    assert isinstance(cameras, tuple)
    transforms, contradictions = merged([*own, *(one for file in files for one in file.transforms)])
    if contradictions:
        raise node.fail(f"two transforms contradict each other: {contradictions[0]}")
    known = {camera.frame for camera in cameras}
    read = (camera for file in files for camera in file.cameras if camera.frame not in known)
    values["transforms"], values["cameras"] = transforms, (*cameras, *read)
    values["tf_topics"] = found.get("tf", ())


def _topics(node: Node) -> tuple[str, ...]:
    return tuple(text(item) for item in node.items("a list of topics"))


def _files(node: Node) -> tuple[Calibration, ...]:
    return tuple(_file(path, child) for path, child in node.mapping("files by path").items())


def _file(path: str, node: Node) -> Calibration:
    values = section(node, FILE_KEYS)
    names = values.get("frames", {})
    assert isinstance(names, dict)
    try:
        return read_calibration_file(node.folder / path, str(values["format"]), names)
    except ValueError as error:
        raise node.fail(str(error)) from None


def _frame_names(node: Node) -> dict[str, str]:
    return {key: text(child) for key, child in node.mapping("frame names").items()}


def _frames(node: Node) -> tuple[TransformSpec, ...]:
    return tuple(_frame(key, child) for key, child in node.mapping("frames by name").items())


def _frame(child: str, node: Node) -> TransformSpec:
    values = section(node, FRAME_KEYS)
    matrix = values.get("matrix")
    if matrix is not None and values.keys() & {"translation", "rotation"}:
        raise node.fail("give either 'matrix', or 'translation' and 'rotation'")
    if matrix is None:
        translation, rotation = values.get("translation", ZERO), values.get("rotation", ZERO)
        assert isinstance(translation, tuple)
        assert isinstance(rotation, tuple)
        matrix = placed(translation, rotation)
    assert isinstance(matrix, tuple)
    parent, origin = str(values["parent"]), node.place or "the pipeline"
    if parent == child:
        raise node.fail("a frame has another one as its parent")
    return TransformSpec(parent=parent, child=child, matrix=matrix, origin=origin)


def _rigid(node: Node) -> Matrix:
    matrix = Rows(3, 4)(node)
    if turn_error(matrix) > TURN_ERROR_MAX:
        raise node.fail("expected a rotation in the left 3 x 3 numbers")
    return matrix


def _cameras(node: Node) -> tuple[CameraSpec, ...]:
    return tuple(_camera(key, child) for key, child in node.mapping("cameras by frame").items())


def _camera(frame: str, node: Node) -> CameraSpec:
    values = section(node, CAMERA_KEYS)
    size = values.pop("size")
    projection = values["projection"]
    assert isinstance(size, tuple)
    assert isinstance(projection, tuple)
    if min(projection[0], projection[5]) <= 0:
        raise node.fail("expected focal lengths above zero in 'projection'")
    return build(CameraSpec, {"frame": frame, "width_px": size[0], "height_px": size[1], **values})


def _size(node: Node) -> tuple[int, ...]:
    items = node.items("width and height in pixels")
    size = tuple(integer(item) for item in items)
    if len(size) != 2 or min(size) < 1:
        raise node.fail("expected width and height in pixels, such as [1242, 375]")
    return size


FILE_KEYS = (
    Key("format", "format", one_of(*FORMATS), "kitti", "what kind of file it is"),
    Key(
        "frames",
        "frames",
        _frame_names,
        about="what the frames that it names are called here",
        shape=by_name(TEXT),
    ),
)
FRAME_KEYS = (
    Key("parent", "parent", text, "base_link", "the frame that it is mounted in"),
    Key("translation", "translation", Triple(length), about="x, y, z in the parent; 0 m each"),
    Key(
        "rotation",
        "rotation",
        Triple(angle),
        about="roll, pitch, yaw about the parent's fixed axes, in this order; 0 deg each",
    ),
    Key(
        "matrix",
        "matrix",
        _rigid,
        about="three rows of four numbers that take a point to the parent, in place of both",
        shape=shape_of(Rows(3, 4)),
    ),
)
FRAME_SHAPE = {
    **object_of(FRAME_KEYS),
    "not": {
        "required": ["matrix"],
        "anyOf": [{"required": ["translation"]}, {"required": ["rotation"]}],
    },
}
CAMERA_KEYS = (
    Key(
        "size",
        "size",
        _size,
        "[1242, 375]",
        "width and height of its images in pixels",
        shape=list_of(AT_LEAST_ONE, least=2, most=2),
    ),
    Key(
        "projection",
        "projection",
        Rows(3, 4),
        "[[fx, 0, cx, 0], [0, fy, cy, 0], [0, 0, 1, 0]]",
        "from the optical frame to pixels",
    ),
)
CALIBRATION_KEYS = (
    Key(
        "frames",
        "own",
        _frames,
        about="where each frame is, by its name",
        shape=by_name(FRAME_SHAPE),
    ),
    Key(
        "files",
        "files",
        _files,
        about="calibration files beside this file, by path",
        shape=by_name(object_of(FILE_KEYS)),
    ),
    Key(
        "cameras",
        "cameras",
        _cameras,
        about="models of cameras, by optical frame",
        shape=by_name(object_of(CAMERA_KEYS)),
    ),
    Key("tf", "tf", _topics, about="topics of the log that hold tf", shape=list_of(TEXT)),
)
