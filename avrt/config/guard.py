"""The key `guard` of a source: what is asked of each message before a stage gets it.

`guard: default` takes the thresholds for its kind of sensor; a mapping replaces some of them. What
each means is in `avrt.safety.guard`. Where the numbers come from:

* silent 3, back 10, skips 3, blind and stuck 3: a camera at 30 Hz is known to be lost, stuck or
  blind within 100 ms, a fifth of the 500 ms in which perception must have answered;
* silent_for 100 ms: openpilot gives its 100 Hz messages ten periods; with three, a host that stalls
  for 30 ms made an inertial unit lost eight times in 20 s;
* stuck 100 of inertial and satellite readings: PX4's DataValidator (VALUE_EQUAL_COUNT);
* age 1 s: Autoware's monitors of topics give up after 1.0 s, and no known time scale lies closer;
* faster 1.2: more than a fifth too many;
* nonfinite 0.5, covered 0.3 for 1 s: half of a cloud, a third of an image; a reading that is no
  number counts as all of it; covered 0.1 of a lidar: 36 degrees of a full turn;
* turning 0.5: half way between points that follow each other around and times drawn at random;
* most 2,000,000 points: what Autoware's CenterPoint has room for (cloud_capacity);
* dark 10, bright 230, in 5 x 5 blocks: autoware_image_diagnostics; contrast 2: on a drive in fog
  (RADIATE) at most 12 % of the blocks of an image are below, on one in the sun (KITTI) none is.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, duration, integer, section
from avrt.config.shape import AT_LEAST_ONE, DURATION, NONE_OR_MORE, object_of
from avrt.errors import did_you_mean
from avrt.model.guard import GuardSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.config.node import Node
    from avrt.config.reader import Shape

DEFAULT = "default"
DEFAULTS: Mapping[str, GuardSpec] = {
    "camera": GuardSpec(least=1, stuck=3, blind=3, covered=0.3),
    "lidar": GuardSpec(
        least=2, most=2_000_000, nonfinite=0.5, turning=0.5, stuck=3, covered=0.1, covered_ns=0
    ),
    "radar": GuardSpec(nonfinite=0.5, stuck=3),
    "imu": GuardSpec(nonfinite=0.5, stuck=100),
    "gnss": GuardSpec(nonfinite=0.5, stuck=100),
    "can": GuardSpec(nonfinite=0.5),
}
ONLY_FOR = {
    **dict.fromkeys(("blind", "dark", "bright", "contrast"), ("camera",)),
    **dict.fromkeys(("covered", "covered_for"), ("camera", "lidar")),
    "turning": ("lidar",),
    **dict.fromkeys(("least", "most"), ("camera", "lidar", "radar")),
    "nonfinite": ("lidar", "radar", "imu", "gnss", "can"),
}
"""Keys that only some kinds of sensors have."""


def guard(node: Node, kind: str) -> GuardSpec:
    """Return what is asked of the messages of a kind of sensor.

    Raises:
        SpecError: a key or a value is wrong, or such a sensor has no such key.
    """
    if isinstance(node.value, str):
        if node.value != DEFAULT:
            near = did_you_mean(node.value, [DEFAULT])
            raise node.fail(f"expected {DEFAULT} or thresholds, found {node.shown}; {near}")
        return DEFAULTS[kind]
    values = section(node, GUARD_KEYS)
    for name, child in node.mapping().items():
        kinds = ONLY_FOR.get(name, (kind,))
        if kind not in kinds:
            raise child.fail(f"is only for {_listed(kinds)}, and this source is a {kind}")
    spec = build(GuardSpec, {**asdict(DEFAULTS[kind]), **values})
    if spec.dark >= spec.bright:
        what = f"expected dark below bright, found {spec.dark:g} and {spec.bright:g}"
        raise node.fail(what)
    return spec


def _listed(kinds: tuple[str, ...]) -> str:
    return " or ".join(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" for kind in kinds)


def _one_or_more(node: Node) -> int:
    return _at_least(node, 1)


def _none_or_more(node: Node) -> int:
    return _at_least(node, 0)


def _at_least(node: Node, least: int) -> int:
    found = integer(node)
    if found < least:
        raise node.fail(f"expected a whole number of {least} or more, found {node.shown}")
    return found


def _share(node: Node) -> float:
    return _within(node, 0, 1, "a share from 0 to 1, such as 0.5")


def _level(node: Node) -> float:
    return _within(node, 0, 255, "a grey level from 0 to 255")


def _times(node: Node) -> float:
    found = _number(node)
    if found and not 1 <= found < math.inf:
        raise node.fail(f"expected a number of 1 or more, or 0 for no limit, found {node.shown}")
    return found


def _within(node: Node, least: float, most: float, what: str) -> float:
    found = _number(node)
    if not least <= found <= most:
        raise node.fail(f"expected {what}, found {node.shown}")
    return found


def _number(node: Node) -> float:
    """Return a number; what is none lies nowhere."""
    return float(node.text) if type(node.value) in {int, float} else math.nan


def _long_ago(node: Node) -> int:
    found = duration(node)
    if found < 0:
        raise node.fail(f"expected a duration of 0 or more, found {node.shown}")
    return found


SHARE: Shape = {"type": "number", "minimum": 0, "maximum": 1}
LEVEL: Shape = {"type": "number", "minimum": 0, "maximum": 255}
GUARD_KEYS = (
    Key(
        "bad",
        "bad",
        _one_or_more,
        about="so many bad messages in a row put the sensor out of use; 3 unless given",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "back",
        "back",
        _one_or_more,
        about="so many good ones in a row put it back; 10 unless given",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "foreign",
        "foreign",
        _none_or_more,
        about="so many messages in a row that say they are another sensor's, or of another type, "
        "frame or size than before, put it out of use; 3 unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "silent",
        "silent",
        _none_or_more,
        about="so many declared periods without a message, and it is lost; 3 unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "silent_for",
        "silent_ns",
        _long_ago,
        about="and for this long at least; 100 ms unless given",
        shape=DURATION,
    ),
    Key(
        "skips",
        "skips_max",
        _none_or_more,
        about="how many steps of its sender's counter may be missing; 3 unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "age",
        "age_ns",
        _long_ago,
        about="between capture and arrival at most, either way; 1 s unless given",
        shape=DURATION,
    ),
    Key(
        "faster",
        "faster",
        _times,
        about="how many times its declared rate it may have; 1.2 unless given",
        shape={"type": "number", "minimum": 0},
    ),
    Key(
        "least",
        "least",
        _none_or_more,
        about="points, targets or pixels of a message at least; 2 of a lidar, 1 of a camera unless "
        "given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "most",
        "most",
        _none_or_more,
        about="points, targets or pixels at most; 2000000 of a lidar, any of others unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "nonfinite",
        "nonfinite",
        _share,
        about="which share of the points or targets may be no numbers, fewer are dropped; 0.5 "
        "unless given",
        shape=SHARE,
    ),
    Key(
        "turning",
        "turning",
        _share,
        about="how well the times of the points of a lidar that spins must fit their directions, "
        "from 0 to 1; 0.5 unless given",
        shape=SHARE,
    ),
    Key(
        "stuck",
        "stuck",
        _none_or_more,
        about="so many messages in a row with one content put it out of use; 3 of a camera, lidar "
        "or radar, 100 of an imu or gnss, any of can unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "blind",
        "blind",
        _none_or_more,
        about="so many dark, bright or uniform images in a row put it out of use; 3 unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "dark",
        "dark",
        _level,
        about="mean grey level below which an image is blind; 10 of 255 unless given",
        shape=LEVEL,
    ),
    Key(
        "bright",
        "bright",
        _level,
        about="mean grey level above which an image is blind; 230 of 255 unless given",
        shape=LEVEL,
    ),
    Key(
        "contrast",
        "contrast",
        _level,
        about="standard deviation of grey levels below which an image, or a block of it, is "
        "uniform; 2 unless given",
        shape=LEVEL,
    ),
    Key(
        "covered",
        "covered",
        _share,
        about="which share of the blocks of an image may be uniform, 0.3 unless given; or of the "
        "directions of a lidar may have no points, 0.1 unless given",
        shape=SHARE,
    ),
    Key(
        "covered_for",
        "covered_ns",
        _long_ago,
        about="how long more of them are before that is told; 1 s unless given",
        shape=DURATION,
    ),
)
GUARD_SHAPE: Shape = {"anyOf": [{"const": DEFAULT}, object_of(GUARD_KEYS)]}
