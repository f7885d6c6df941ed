"""Live sources of a test's own."""

import threading

import numpy as np
from small_stages import FOREVER_S

import avrt
from avrt.payload import PointCloud


def cloud_of(number):
    return PointCloud(np.full((4, 3), number, np.float32), None, None)


class Counting(avrt.Source):
    """A sensor that measures `count` clouds as fast as it is read."""

    def __init__(self, count=3):
        self.left = count

    def read(self):
        self.left -= 1
        return avrt.Reading(cloud_of(self.left)) if self.left >= 0 else None


class Silent(avrt.Source):
    """A sensor that never measures anything."""

    def __init__(self):
        self.closed = threading.Event()

    def read(self):
        assert self.closed.wait(FOREVER_S)

    def close(self):
        self.closed.set()


class Unplugged(Counting):
    """A sensor that does not open, and cannot be closed therefore, as documented sources are."""

    def open(self):
        raise OSError("no such port")

    def close(self):
        self.bus.shutdown()


class Closing(Silent):
    """A sensor that cannot be closed twice, and says so."""

    def close(self):
        assert not self.closed.is_set(), "closed twice"
        super().close()
        raise OSError("cannot be closed")


class Broken(Counting):
    def read(self):
        if self.left == 1:
            raise OSError("unplugged")
        return super().read()


class Paced(avrt.Source):
    """A sensor that measures the next cloud once few enough are under way."""

    turns = threading.Semaphore(4)

    def __init__(self, count=3):
        self.left = count

    def read(self):
        assert self.turns.acquire(timeout=FOREVER_S)
        self.left -= 1
        return avrt.Reading(cloud_of(self.left)) if self.left >= 0 else None
