"""What a job takes in virtual time when a variant of its stage runs: in proportion to its wcet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec


class VariantCosts:
    """The wcets of all variants, by task."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._wcets_ns = {
            (task, variant.name): (variant.wcet_ns or stage.wcet_ns, stage.wcet_ns)
            for stage in spec.stages
            for variant in stage.variants
            for task in stage.task_names
        }

    def scaled_ns(self, cost_ns: int, task: str, variant: str) -> int:
        """Return what a job takes that takes `cost_ns` as declared, rounded up."""
        if not variant:
            return cost_ns
        own_ns, declared_ns = self._wcets_ns[task, variant]
        return -(-cost_ns * own_ns // declared_ns)
