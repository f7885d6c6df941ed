"""The parts of the page that are text: header, figures, inputs, misses, notes, conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.report.page.live import host_lines
from avrt.report.page.markup import Html, joined, section, tag
from avrt.report.page.messages import GAP_STEPS
from avrt.report.page.tables import (
    chain_table,
    change_table,
    condition_list,
    miss_table,
    seconds,
    stage_table,
    topic_table,
)
from avrt.report.sensors import sensor_notes
from avrt.report.terminal import fruitless, input_notes, notes, why_late

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.changes import JobChange
    from avrt.report.page.history import JobRow
    from avrt.report.page.tables import Named
    from avrt.report.page.verdict import Verdict
    from avrt.report.summary import RunSummary

SYMBOLS = {"good": "\u2713", "bad": "\u2715", "unsure": "!"}
SPOKEN = {"good": "Kept: ", "bad": "Not kept: ", "unsure": "With reservations: "}
SENTENCES = 3
FIGURES = (
    "pipeline time",
    "jobs",
    "met",
    "late",
    "aborted",
    "skipped",
    "shed",
    "open",
    "chain limits passed",
    "(m,k) broken",
    "bounds",
    "policy",
    "execution times",
)


def header(title: str, verdict: Verdict, figures: Sequence[tuple[str, str]]) -> Html:
    """Return name, verdict and key figures."""
    sign = tag(
        "span", SYMBOLS[verdict.standing], class_=f"sign {verdict.standing}", aria_hidden="true"
    )
    spoken = tag("span", SPOKEN[verdict.standing], class_="spoken")
    more = [tag("span", line) for line in verdict.more[:SENTENCES]]
    rest = len(verdict.more) - SENTENCES
    if rest > 0:
        more.append(tag("a", f"and {rest} more below", href="#notes"))
    said = (sign, spoken, tag("strong", verdict.sentence), " ", *_spaced(more))
    line = tag("p", *said, class_="verdict")
    return joined(
        [
            tag(
                "div",
                tag("h1", title),
                line,
                tag("button", "Theme", type="button", id="theme", aria_label="Light or dark"),
                class_="title",
            ),
            tag("dl", *(_figure(name, text) for name, text in figures), class_="figures"),
        ]
    )


def _spaced(parts: Sequence[Html]) -> list[str]:
    return [piece for part in parts for piece in (part, " ")]


def _figure(name: str, text: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", text))


def key_figures(summary: RunSummary) -> list[tuple[str, str]]:
    """Return what stands at the top of the page of one run."""
    jobs = summary.figures.jobs()
    broken = sum(sum(chain.broken.values()) for chain in summary.figures.chains.values())
    windows = sum(stage.violations for stage in summary.figures.stages.values())
    figures = [
        ("pipeline time", f"{(summary.end_ns - summary.begin_ns) / 1e9:.2f} s"),
        ("jobs", f"{jobs['released']:,}"),
        ("met", f"{jobs['met']:,}"),
        *((name, f"{jobs[name]:,}") for name in ("late", "aborted", "skipped", "shed", "open")
          if jobs[name] or name == "late"),
    ]  # fmt: skip
    if summary.pipeline.chains:
        figures.append(("chain limits passed", f"{broken:,}"))
    if windows:
        figures.append(("(m,k) broken", f"{windows:,}"))
    figures += [
        ("bounds", summary.bounds.verdict),
        ("policy", summary.pipeline.policy.upper()),
        ("execution times", summary.timing),
    ]
    return figures


def pair_figures(runs: Sequence[Named]) -> list[tuple[str, str]]:
    """Return what stands at the top of a comparison: before and after."""
    before, after = (dict(key_figures(summary)) for _, summary in runs)
    names = sorted({*before, *after}, key=FIGURES.index)
    return [(n, _arrow(before.get(n, "0"), after.get(n, "0"))) for n in names]


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} \u2192 {after}"


def views(*, has_images: bool) -> Html:
    """Return the places of the bird's-eye view and, where there are images, of the camera."""
    cards = [
        _view("birdseye", "Bird\u2019s eye", "What the sensors saw and the tracks, from above.")
    ]
    if has_images:
        cards.append(_view("camera", "Camera", "The image with the boxes of the tracks."))
    return joined(cards)


def _view(name: str, title: str, label: str) -> Html:
    canvas = tag("canvas", id=f"{name}-canvas", role="img", aria_label=label)
    return tag(
        "section",
        tag("div", tag("h2", title), tag("span", id=f"{name}-note", class_="quiet"), class_="bar"),
        tag("div", canvas, class_="picture"),
        id=name,
        class_="card",
    )


def responses(runs: Sequence[Named]) -> Html:
    """Return the figures of the stages, and a place for their charts."""
    timing = ", ".join(dict.fromkeys(summary.timing for _, summary in runs))
    what = (
        f"From the release of a job to the report of its end, ms of pipeline time; execution times "
        f"are {timing}. At the right of each chart, how all responses are spread."
    )
    if len(runs) > 1:
        what += f" Grey is {runs[0][0]}, blue is {runs[1][0]}."
    return section(
        "responses",
        "Response times",
        tag("p", what, class_="quiet"),
        tag("div", id="response-charts", class_="charts"),
        stage_table(runs),
    )


def chains(runs: Sequence[Named]) -> Html:
    """Return the figures of the chains, and a place for their charts."""
    if not runs[0][1].pipeline.chains:
        return Html("")
    what = (
        "Reaction (dots) is the time from a change in the world to the first output that knows it; "
        "age (rings) is how old what an output rests on gets. Times in ms."
    )
    return section(
        "chains",
        "Chains",
        tag("p", what, class_="quiet"),
        tag("div", id="chain-charts", class_="charts"),
        chain_table(runs),
    )


def inputs(summary: RunSummary) -> Html:
    """Return what became of the inputs, and a place for them over time."""
    if not summary.pipeline.sources:
        return Html("")
    what = (
        f"Messages by arrival. A gap is more than {GAP_STEPS} times the declared period, or the "
        "usual step where that is longer, between two captures."
    )
    canvas = tag("canvas", id="input-canvas", role="img", aria_label="Messages, gaps and anomalies")
    told = [topic_table(summary)] if summary.topics else []
    elsewhere = [one for one in summary.anomalies if one.topic not in summary.topics]
    lines = [
        *(tag("li", line.plain.strip()) for line in sensor_notes(summary.figures)),
        *(
            tag("li", f"{a.kind} in {a.topic or 'file'}: {a.detail} ({a.count}x)")
            for a in elsewhere
        ),
    ]
    if lines:
        told.append(tag("ul", *lines, class_="lines"))
    return section(
        "inputs",
        "Inputs",
        tag("p", what, class_="quiet"),
        tag("div", canvas, class_="strip plot"),
        *told,
    )


def misses(rows: Sequence[JobRow], runs: int) -> Html:
    """Return the jobs that were not met, where there are any."""
    if not rows:
        return Html("")
    return section("misses", "Jobs not met", miss_table(rows, runs))


def changes(changed: Sequence[JobChange], reachable: int) -> Html:
    """Return the misses that a what-if changed, where there are any."""
    if not changed:
        return Html("")
    return section("misses", "Misses that change", change_table(changed, reachable))


def told(runs: Sequence[Named], verdict: Verdict) -> Html:
    """Return what the terminal tells below its tables, but for what stands under the inputs."""
    parts: list[Html] = []
    for name, summary in runs:
        lines = [*fruitless(summary), *why_late(summary), *notes(summary)]
        inputs_told = (*input_notes(summary), *sensor_notes(summary.figures))
        above = {line.plain for line in inputs_told} if name == runs[0][0] else set()
        above |= {line.plain for line in host_lines(summary)}
        texts = dict.fromkeys(line.plain.strip() for line in lines if line.plain not in above)
        if not texts:
            continue
        if len(runs) > 1:
            parts.append(tag("h3", name))
        parts.append(tag("ul", *(tag("li", text) for text in texts), class_="lines"))
    more = [tag("li", line) for line in verdict.more[SENTENCES:]]
    if more:
        parts.insert(0, tag("ul", *more, class_="lines"))
    return section("notes", "Notes", *parts) if parts else Html("")


def conditions(runs: Sequence[Named]) -> Html:
    """Return the conditions and digests of every run."""
    parts: list[Html] = []
    for name, summary in runs:
        if len(runs) > 1:
            parts.append(tag("h3", name))
        parts.append(condition_list(summary))
    return section("conditions", "Conditions", *parts)


def left_out(lines: Sequence[str]) -> Html:
    """Return what the page does not show of the record."""
    if not lines:
        lines = ["Nothing: every job, message and picture of the record is here."]
    items = tag("ul", *(tag("li", line) for line in lines), class_="lines")
    return section("left-out", "What this page leaves out", items)


def footer(summary: RunSummary) -> Html:
    """Return one line that says which run this is."""
    made = summary.conditions.get("date", "")
    version = summary.conditions.get("avrt", "")
    parts = (f"avrt {version}", summary.pipeline.name, seconds(summary.end_ns), made)
    return tag("p", " \u00b7 ".join(parts), class_="quiet")
