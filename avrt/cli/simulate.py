"""`avrt simulate SCENARIO`: what would happen, without hardware, log or stages."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from avrt.api.scenario import Scenario
from avrt.cli.output import add_json_option, add_trace_option, show, show_json
from avrt.cli.page import add_page_option, recorded_for
from avrt.errors import SpecError
from avrt.report.bounds import worst_data, worst_lines
from avrt.report.page import write_page
from avrt.report.probabilities import (
    probabilities_data,
    render_probabilities,
    render_worst,
)
from avrt.report.terminal import render
from avrt.units import format_ns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Sequence

    from avrt.api import Report
    from avrt.drivers.montecarlo import Failure, ManyRuns
    from avrt.metrics.expectations import Unmet


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "simulate",
        help="simulate a scenario: will it miss?",
        description="Run a scenario in virtual time: the scheduler that runs live and in replay, "
        "with modelled execution times, arrivals and faults. Exit 1 when an expectation of the "
        "scenario is not met. The same seed gives the same run.",
    )
    parser.add_argument("scenario", type=Path, metavar="SCENARIO", help="a scenario file (YAML)")
    parser.add_argument("--seed", type=int, metavar="N", help="in place of the scenario's own")
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="simulate N times with seeds in a row; print how probable misses are",
    )
    parser.add_argument(
        "--anomalies",
        action="store_true",
        help="simulate again with shorter execution times: does any job then end later?",
    )
    parser.add_argument("-o", "--out", type=Path, metavar="RUN", help="write the run record here")
    add_trace_option(parser)
    add_page_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    if options.runs is not None and options.out is not None:
        raise SpecError("a run record holds one run; give either --runs or --out")
    if options.report is not None and (options.runs is not None or options.anomalies):
        raise SpecError("a page shows one run; give neither --runs nor --anomalies with --report")
    if options.anomalies and (options.runs is not None or options.out is not None):
        raise SpecError("anomalies are looked for in one run; give no --runs and no --out")
    if options.trace is not None and (options.runs is not None or options.anomalies):
        raise SpecError("a trace shows one run; give --trace without --runs and --anomalies")
    scenario = Scenario.load(options.scenario)
    if options.anomalies:
        found = scenario.anomalies(seed=options.seed)
        show_json(found.data()) if options.json else show(found.render())
        return 0
    if options.runs is not None:
        return _show_many(scenario, scenario.runs(options.runs, seed=options.seed), options)
    report, unmet = _run_once(scenario, options)
    seed = int(report.summary.conditions["seed"])
    if options.json:
        more = {"scenario": scenario.spec.name, "seed": seed, "unmet": _sentences(unmet)}
        show_json({**more, **report.data})
    else:
        show(render(report.summary))
        show(f"scenario {scenario.spec.name}, seed {seed}: {_met(scenario, len(unmet))}")
    for sentence in _sentences(unmet):
        print(f"avrt: {sentence} (seed {seed})", file=sys.stderr)
    return 1 if unmet else 0


def _run_once(scenario: Scenario, options: Namespace) -> tuple[Report, tuple[Unmet, ...]]:
    with recorded_for(options.report, options.out, *scenario.files, options.trace) as record:
        report, unmet = scenario.run(seed=options.seed, out=record, trace=options.trace)
        if record != options.out:
            report.summary.record = None
        if options.report is not None:
            assert record is not None
            remarks = [f"{_met(scenario, len(unmet)).capitalize()}.", *_sentences(unmet)]
            write_page(options.report, record, report.summary, remarks=remarks)
        return report, unmet


def _show_many(scenario: Scenario, many: ManyRuns, options: Namespace) -> int:
    if options.json:
        show_json(
            {
                "scenario": scenario.spec.name,
                "first_seed": many.first_seed,
                "runs": many.count,
                "stages": probabilities_data(many.stages),
                "chains": probabilities_data(many.chains),
                "bounds": {
                    "stages": worst_data(many.bounds.stages, many.stages_worst),
                    "chains": worst_data(many.bounds.chains, many.chains_worst),
                },
                "unmet": [_failure(failure) for failure in many.failures],
            }
        )
    else:
        lasts = format_ns(scenario.spec.duration_ns)
        seeds = f"seeds {many.first_seed} to {many.first_seed + many.count - 1}"
        title = f"{scenario.spec.name}: {many.count} runs of {lasts}, {seeds}"
        show(render_probabilities(title, many.stages, many.chains))
        show(render_worst(many.bounds.stages, many.stages_worst))
        if many.chains_worst:
            show(render_worst(many.bounds.chains, many.chains_worst))
        for worst in (many.stages_worst, many.chains_worst):
            for line in worst_lines(worst):
                show(Text(line, "yellow"))
        show(_met(scenario, len(many.failures)))
    for failure in many.failures:
        where = f"in {failure.runs} of {many.count} runs, first with seed {failure.seed}"
        print(f"avrt: {where}: {failure.sentence}", file=sys.stderr)
    return 1 if many.failures else 0


def _sentences(unmet: Sequence[Unmet]) -> list[str]:
    return [item.sentence for item in unmet]


def _failure(failure: Failure) -> dict[str, object]:
    told = asdict(failure)
    return {key: told[key] for key in ("runs", "seed", "sentence")}


def _met(scenario: Scenario, unmet: int) -> str:
    count = len(scenario.spec.expect)
    return f"{count - unmet} of {count} expectations met" if count else "nothing is expected"
