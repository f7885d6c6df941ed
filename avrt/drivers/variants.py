"""What a job takes in virtual time when a variant of its stage runs: in proportion to its wcet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec


class VariantCosts:
    """The wcets of all stages and their variants, by task."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._wcets_ns: dict[tuple[str, str], int] = {}
        for stage in spec.stages:
            for task in stage.task_names:
                self._wcets_ns[task, ""] = stage.wcet_ns
                for variant in stage.variants:
                    self._wcets_ns[task, variant.name] = variant.wcet_ns or stage.wcet_ns

    def scaled_ns(self, cost_ns: int, task: str, variant: str, known: str = "") -> int:
        """Return what a job takes that takes `cost_ns` as the variant `known`, rounded up.

        One that this pipeline does not have tells nothing of others: then the cost stays.
        """
        known_ns = self._wcets_ns.get((task, known))
        if variant == known or known_ns is None:
            return cost_ns
        return -(-cost_ns * self._wcets_ns[task, variant] // known_ns)
