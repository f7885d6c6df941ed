"""What a stage or a source runs, as text: "package.module:Name" or "file.py:Name"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.config.node import Node

_REFERENCE = re.compile(r"[\w.]+:[A-Za-z_]\w*|[^:\n]+\.py:[A-Za-z_]\w*")


def reference(node: Node) -> str:
    """Return a reference to code."""
    if not isinstance(node.value, str) or _REFERENCE.fullmatch(node.value) is None:
        raise node.fail(f'expected "package.module:Name" or "file.py:Name", found {node.shown}')
    return node.value
