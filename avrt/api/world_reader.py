"""The built-in world as a log that is made while it is read, by a process of its own.

In this process the world would hold the interpreter for two thirds of the time, and stages with it.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING, Self, cast

from avrt.errors import InputError
from avrt.logs.raw import RawMessage
from avrt.logs.truth import truth_topics
from avrt.world import SECONDS_MAX, make_scene

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from avrt.api.world_process import Header
    from avrt.logs.raw import Anomaly, TopicInfo


class WorldReader:
    """Drives through a scene, one a pass over the "log"; a log reader like any other.

    Args:
        scene: a name of `avrt.world.SCENES`.
        seed: of the first drive; each following one has the next.
        seconds: of one drive.
        passes: how many drives are made.

    Attributes:
        aside: ground truth of the first drive that came meanwhile, for whoever records it.

    Raises:
        SpecError: there is no such scene.
    """

    def __init__(
        self, scene: str, seed: int = 0, seconds: float = SECONDS_MAX, passes: int = 1
    ) -> None:
        make_scene(scene, seed)
        self.anomalies: list[Anomaly] = []
        self.aside: deque[RawMessage] = deque()
        module = "avrt.api.world_process"
        command = [sys.executable, "-m", module, scene, str(seed), str(seconds), str(passes)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        self._topics, self._channels, self._latched = self._read_header()
        self._drives = 0
        self._aside_topics = set(truth_topics(self))

    def topics(self) -> dict[str, TopicInfo]:
        return self._topics

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        """Yield the messages of the next drive; latched ones alone do not begin it."""
        wanted = set(self._topics if topics is None else topics)
        latched = [raw for raw in self._latched if raw.topic in wanted]
        yield from latched
        if wanted <= {raw.topic for raw in self._latched}:
            return
        self._drives += 1
        counts = dict.fromkeys(self._topics, 0)
        while (item := self._read()) is not None:
            topic, log_ns, data = item
            raw = RawMessage(self._channels[topic], log_ns, log_ns, counts[topic], data)
            counts[topic] += 1
            if topic in wanted:
                yield raw
            elif topic in self._aside_topics and self._drives == 1:
                self.aside.append(raw)

    def close(self) -> None:
        """End the process; harmless when repeated."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read_header(self) -> Header:
        return cast("Header", self._load())

    def _read(self) -> tuple[str, int, bytes] | None:
        return cast("tuple[str, int, bytes] | None", self._load())

    def _load(self) -> object:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)  # noqa: S301 - our own process wrote it
        except (EOFError, pickle.UnpicklingError, ValueError):
            code = self._process.poll()
            what = f"the process that makes the world ended (exit code {code})"
            raise InputError(what, "the built-in world") from None
