"""What is really there, as a simulated world or a labelled data set knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.payload.objects import Box


@dataclass(frozen=True, slots=True)
class TrueObject:
    """One road user at one instant.

    Attributes:
        id: the same at every instant.
        label: "car", "truck", "pedestrian", "cyclist" or "unknown".
        box: in the frame of the message.
        vx, vy: velocity over ground in the axes of that frame, m/s; NaN where it is not known.
    """

    id: int
    label: str
    box: Box
    vx: float
    vy: float


@dataclass(frozen=True, slots=True)
class Truth:
    """Every road user but the vehicle itself at one instant, seen by its sensors or not."""

    objects: tuple[TrueObject, ...] = ()
