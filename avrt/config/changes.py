"""What a what-if changes in a pipeline: `NAME=VALUE` texts, read and checked like the file itself.

Values go through the readers of the pipeline file and the changed pipeline through
`avrt.model.graph.check`, so what a file may not say a what-if may not either. Costs are no part of
a pipeline: they change what the recorded work takes, `+20%` of it or a fixed `12 ms`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.config.node import from_python
from avrt.config.reader import duration, one_of, rate
from avrt.errors import SpecError, did_you_mean
from avrt.model.graph import check
from avrt.model.segments import with_wcet
from avrt.model.spec import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec, StageSpec

_SHARE = re.compile(r"([+-]\d{1,6}(?:\.\d{1,6})?)\s*%")
_WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class CostRule:
    """What a stage's jobs take instead of what they took: a share of it, or the same for all."""

    share: Fraction = Fraction(1)
    fixed_ns: int | None = None

    def apply(self, cost_ns: int) -> int:
        """Return the changed cost, at least 1 ns."""
        return max(1, round(cost_ns * self.share)) if self.fixed_ns is None else self.fixed_ns


@dataclass(frozen=True, slots=True)
class Changes:
    """What is asked for, as the user wrote it; each text is `NAME=VALUE`."""

    policy: str | None = None
    cost: tuple[str, ...] = ()
    wcet: tuple[str, ...] = ()
    deadline: tuple[str, ...] = ()
    rate: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """Return every change in words, in the order of the fields."""
        policy = [] if self.policy is None else [f"policy {self.policy}"]
        groups = {
            "cost": self.cost,
            "wcet": self.wcet,
            "deadline": self.deadline,
            "rate": self.rate,
            "device": self.device,
            "slots": self.slots,
        }
        return policy + [f"{key} {text}" for key, texts in groups.items() for text in texts]


def change_pipeline(spec: PipelineSpec, changes: Changes) -> PipelineSpec:
    """Return the changed pipeline.

    A table stays as it is, right or wrong; with any change of the policy, to "table" too, it goes.

    Raises:
        SpecError: a change cannot be read, or the changed pipeline means nothing.
    """
    stages = {stage.name: stage for stage in spec.stages}
    for name, node in _assigned("wcet", changes.wcet, stages):
        stages[name] = with_wcet(stages[name], duration(node))
    for name, node in _assigned("deadline", changes.deadline, stages):
        stages[name] = replace(stages[name], deadline_ns=duration(node))
    for name, node in _assigned("rate", changes.rate, stages):
        stages[name] = _with_rate(stages[name], node)
    for name, node in _assigned("device", changes.device, stages):
        stages[name] = _with_device(stages[name], node)
    devices = {device.name: device for device in spec.devices}
    for name, node in _assigned("slots", changes.slots, devices, "device"):
        devices[name] = replace(devices[name], slots=_count(node))
    changed = replace(spec, devices=tuple(devices.values()), stages=tuple(stages.values()))
    if changes.policy is not None:
        word = one_of(*POLICIES)(from_python(changes.policy, ("policy",)))
        policy = next(policy for policy in POLICIES if policy == word)
        changed = replace(changed, policy=policy, table=None)
    check(changed)
    return changed


def cost_rules(spec: PipelineSpec, texts: Iterable[str]) -> dict[str, CostRule]:
    """Return how the costs of stages change, by stage.

    Raises:
        SpecError: there is no such stage, or a change cannot be read.
    """
    stages = [stage.name for stage in spec.stages]
    return {name: _cost_rule(node) for name, node in _assigned("cost", texts, stages)}


def cost_change(rules: Mapping[str, CostRule]) -> Callable[[str, int], int]:
    """Return the function from a stage and what its job took, ns, to what it is to take."""

    def change(stage: str, cost_ns: int) -> int:
        rule = rules.get(stage)
        return cost_ns if rule is None else rule.apply(cost_ns)

    return change


def _assigned(
    key: str, texts: Iterable[str], names: Iterable[str], what: str = "stage"
) -> list[tuple[str, Node]]:
    """Return the name and the value of every `NAME=VALUE`; no name may come twice."""
    known = list(names)
    found: dict[str, Node] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise SpecError(f"expected {what.upper()}=VALUE, found {text!r}", (key,))
        if name not in known:
            raise SpecError(f"no {what} named {name!r}; {did_you_mean(name, known)}", (key,))
        if name in found:
            raise SpecError(f"{name!r} is given twice; give it once", (key,))
        found[name] = from_python(value, (key, name))
    return list(found.items())


def _cost_rule(node: Node) -> CostRule:
    match = _SHARE.fullmatch(node.text)
    if match is None and "%" not in node.text:
        fixed_ns = duration(node)
        if fixed_ns < 1:
            raise node.fail(f"expected more than 0, found {node.shown}")
        return CostRule(fixed_ns=fixed_ns)
    share = None if match is None else 1 + Fraction(match[1]) / 100
    if share is None or share <= 0:
        raise node.fail(f"expected a change above -100 %, such as +20%, found {node.shown}")
    return CostRule(share)


def _with_device(stage: StageSpec, node: Node) -> StageSpec:
    """Return a stage on another device: with segments on one for each, or on one for all."""
    devices = [name.strip() for name in node.text.split(",")]
    count = len(stage.segments)
    if len(devices) not in {1, count}:
        several = f", or {count}" if count > 1 else ""
        raise node.fail(f"expected one device{several}, found {len(devices)}")
    if len(devices) < count:
        devices *= count
    segments = tuple(
        replace(segment, device=device)
        for segment, device in zip(stage.segments, devices, strict=False)
    )
    return replace(stage.on(devices[0]), segments=segments)


def _with_rate(stage: StageSpec, node: Node) -> StageSpec:
    """Return a timer stage with another period; what releases the others is in the record."""
    if stage.period_ns is None:
        what = "its inputs release it, as they came in the record; only a stage with a 'period'"
        raise node.fail(f"{what} has a rate to change")
    return replace(stage, period_ns=rate(node))


def _count(node: Node) -> int:
    if _WHOLE.fullmatch(node.text) is None:
        raise node.fail(f"expected a whole number, found {node.shown}")
    return int(node.text)
