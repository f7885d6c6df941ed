"""Feeds deliver each message when its time has come, and never add up their delays."""

import threading

import pytest

from avrt.drivers.feeds import LogFeed, wait_until
from avrt.errors import DamagedInputError
from avrt.logs.merge import SourceMessage

FOREVER_S = 60


class Wall:
    """Pipeline time that stands still unless it is waited for."""

    rate = 1.0

    def __init__(self, late=0):
        self.at = 0
        self.late = late

    def now_ns(self):
        return self.at

    def host_left_ns(self, at_ns):
        return at_ns + self.late - self.at


class Stopped:
    """An event whose waits move the wall's time."""

    def __init__(self, wall, after=None):
        self.wall = wall
        self.after = after

    def is_set(self):
        return self.after is not None and self.wall.at >= self.after

    def wait(self, seconds):
        self.wall.at += round(seconds * 1e9)


def message(log_ns):
    return SourceMessage("lidar", log_ns, log_ns, log_ns, log_ns, "", None, None)


def played(feed, wall, after=None):
    delivered = []
    feed.open(lambda _: None)
    feed.run(delivered.append, wall, Stopped(wall, after))
    return delivered


def test_each_message_is_delivered_at_its_time_with_the_time_of_delivery():
    wall = Wall(late=3)
    delivered = played(LogFeed(map(message, (0, 10**9, 2 * 10**9))), wall)
    assert [item.log_ns for item in delivered] == [3, 10**9 + 3, 2 * 10**9 + 3]
    assert [item.capture_ns for item in delivered] == [0, 10**9, 2 * 10**9]


def test_what_is_overdue_is_delivered_at_once():
    wall = Wall()
    wall.at = 5
    assert [item.log_ns for item in played(LogFeed(map(message, (0, 2, 9))), wall)] == [5, 5, 9]


def test_nothing_is_delivered_from_the_end_on():
    assert len(played(LogFeed(map(message, (0, 10, 20)), until_ns=20), Wall())) == 2


def test_a_stopped_feed_delivers_nothing_more():
    assert len(played(LogFeed(map(message, (0, 10, 20))), Wall(), after=10)) == 1


def test_damage_ends_the_feed_and_is_kept():
    def log():
        yield message(0)
        raise DamagedInputError("half a message", "drive.mcap", 1)

    feed = LogFeed(log())
    assert len(played(feed, Wall())) == 1
    assert "half a message" in str(feed.damage)


def test_reading_ahead_has_begun_before_time_does():
    read = []

    def log():
        for at in (0, 1):
            read.append((at, threading.current_thread().name))
            yield message(at)

    feed, names = LogFeed(log()), []
    feed.open(names.append)
    assert read[0] == (0, "avrt-read")
    assert names == ["reader"]
    wall = Wall()
    feed.run([].append, wall, Stopped(wall))


@pytest.mark.parametrize("at_ns", [1, 10**9, 7 * 10**9])
def test_a_time_is_waited_for_to_its_end(at_ns):
    wall = Wall()
    wait_until(at_ns, wall, Stopped(wall))
    assert wall.at == at_ns
