"""The world that is made while it is read is the drive that is written, and says when it is not."""

import os
import threading
from pathlib import Path

import pytest

from avrt.api.drive import write_drive
from avrt.api.world_reader import SHARE_LEFT, WorldReader
from avrt.errors import InputError, SpecError
from avrt.logs.reader import open_log

SECONDS = 1.0
NS_PER_S = 10**9


def contents(messages):
    return [(raw.topic, raw.type, raw.log_ns, bytes(raw.data)) for raw in messages]


@pytest.mark.slow
def test_it_gives_what_the_written_drive_holds(tmp_path):
    path = tmp_path / "drive.mcap"
    write_drive(path, "cut_in", seed=3, seconds=SECONDS)
    with open_log(path) as log, WorldReader("cut_in", 3, SECONDS, 2) as world:
        wanted = [t for t in world.topics() if not t.startswith("/ground_truth")]
        assert contents(world.messages(["/tf_static"])) == contents(log.messages(["/tf_static"]))
        found = contents(world.messages(wanted))
        assert sorted(found) == sorted(contents(log.messages(wanted)))
        counts = {topic: info.messages for topic, info in world.topics().items()}
        assert counts == {topic: info.messages for topic, info in log.topics().items()}
        truth = contents(world.aside)
        assert truth == contents(log.messages(["/ground_truth/objects"]))
        second = contents(world.messages(wanted))  # another seed, another drive
        assert len(second) == pytest.approx(len(found), abs=3)
        assert second != found


@pytest.mark.slow
def test_a_process_that_ends_too_soon_is_told():
    with WorldReader("cut_in", 0, SECONDS, 5) as world:
        world._process.kill()
        world._process.wait()
        with pytest.raises(InputError, match="the process that makes it ended with exit code -9"):
            list(world.messages())


@pytest.mark.slow
def test_one_that_was_read_to_its_end_is_not_waited_for():
    with WorldReader("cut_in", 0, SECONDS) as world:
        assert list(world.messages())
        with pytest.raises(InputError, match="ended with exit code 0"):
            list(world.messages())


@pytest.mark.slow
def test_a_drive_without_a_cloud_is_waited_for_to_its_end():
    with WorldReader("cut_in", 0, 0.01) as world:
        world.wait_ahead(None, has_core=True)
        assert list(world.messages())


@pytest.mark.slow
def test_it_leaves_nothing_if_killed_and_hears_no_ctrl_c_of_the_run():
    """A world that Ctrl-C ended was waited for for ever where the program handles Ctrl-C itself."""
    with WorldReader("cut_in", 0, SECONDS) as world:
        assert os.getsid(world._process.pid) != os.getsid(0)
        assert not Path(world._folder.name).exists()
        assert list(world.messages())


def test_one_that_is_interrupted_while_it_begins_is_closed(monkeypatch):
    made = []

    def interrupt(world, _file):
        made.append(world)
        raise KeyboardInterrupt

    monkeypatch.setattr(WorldReader, "_load", interrupt)
    with pytest.raises(KeyboardInterrupt):
        WorldReader("cut_in")
    assert made[0]._process.returncode is not None
    assert not made[0]._listener.is_alive()
    assert made[0]._file.closed


def test_a_scene_that_there_is_none_of_is_refused():
    with pytest.raises(SpecError, match="moon"):
        WorldReader("moon")


class Made(WorldReader):
    """A reader whose world is so far at such times, and goes on with each wait."""

    def __init__(self, seconds, speed):
        self._all_ns = seconds * NS_PER_S
        self._made_ns = [(0, 0)]
        self._speed = speed
        self.waits = 0

    def _wait(self):
        self.waits += 1
        self._made_ns.append((self.waits * NS_PER_S, self.waits * self._speed * NS_PER_S))


@pytest.mark.parametrize(
    ("speed", "has_core", "ahead"),
    [(1, False, 60), (5, False, 60), (2, True, 2), (1, True, 60 * (1 - SHARE_LEFT))],
)
def test_a_run_begins_once_it_will_not_catch_up(speed, has_core, ahead):
    """Without a core of its own the world is made before the run."""
    world, told = Made(60, speed), []
    world.wait_ahead(None, told.append, has_core=has_core)
    made_s = world._made_ns[-1][1] / NS_PER_S
    assert ahead <= made_s <= ahead + speed
    assert told == sorted(told)


def test_no_more_is_waited_for_than_the_run_is_long():
    world = Made(60, 1)
    world.wait_ahead(10 * NS_PER_S, has_core=False)
    assert world.waits == 10


def test_readers_leave_no_thread():
    assert not [t for t in threading.enumerate() if t.name == "avrt-world"]
