"""What a page is made of: its runs, read from their records, and what it says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.report.page.rows import NO_HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.changes import JobChange
    from avrt.report.host import Host
    from avrt.report.page.history import History
    from avrt.report.page.scene import Scene
    from avrt.report.page.verdict import Verdict
    from avrt.report.summary import RunSummary


@dataclass(frozen=True, slots=True)
class Run:
    """One run read for the page."""

    name: str
    summary: RunSummary
    history: History
    scene: Scene | None = None
    host: Host = NO_HOST


@dataclass(frozen=True, slots=True)
class Page:
    """What is different between the page of one run and that of a what-if."""

    title: str
    verdict: Verdict
    figures: list[tuple[str, str]]
    changes: list[dict[str, object]]
    changed: Sequence[JobChange] = ()
