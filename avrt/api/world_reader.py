"""The built-in world as a log that is made while it is read, by a process of its own.

In this process the world would hold the interpreter for most of the time, and stages with it. The
other one makes it as fast as it can, into a temporary file. Where the pipeline leaves it a core, a
run begins once the world is so far ahead that it will not be caught up with; elsewhere it would
take its core from the stages, so the run begins when the world is made: `wait_ahead`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self, cast

from avrt import clock
from avrt.errors import InputError
from avrt.logs.raw import RawMessage
from avrt.logs.truth import truth_topics
from avrt.units import NS_PER_S
from avrt.world import SECONDS_MAX, make_scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from avrt.api.world_process import Header
    from avrt.logs.raw import Anomaly, TopicInfo

POLL_SECONDS = 0.02
SHARE_LEFT = 0.6
"""Of the speed at which the world is made alone, what is left of it beside a pipeline."""


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
        self._all_ns = round(seconds * passes * NS_PER_S)
        self._folder = TemporaryDirectory(prefix="avrt-")
        path = Path(self._folder.name) / "world"
        path.touch()
        given = [str(path), scene, str(seed), str(seconds), str(passes)]
        command = [sys.executable, "-m", "avrt.api.world_process", *given]
        self._process = subprocess.Popen(  # noqa: S603 - our own
            command, stdout=subprocess.PIPE, start_new_session=True
        )
        self._made_ns: list[tuple[int, int]] = []  # host time, how far it was then
        self._listener = threading.Thread(target=self._listen, name="avrt-world", daemon=True)
        self._listener.start()
        self._file = path.open("rb")
        with ExitStack() as undo:
            undo.callback(self.close)
            self._drives = 0
            self._topics, self._channels, self._latched = cast("Header", self._load(self._file))
            self._aside_topics = set(truth_topics(self))
            self._folder.cleanup()  # both have the file open: a run that is killed leaves none
            undo.pop_all()

    def wait_ahead(
        self,
        until_ns: int | None,
        tell: Callable[[int], None] | None = None,
        *,
        has_core: bool,
    ) -> None:
        """Wait until a run will not catch up with the world.

        Args:
            until_ns: how long the run is; as long as everything when None.
            has_core: whether the pipeline leaves the world a core.
            tell: is told how far the world is, ns.

        Raises:
            InputError: the world cannot be made.
        """
        share_left = SHARE_LEFT if has_core else 0.0
        all_ns = self._all_ns if until_ns is None else min(until_ns, self._all_ns)
        while not self._is_ahead(all_ns, share_left):
            if tell is not None and self._made_ns:
                tell(self._made_ns[-1][1])
            self._wait()

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
        while (item := self._load(self._file)) is not None:
            topic, log_ns, data = cast("tuple[str, int, bytes]", item)
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
        self._listener.join()
        self._file.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _is_ahead(self, all_ns: int, share_left: float) -> bool:
        """Return whether all is made, or will be in time at a share of the speed so far."""
        made = self._made_ns
        if not made:
            return False
        (first_ns, from_ns), (last_ns, to_ns) = made[0], made[-1]
        speed = (to_ns - from_ns) / max(1, last_ns - first_ns)
        return to_ns >= all_ns * (1 - min(1.0, share_left * speed))

    def _listen(self) -> None:
        """Note how far the world is."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._made_ns.append((clock.now_ns(), int(line)))

    def _load(self, file: BinaryIO) -> object:
        """Return the next item, waiting until it is whole."""
        while True:
            place = file.tell()
            code = self._process.poll()  # before reading: what it wrote until its end is there
            try:
                return pickle.load(file)  # noqa: S301 - our own process wrote it
            except (EOFError, pickle.UnpicklingError):
                if code is not None:
                    raise _ended(code) from None
                file.seek(place)
                self._wait()

    def _wait(self) -> None:
        """Wait a little for the process, which must be there or have done everything."""
        if code := self._process.poll():
            raise _ended(code)
        clock.sleep(POLL_SECONDS)


def _ended(code: int) -> InputError:
    what = f"the process that makes it ended with exit code {code}"
    return InputError(what, "the built-in world")
