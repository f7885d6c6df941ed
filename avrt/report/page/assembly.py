"""One self-contained HTML file of text, data, style and scripts.

The scripts are put together in the order of `SCRIPTS` into one function, so that they see each
other and nothing else does; no name may be defined twice. The page loads nothing: its content
security policy lets it reach no address at all.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from avrt.report.page.markup import Html, joined, script_json

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPTS = (
    "format", "theme", "state", "jobs", "canvas", "marks", "tip", "rows", "bars", "timeline",
    "gaps", "changes", "legend", "pointer", "why", "misses", "chart", "responses", "chains", "host",
    "inputs", "scene", "ground", "objects", "birdseye", "survey", "camera", "player", "keys",
    "main",
)  # fmt: skip
PLACE = re.compile(r"\{\{(\w+)\}\}")


def assemble(texts: Mapping[str, str], data: object, scene: object) -> str:
    """Return the page.

    Args:
        texts: what stands at the places of `page.html`; what is no markup is escaped.
        data: what the timeline and the charts draw.
        scene: what the views draw, or None.
    """
    given: dict[str, str] = {
        "style": Html(asset("page.css")),
        "script": Html(script()),
        "data": Html(script_json(data)),
        "scene": Html(script_json(scene)),
        **texts,
    }
    return PLACE.sub(lambda place: joined([given[place[1]]]), asset("page.html"))


def script() -> str:
    """Return all scripts as one."""
    parts = [asset(f"script/{name}.js") for name in SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();"


def asset(name: str) -> str:
    """Return a file that comes with the package."""
    return files("avrt.report.page").joinpath(name).read_text(encoding="utf-8")
