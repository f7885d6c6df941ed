"""Replicas of one stage: right ones of different code, and wrong ones."""

import math

import numpy as np

from avrt import Stage
from avrt.payload import Tracks


def right(cloud):
    return {"sum": float(cloud.payload.xyz.astype(np.float64).sum())}


def other(cloud):
    return {"sum": float(np.add.reduce(cloud.payload.xyz.ravel()[::-1], dtype=np.float64))}


def third(cloud):
    return {"sum": math.fsum(cloud.payload.xyz.ravel().tolist())}


def wrong(cloud):
    return {"sum": right(cloud)["sum"] + 1.0}


def worse(cloud):
    return {"sum": right(cloud)["sum"] - 1.0}


def not_a_number(cloud):
    return {"sum": math.nan * cloud.stamp.sequence}


def raises(cloud):
    raise RuntimeError(f"no {cloud.stamp.sequence}")


def wrong_at_times(cloud):
    return wrong(cloud) if cloud.stamp.sequence in {3, 4, 5} else right(cloud)


def worse_at_times(cloud):
    return worse(cloud) if cloud.stamp.sequence in {3, 4, 5} else right(cloud)


class Testing(Stage):
    """Counts from 1; its acceptance test refuses what is not one more than before."""

    step = 1

    def __init__(self):
        self.count = 0

    def process(self, cloud):
        assert cloud.payload.count
        self.count += self.step
        return self.count

    def accepts(self, output, previous):
        return output == (previous or 0) + self.step


class Counting(Stage):
    """Counts from 1."""

    def __init__(self):
        self.count = 0

    def process(self, cloud):
        assert cloud.payload.count
        self.count += 1
        return self.count

    def freeze(self):
        return self.count

    def thaw(self, state):
        self.count = state


class Trusting(Stage):
    """Is wrong at times; its acceptance test passes all."""

    def process(self, cloud):
        return wrong_at_times(cloud)

    def accepts(self, output, previous):
        del output, previous
        return True


class Booming(Counting):
    """Has an acceptance test that raises."""

    def accepts(self, output, previous):
        raise RuntimeError(f"boom at {output} after {previous}")


def odd(cloud):
    assert cloud.payload.count
    return Tracks(None, 1.0)


def raises_once(cloud):
    return raises(cloud) if cloud.stamp.sequence == 1 else right(cloud)


class Leaping(Testing):
    step = 2


class Weighing(Stage):
    """Has weights."""

    weight = 1.0

    def weight_arrays(self):
        return [np.full(4, self.weight)]

    def process(self, cloud):
        return right(cloud)


class WeighingMore(Weighing):
    weight = 2.0
