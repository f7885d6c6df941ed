"""HTML and JSON that no name, however odd, can break out of."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VOID = {"input"}


class Html(str):
    """Text that is markup already; any other text is escaped where it is put in."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Html:
    """Return an element; `class_` is the attribute class, `data_x` is data-x."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    if name in VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{joined(content)}</{name}>")


def joined(content: Iterable[str]) -> Html:
    """Return pieces one after the other, what is no markup escaped."""
    return Html("".join(one if isinstance(one, Html) else escape(one) for one in content))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> Html:
    """Return a table; the first columns are text, the others numbers, which stand to the right."""

    def cells(kind: str, row: Sequence[str]) -> Html:
        found: list[Html] = []
        for place, cell in enumerate(row):
            scope = {"scope": "col"} if kind == "th" else {}
            side = {} if place < text_columns else {"class_": "number"}
            found.append(tag(kind, cell, **scope, **side))
        return tag("tr", *found)

    body = [cells("td", row) for row in rows]
    inner = tag("table", tag("thead", cells("th", head)), tag("tbody", *body))
    return tag("div", inner, class_="table")


def section(name: str, title: str, *content: str) -> Html:
    """Return a part of the page with its heading."""
    return tag(
        "section",
        tag("h2", title, id=f"{name}-title"),
        *content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def script_json(data: object) -> str:
    """Return data as JSON that may stand in a script element: nothing in it ends one."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
