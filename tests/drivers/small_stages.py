"""Small stages that the tests of drivers replay."""

import numpy as np

FOREVER_S = 60  # a bound for tests that fail, never reached by one that passes


def count_points(cloud):
    return {"count": cloud.payload.count}


def total(cloud):
    return float(np.nansum(cloud.payload.xyz))


def passing(**inputs):
    """Return what came in, as plain data."""
    return [None if m is None else m.stamp.sequence for m in inputs.values()]


def passing_two(a, b):
    return passing(a=a, b=b)


def keep_to(seen):
    """Return a stage that keeps the messages it was given."""

    def keep(cloud):
        seen.append(cloud)
        return len(seen)

    return keep


def failing(cloud):
    if cloud.stamp.sequence % 2:
        raise ValueError("odd")
    return total(cloud)


def lives_on(thread):
    thread.join(FOREVER_S)
    return thread.is_alive()
