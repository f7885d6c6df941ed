"""A live run holds no more after some thousand frames than after fewer."""

import gc
import threading
from collections import Counter, deque
from functools import partial

import pytest
from live_sources import Paced
from small_stages import FOREVER_S, total

from avrt.drivers.flight import FlightLimits

FRAMES = 5_000
LOOKS = (2_000, 4_500)
A_FRAME = 0.5  # of a thing; what is under way differs by some hundred things
A_FEW = 50
ROUNDS_MAX = 1_000
WINDOW_NS = 10_000_000  # of what keeps the last seconds; a job is kept until it is due

pytestmark = [pytest.mark.live, pytest.mark.slow]


def things():
    """Return how many objects and entries of containers there are, by class."""
    gc.collect()
    found = Counter()
    for thing in gc.get_objects():
        found[type(thing).__name__] += 1
        if issubclass(type(thing), dict | list | set | deque):  # asks the thing itself nothing
            found[f"entries of {type(thing).__name__}"] += len(thing)
    return found


def settle(backlog):
    """Wait until hardly anything waits to be written: each round leaves less behind."""
    for _ in range(ROUNDS_MAX):
        written = threading.Event()
        backlog.put(written.set)
        assert written.wait(FOREVER_S)
        if len(backlog._calls) < A_FEW:
            return
    pytest.fail(f"{len(backlog._calls)} calls still wait to be written")


@pytest.mark.parametrize("is_recorded", [False, True])
def test_nothing_grows_with_the_frames(make_pipeline, tmp_path, monkeypatch, is_recorded):
    from avrt.drivers import live  # noqa: PLC0415 - brings torch

    seen, backlogs = [], []

    class Kept(live.Passing):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            backlogs.append(self)

    monkeypatch.setattr(live, "Passing", Kept)
    monkeypatch.setattr("avrt.metrics.streams.LOOK_BACK_NS", WINDOW_NS)
    monkeypatch.setattr("avrt.drivers.wall.LATE_KEPT", A_FEW)
    limits = partial(FlightLimits, before_ns=WINDOW_NS, after_ns=WINDOW_NS)
    monkeypatch.setattr("avrt.api.flights.FlightLimits", limits)

    def last(middle):
        frame = middle.stamp.sequence
        if frame in LOOKS:
            settle(backlogs[0])
            seen.append(things())
        Paced.turns.release()
        return frame

    def beat():
        return 1

    pipeline = make_pipeline()
    keys = {"type": "lidar", "run": "live_sources:Paced", "params": {"count": FRAMES}}
    pipeline._sources["lidar"] = keys
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="20 ms")
    pipeline.add(last, inputs={"middle": "total"}, wcet="5 ms", deadline="20 ms")
    pipeline.add(beat, period="10 ms", wcet="1 ms", deadline="20 ms")
    pipeline.chain("chain", path=["lidar", "total", "last"], reaction="50 ms", age="50 ms")
    options = {"record" if is_recorded else "flight": tmp_path / "out.mcap"}
    report = pipeline.run(**options)
    assert report.summary.figures.stages["last"].jobs()["released"] == FRAMES
    early, late = seen
    frames = LOOKS[1] - LOOKS[0]
    assert not {name: n for name, n in (late - early).items() if n > A_FRAME * frames}
