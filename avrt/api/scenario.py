"""A scenario: a pipeline that is simulated, and what must come of it.

scenario = Scenario.load("scenarios/overload.yaml")
report, unmet = scenario.run(seed=1)
print(report, *unmet)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.analysis.planner import planned
from avrt.api.report import Report
from avrt.config.scenario import LoadedScenario
from avrt.drivers.anomalies import find_anomalies
from avrt.drivers.conditions import read_conditions
from avrt.drivers.montecarlo import run_many
from avrt.drivers.recorded import prepare
from avrt.drivers.recording import recorded_run
from avrt.drivers.scenario import run_scenario
from avrt.errors import SpecError
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.recorded import overhead_conditions
from avrt.logs.record.run_record import RunRecord
from avrt.model.codec import encode, to_json
from avrt.report.anomalies import AnomalyReport
from avrt.report.outputs import keep_apart
from avrt.report.summary import RunSummary
from avrt.report.trace.writing import TraceWriter

if TYPE_CHECKING:
    from avrt.drivers.montecarlo import ManyRuns
    from avrt.drivers.scenario import ScenarioRun
    from avrt.logs.record.journal import Watch
    from avrt.metrics.expectations import Unmet

TIMING = "modelled"
RUNS_MAX = 1_000_000
SEED_MAX = 2**63 - 1


class Scenario:
    """A scenario from a file, with what it takes from runs and logs."""

    def __init__(self, loaded: LoadedScenario) -> None:
        self._loaded = loaded
        pipeline = loaded.pipeline
        try:
            spec = planned(pipeline.spec)
        except SpecError as error:
            raise pipeline.placed(error) from None
        self.spec = replace(loaded.spec, pipeline=spec)
        self._prepared = prepare(self.spec)

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """Read a scenario file, its pipeline, and the runs and logs that it names.

        Raises:
            SpecError: says in one line where and what is wrong.
            InputError: a run or a log cannot be used.
        """
        return cls(LoadedScenario(Path(path)))

    @property
    def files(self) -> tuple[Path, ...]:
        """What it reads: its own file, its pipeline, and the runs and logs that it names."""
        return (*self._loaded.paths, *self._prepared.files)

    def run(
        self,
        *,
        seed: int | None = None,
        out: str | Path | None = None,
        trace: str | Path | None = None,
    ) -> tuple[Report, tuple[Unmet, ...]]:
        """Simulate once; return the report and the expectations that were not met.

        Args:
            seed: in place of the scenario's own.
            out: where to write the run record; none is written by default.
            trace: where to write a trace for Perfetto; none is written by default.
        """
        seed = self._seed(seed)
        with TraceWriter(trace, (*self.files, out)) as traced:
            report, unmet = self._run(seed, out, traced.watch)
            traced.write(self.spec.pipeline)
        return report, unmet

    def _run(
        self, seed: int, out: str | Path | None, watch: Watch | None
    ) -> tuple[Report, tuple[Unmet, ...]]:
        spec = self.spec
        conditions = read_conditions(
            timing=TIMING,
            scenario=spec.name,
            seed=str(seed),
            duration_ns=str(spec.duration_ns),
            **overhead_conditions(spec.overheads),
        )
        if out is None:
            result = run_scenario(self._prepared, seed, watch=watch)
            return Report(self._summary(result, conditions)), result.unmet
        keep_apart("the run record", out, self.files)
        try:
            with RunRecord(
                out,
                zero_ns=0,
                conditions=conditions,
                pipeline_json=to_json(encode(spec.pipeline)),
                pipeline_yaml=self._loaded.pipeline.text,
            ) as record:
                result = run_scenario(
                    self._prepared, seed, lambda at_ns, line: record.journal(line, at_ns), watch
                )
                summary = self._summary(result, conditions)
                summary.record = str(out)
                record.close({"decisions": result.decisions, "run": to_json(summary.data())})
        except OSError as error:
            raise SpecError(f"cannot write the run record {out}: {error.strerror}") from None
        return Report(summary), result.unmet

    def runs(self, count: int, *, seed: int | None = None) -> ManyRuns:
        """Simulate with `count` seeds in a row, on every core; see `drivers.montecarlo`.

        Processes are spawned: a script that calls this does so under `if __name__ == "__main__"`.
        """
        if not 1 <= count <= RUNS_MAX:
            raise SpecError(f"expected 1 to {RUNS_MAX} runs, found {count}")
        return run_many(self._prepared, self._seed(seed), count)

    def anomalies(self, *, seed: int | None = None) -> AnomalyReport:
        """Simulate once and again with less work: does anything then end later?"""
        seed, lines = self._seed(seed), list[str]()
        run_scenario(self._prepared, seed, lambda _at_ns, line: lines.append(line))
        entries = [parse_entry(line) for line in lines]
        recorded = recorded_run(self.spec.pipeline, entries, self.spec.name)
        cuts = [(cut.what, cut.later) for cut in find_anomalies(recorded, self.spec.pipeline)]
        return AnomalyReport(self.spec.name, [f"seed {seed}"], cuts)

    def _seed(self, seed: int | None) -> int:
        if seed is not None and not 0 <= seed <= SEED_MAX:
            raise SpecError(f"expected a seed from 0 to {SEED_MAX}, found {seed}")
        return self.spec.seed if seed is None else seed

    def _summary(self, result: ScenarioRun, conditions: dict[str, str]) -> RunSummary:
        return RunSummary(
            self.spec.pipeline,
            result.figures,
            TIMING,
            conditions,
            end_ns=result.end_ns,
            decisions=result.decisions,
        )
