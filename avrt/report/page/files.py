"""Writes the page of a run, or of a what-if with both of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.logs.record.run_file import RunFile
from avrt.report.host import read_host
from avrt.report.outputs import keep_apart
from avrt.report.page import live, sections
from avrt.report.page.assembly import RUN, assemble, write
from avrt.report.page.charts import response_counts
from avrt.report.page.history import History
from avrt.report.page.left_out import left_out
from avrt.report.page.markup import Html, joined, script_json
from avrt.report.page.rows import changes_data, run_data
from avrt.report.page.run import Page, Run
from avrt.report.page.scene import read_scene
from avrt.report.page.steps import steps
from avrt.report.page.verdict import verdict_of, what_if_verdict
from avrt.report.summary import read_summary

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from avrt.report.page.scene import Scene
    from avrt.report.summary import RunSummary
    from avrt.report.whatif import WhatIfReport

RUNS = ("recorded", "what if")
CHANGES_MAX = 2_000


def write_page(
    out: str | Path,
    record: str | Path,
    summary: RunSummary | None = None,
    *,
    remarks: Sequence[str] = (),
) -> None:
    """Write the page of one run.

    Args:
        out: where; the file is overwritten.
        record: the run record.
        summary: of the run, where it is known already; read from the record by default.
        remarks: what else belongs to the verdict, a sentence each.

    Raises:
        SpecError: the page cannot be written, or would overwrite the record.
        InputError: the file is no run record.
    """
    path = Path(record)
    known = read_summary(path) if summary is None else summary
    run = _read(known.pipeline.name, known, path, pictures=True)
    verdict = verdict_of(known, remarks)
    page = Page(_title(known), verdict, sections.key_figures(known), [])
    _write(Path(out), path, _html(page, [run]))


def write_what_if_page(
    out: str | Path, record: str | Path, changed: str | Path, report: WhatIfReport
) -> None:
    """Write the page of a what-if: the recorded run and the repeated one.

    Raises:
        SpecError: the page cannot be written, or would overwrite the record.
        InputError: a file is no run record.
    """
    changes = changes_data(report.misses[:CHANGES_MAX])
    runs: list[Run] = []
    for name, side, path in zip(RUNS, ("before", "after"), (record, changed), strict=True):
        jobs = [getattr(change, side) for change in report.misses[:CHANGES_MAX]]
        wanted = {(job.task, job.index) for job in jobs if job is not None}
        summary = read_summary(path)
        summary.record = str(record) if side == "before" else report.out
        first = name == RUNS[0]
        runs.append(_read(name, summary, Path(path), pictures=first, keep=wanted, runs=len(RUNS)))
    title = f"{_title(runs[0].summary)}, what if"
    named = [(run.name, run.summary) for run in runs]
    figures = sections.pair_figures(named)
    page = Page(title, what_if_verdict(report), figures, changes, report.misses)
    _write(Path(out), Path(record), _html(page, runs))


def _title(summary: RunSummary) -> str:
    """Return the name of the pipeline, with that of the scenario where it was simulated."""
    parts = [summary.pipeline.name, summary.conditions.get("scenario", "")]
    return ": ".join(part for part in parts if part)


def _read(
    name: str,
    summary: RunSummary,
    path: Path,
    *,
    pictures: bool,
    keep: Collection[tuple[str, int]] = (),
    runs: int = 1,
) -> Run:
    """Return a run of a record with its history, and its pictures where they are wanted."""
    longest = {
        (stage.highs[-1].task, stage.highs[-1].index)
        for stage in summary.figures.stages.values()
        if stage.highs
    }
    wanted = {*longest, *keep}
    history = History(summary.pipeline, summary.end_ns, wanted, runs, summary.begin_ns)
    with RunFile(path) as file:
        history.read(file)
        host = read_host(file)
        scene = None
        if pictures:
            scene = read_scene(file, path, summary.pipeline, history.messages)
    return Run(name, summary, history, scene, host)


def _html(page: Page, runs: Sequence[Run]) -> str:
    named = [(run.name, run.summary) for run in runs]
    first, last = runs[0], runs[-1]
    scene = None if first.scene is None else first.scene.data
    missed = [row for row in last.history.jobs if row.record.outcome != "met"]
    told = [
        sections.changes(page.changed, len(page.changes)) or sections.misses(missed, len(runs)),
        sections.responses(named),
        sections.chains(named),
        live.streams(named),
        live.host(runs),
        sections.inputs(first.summary),
        sections.told(named, page.verdict),
        sections.conditions(named),
        sections.left_out(left_out(runs, page)),
    ]
    texts: dict[str, str] = {
        "title": f"{page.title} - avrt",
        "classes": " ".join(_classes(first.scene, runs)),
        "header": sections.header(page.title, page.verdict, page.figures),
        "views": Html("")
        if first.scene is None
        else sections.views(has_images=first.scene.has_images),
        "sections": joined(told),
        "footer": sections.footer(first.summary),
    }
    data: dict[str, object] = {
        "runs": [run_data(run.name, run.summary, run.history, run.host) for run in runs],
        "changes": page.changes,
        "responses": response_counts([run.summary.figures for run in runs]),
        **steps(
            first.summary.pipeline,
            first.history,
            first.scene,
            max(run.summary.end_ns for run in runs),
            min(run.summary.begin_ns for run in runs),
        ),
    }
    texts["data"] = Html(script_json(data))
    texts["scene"] = Html(script_json(scene))
    return assemble(RUN, texts)


def _classes(scene: Scene | None, runs: Sequence[Run]) -> list[str]:
    """Return what the style has to know: how many runs there are, and what views."""
    found = ["pair" if len(runs) > 1 else "single"]
    if scene is None:
        found.append("no-scene")
    elif not scene.has_images:
        found.append("no-camera")
    return found


def _write(out: Path, record: Path, text: str) -> None:
    keep_apart("the page", out, [record])
    write(out, text)
