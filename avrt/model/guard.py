"""What is asked of each message of a source, and what is told of those that fail: plain data.

A message is *rejected* for the first reason that holds, and no stage gets it. A sensor is in one
state at any time; which sensors are in use is the run's sensor mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from avrt.model.frozen import frozen
from avrt.units import NS_PER_MS, NS_PER_S

Fault = Literal[
    "foreign", "repeated", "order", "clock", "age",
    "damaged", "empty", "huge", "nonfinite", "mixed", "blind", "stuck",
]  # fmt: skip
Reason = Literal[Fault, "double", "early", "out"]
"""Why a message is rejected.

* foreign: it says that it is another sensor's, or something else than those before it.
* repeated: its counter is that of the message before, or its stamp and its content are.
* order: its counter or its stamp is before the one before, or the counter skips too many.
* clock: the sensor's clock has jumped against the one of whoever received it.
* age: it came too long after its capture, or before it.
* damaged: its image cannot be decoded.
* empty, huge: it holds fewer points, targets or pixels than a sensor of this kind gives, or more.
* nonfinite: too many of its points or targets are no numbers, or the reading is none.
* mixed: the times of its points do not fit their directions, as they did before.
* blind: the image is black, saturated or uniform.
* stuck: its content is that of the message before, to the bit.
* double: another than the sensor's writer sent it, which goes on: two write to one topic.
* early: it comes more often than its declared rate allows.
* out: nothing is wrong with it, but its sensor is not back in use yet.
"""
SensorState = Literal["ok", "blocked", "lost", Fault]
"""What a sensor is: `ok`, `blocked` (a warning, its messages are delivered), `lost` (silent), or
out of use for the reason for which its messages were rejected."""
IN_USE: tuple[SensorState, ...] = ("ok", "blocked")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSpec:
    """Thresholds of one source's guard; 0 switches a check off where nothing else is said.

    Attributes:
        bad: so many bad messages in a row put the sensor out of use (1 at least).
        back: so many good ones in a row put it back (1 at least).
        foreign: like `bad`, for messages that are not this sensor's.
        silent: so many declared periods without a message, and it is lost;
        silent_ns: but no sooner than after this time.
        skips_max: how many steps of the sender's counter may be missing.
        age_ns: between capture and arrival at most, either way.
        faster: how many times its declared rate it may have.
        least, most: points, targets or pixels of a message.
        nonfinite: which share of the points or targets may be no numbers; fewer are dropped.
        turning: how well the times of the points of a LiDAR that spins must fit their directions, 1
            at the best.
        stuck, blind: like `bad`, for messages with one content and for blind images.
        dark, bright: mean grey level, 0 to 255, below and above which an image is blind.
        contrast: standard deviation of grey levels below which an image, or a block of it, is
            uniform.
        covered: which share of the blocks of an image may be uniform, or of the directions in which
            a LiDAR ever had points may have none.
        covered_ns: how long more of them are before that is told.
    """

    bad: int = 3
    back: int = 10
    foreign: int = 3
    silent: int = 3
    silent_ns: int = 100 * NS_PER_MS
    skips_max: int = 3
    age_ns: int = NS_PER_S
    faster: float = 1.2
    least: int = 0
    most: int = 0
    nonfinite: float = 0.0
    turning: float = 0.0
    stuck: int = 0
    blind: int = 0
    dark: float = 10.0
    bright: float = 230.0
    contrast: float = 2.0
    covered: float = 0.0
    covered_ns: int = NS_PER_S


@frozen
class SensorRecord:
    """A sensor changed its state at `at_ns`, pipeline ns; `was` is the state before.

    The first one of a run says in which state the sensor begins: that is no change.
    """

    source: str
    at_ns: int
    state: SensorState
    was: SensorState


@frozen
class FlawRecord:
    """A message was not as it should be.

    Attributes:
        sequence: of the message, among those of its source.
        at_ns: when it came, pipeline ns.
        reason: why it was rejected; "" when it was delivered all the same.
        missing: messages that, by its sender's counter, are missing before it.
        dropped: points that were taken out of it because they are no numbers.
    """

    source: str
    sequence: int
    at_ns: int
    reason: Literal["", Reason]
    missing: int = 0
    dropped: int = 0
