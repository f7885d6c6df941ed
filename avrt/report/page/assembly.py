"""One self-contained HTML file of text, data, style and scripts.

The scripts are put together in the order of their layout into one function, so that they see each
other and nothing else does; no name may be defined twice. The page loads nothing: its content
security policy lets it reach no address at all.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from avrt.errors import SpecError
from avrt.model.printable import encodable
from avrt.report.page.markup import Html, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PLACE = re.compile(r"\{\{(\w+)\}\}")


class Layout(NamedTuple):
    """A kind of page, by the names of its files."""

    page: str
    styles: Sequence[str]
    scripts: Sequence[str]


RUN = Layout(
    "page.html",
    ("page.css",),
    (
        "format", "paint", "theme", "state", "jobs", "canvas", "marks", "tip", "rows", "bars",
        "timeline", "gaps", "changes", "legend", "pointer", "why", "misses", "chart", "responses",
        "chains", "host", "inputs", "scene", "ground", "objects", "birdseye", "survey", "camera",
        "player", "keys", "main",
    ),
)  # fmt: skip
"""What happened in a run."""
CAMPAIGN = Layout("campaign.html", ("page.css", "campaign.css"), ("paint", "theme", "campaign"))
"""What came of a fault campaign."""


def assemble(layout: Layout, texts: Mapping[str, str]) -> str:
    """Return a page; `texts` stand at the places of its layout, what is no markup escaped."""
    given: dict[str, str] = {
        "style": Html("\n".join(asset(name) for name in layout.styles)),
        "script": Html(script(layout)),
        **texts,
    }
    return PLACE.sub(lambda place: joined([given[place[1]]]), asset(layout.page))


def script(layout: Layout) -> str:
    """Return all scripts of a page as one."""
    parts = [asset(f"script/{name}.js") for name in layout.scripts]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();"


def asset(name: str) -> str:
    """Return a file that comes with the package."""
    return files("avrt.report.page").joinpath(name).read_text(encoding="utf-8")


def write(out: Path, text: str) -> None:
    """Write a page; SpecError where it cannot be written."""
    try:
        out.write_text(encodable(text), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the page {out}: {error.strerror}") from None
