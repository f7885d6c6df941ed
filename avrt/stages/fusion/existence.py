"""Whether a thing is there at all: what each sensor's seeing and not seeing says about it.

Integrated PDA (Musicki, Evans and Stankovic, IEEE TAC 39(6), 1994, equations 18 to 21) for one
assigned measurement, a sensor at a time. Each sensor has its chance to show a thing that is there,
and its density of false measurements in the space it measures in.

Not seeing counts less than seeing. A sensor that does not cover the place says nothing, and one
that sent nothing says nothing either. Two sensors that disagree about a thing have most often met
what blinds one of them (fog, a hidden line of sight), and that lasts: its misses are one piece of
evidence and not many, so they are weak while another sensor supports the thing. A camera shows
nothing at all in fog or at night, for every thing at once; so its misses hardly count.
"""

from __future__ import annotations

import math

LIFE_SECONDS = 20.0  # mean time that a road user stays in view
DISPUTED = 0.25  # share of a miss that counts while another sensor supports the thing


def survived(existence: float, dt: float) -> float:
    """Return the probability that the object is still in view `dt` seconds later."""
    return existence * math.exp(-dt / LIFE_SECONDS)


def detected(existence: float, rate: float, ratio: float) -> float:
    """Return the existence after an assigned measurement.

    Args:
        existence: before it, 0 to 1.
        rate: probability that the sensor shows the object if it is there.
        ratio: density of the measurement if it is the object's, over that of false ones.
    """
    ratio = 1 - rate + rate * ratio
    return ratio * existence / (1 - existence + ratio * existence)


def missed(existence: float, rate: float) -> float:
    """Return the existence after a look that did not show the object."""
    return (1 - rate) * existence / (1 - rate * existence)
