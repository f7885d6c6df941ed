"""What `metadata.yaml` says of a rosbag2: the parts that it is made of, and how many messages.

The file is a recorder's word, written when it stops. Its list of parts is followed; its counts tell
only what a part that is not there should have held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from avrt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA = "metadata.yaml"


@dataclass(frozen=True, slots=True)
class Metadata:
    """Names of the parts, in order and each once, and messages by topic in all of them."""

    parts: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


def read_metadata(folder: Path) -> Metadata | None:
    """Return what a folder's metadata says, or None when there is no such file.

    Raises:
        InputError: it cannot be understood, or names no part.
    """
    path = folder / METADATA
    if not path.exists():
        return None
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        information = data["rosbag2_bagfile_information"]
        parts = _parts(information["relative_file_paths"])
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError, RecursionError) as error:
        first, *_ = (str(error) or type(error).__name__).splitlines()
        what = f"expected a list of the bag's parts: {first}"
        raise InputError(what, str(path)) from None
    return Metadata(parts, _counts(information))


def _parts(listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise TypeError(f"relative_file_paths is {listed!r:.40}")
    names = tuple(dict.fromkeys(name for text in listed if (name := Path(text).name)))
    if not names:
        raise ValueError("relative_file_paths names none")
    return names


def _counts(information: Mapping[str, object]) -> dict[str, int]:
    """Return the promised messages by topic; what cannot be understood promises none."""
    counts: dict[str, int] = {}
    listed = information.get("topics_with_message_count")
    for item in listed if isinstance(listed, list) else ():
        match item:
            case {"topic_metadata": {"name": str(name)}, "message_count": int(count)}:
                counts[name] = max(0, count)
            case _:
                pass
    return counts
