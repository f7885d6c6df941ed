"""What a job made, from its end until consumers may read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.message import Message, Origin, Stamp, merge_origins
from avrt.payload.shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.exec.runner import Result
    from avrt.model.spec import StageSpec

    Inputs = Mapping[str, Message[object] | None]


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished output that is not published yet."""

    stage: str
    payload: object
    digest: bytes
    capture_ns: int
    capture_end_ns: int
    frame: str
    epoch: int
    origins: Mapping[str, Origin]
    degraded: bool

    def publish(self, sequence: int, publish_ns: int) -> Message[object]:
        stamp = Stamp(
            self.stage,
            sequence,
            self.capture_ns,
            self.capture_end_ns,
            publish_ns,
            self.frame,
            self.epoch,
        )
        return Message(stamp, self.payload, self.origins, self.degraded)


def draft_of(
    stage: StageSpec,
    inputs: Inputs,
    result: Result,
    *,
    frame: str,
    release_ns: int,
    start_ns: int,
) -> Draft:
    """Stamp an output: it carries its trigger's capture time, a timer's the time it read.

    Args:
        stage: whose output it is.
        inputs: what the job read, by name.
        result: what it made.
        frame: its coordinate frame; "" for that of its trigger.
        release_ns: its nominal release, pipeline ns.
        start_ns: its dispatch, pipeline ns.
    """
    given = [message for message in inputs.values() if message is not None]
    trigger = inputs.get(stage.trigger) if stage.trigger is not None else None
    if trigger is None and given and stage.sync is not None:
        trigger = min(given, key=lambda message: message.stamp.capture_ns)
    if trigger is not None:
        capture_ns, capture_end_ns = trigger.stamp.capture_ns, trigger.stamp.capture_end_ns
    else:
        bound_early = stage.publish == "at_deadline" or stage.redundancy is not None
        capture_ns = release_ns if bound_early else start_ns
        capture_end_ns = capture_ns
    origins = merge_origins(message.origins for message in given)
    if not stage.inputs:
        origins = {stage.name: Origin(capture_ns, capture_ns)}
    return Draft(
        stage=stage.name,
        payload=result.payload,
        digest=result.digest,
        capture_ns=capture_ns,
        capture_end_ns=capture_end_ns,
        frame=frame or (trigger.stamp.frame if trigger is not None else ""),
        origins=origins,
        epoch=epoch_of(stage, inputs),
        degraded=len(given) < len(stage.inputs) or any(message.degraded for message in given),
    )


def epoch_of(stage: StageSpec, inputs: Inputs) -> int:
    """Return the epoch that a job belongs to: its trigger's, without one the latest it reads of."""
    trigger = inputs.get(stage.trigger) if stage.trigger is not None else None
    if trigger is not None:
        return trigger.stamp.epoch
    given = inputs.values()
    return max((message.stamp.epoch for message in given if message is not None), default=0)


def input_shape(stage: StageSpec, inputs: Inputs) -> str:
    """Return how large the input is that releases a job, or what a set or a sample holds."""
    names = [stage.trigger] if stage.trigger in inputs else list(inputs)
    given = [inputs[name] for name in names if name is not None]
    return ", ".join(shape_of(message.payload) for message in given if message is not None)
