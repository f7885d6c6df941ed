"""Positions on the earth as metres east and north of a place.

WGS 84 ellipsoid: semi-major axis and flattening as NIMA TR8350.2 (2000), table 3.1, defines them.
Latitude, longitude and height become earth-centred coordinates, and those the east and north
components in the plane that touches the ellipsoid at the origin (Groves, "Principles of GNSS,
Inertial, and Multisensor Integrated Navigation Systems", 2nd edition 2013, equations 2.112 and
2.150). The plane leaves the earth by 1 m after 3.6 km, which is more than short motions need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SEMI_MAJOR = 6_378_137.0  # metres
FLATTENING = 1 / 298.257_223_563
ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING)


@dataclass(frozen=True, slots=True)
class LocalPlane:
    """The plane that touches the earth at a place: latitude and longitude in degrees, WGS 84."""

    latitude: float
    longitude: float
    altitude: float = 0.0

    def east_north(
        self, latitude: float, longitude: float, altitude: float = 0.0
    ) -> tuple[float, float]:
        """Return metres east and north of the place, in its plane."""
        here = earth_centred(self.latitude, self.longitude, self.altitude)
        there = earth_centred(latitude, longitude, altitude)
        dx, dy, dz = (b - a for a, b in zip(here, there, strict=True))
        phi, lam = math.radians(self.latitude), math.radians(self.longitude)
        outwards = dx * math.cos(lam) + dy * math.sin(lam)
        east = dy * math.cos(lam) - dx * math.sin(lam)
        return east, dz * math.cos(phi) - outwards * math.sin(phi)


def earth_centred(latitude: float, longitude: float, altitude: float) -> tuple[float, float, float]:
    """Return earth-centred, earth-fixed coordinates, metres, of a place in degrees and metres."""
    phi, lam = math.radians(latitude), math.radians(longitude)
    radius = SEMI_MAJOR / math.sqrt(1 - ECCENTRICITY_SQUARED * math.sin(phi) ** 2)
    from_axis = (radius + altitude) * math.cos(phi)
    z = (radius * (1 - ECCENTRICITY_SQUARED) + altitude) * math.sin(phi)
    return from_axis * math.cos(lam), from_axis * math.sin(lam), z
