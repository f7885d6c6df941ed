"""Split the points that stand on the road into things, by distance in the bird's-eye view.

Method: Euclidean clustering (Rusu, "Semantic 3D Object Maps", 2009, section 6.2) on the centroids
of a fine grid: two occupied cells belong together if they are closer than a tolerance that grows
with range, because the sensor's beams spread (as Dietmayer, Sparbert and Streller do for scans, IV
2001). Connected components of that graph are the things. Only a low band of heights makes links,
so a tree's crown does not tie the cars under it together; higher points join the thing below them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELL = 0.2  # metres
GRID = 1 << 12  # cells a side; x and y of +-400 m


@dataclass(frozen=True, slots=True)
class Linking:
    """When two cells belong to one thing.

    Attributes:
        near: distance at the sensor, metres.
        growth: added for each metre of range.
        far: upper limit, metres.
        low_max: height above the road up to which points make links, metres.
    """

    near: float = 0.45
    growth: float = 0.008
    far: float = 0.9
    low_max: float = 2.2


def cluster(
    xyz: NDArray[np.float32], height: NDArray[np.float32], linking: Linking
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the points' indices ordered by thing, and where each thing starts in that order.

    Args:
        xyz: (N, 3) float32, metres, sensor frame: points above the road only.
        height: (N,) float32, metres above the road.
        linking: the tolerance.

    Returns:
        (M,) indices into xyz, M <= N, and (C + 1,) offsets: thing c is `order[at[c]:at[c + 1]]`.
        Points that hang over nothing low belong to no thing.
    """
    column = np.floor(xyz[:, :2] / np.float32(CELL)).astype(np.int64) + GRID // 2
    key = column[:, 0] * GRID + column[:, 1]
    low = np.nonzero(height <= linking.low_max)[0]
    if len(low) == 0:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    cells, inverse = np.unique(key[low], return_inverse=True)
    members = np.bincount(inverse)
    centre = np.stack(
        [np.bincount(inverse, weights=xyz[low, axis]) / members for axis in (0, 1)], axis=1
    )
    label = _components(centre, linking)
    place = np.minimum(np.searchsorted(cells, key), len(cells) - 1)
    owner = np.where(cells[place] == key, label[place], -1)
    order = np.argsort(owner, kind="stable")
    order = order[np.count_nonzero(owner < 0) :]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[order]))]).astype(np.int64)
    return order, offsets


def _components(centre: NDArray[np.float64], linking: Linking) -> NDArray[np.int64]:
    pairs = cKDTree(centre).query_pairs(linking.far, output_type="ndarray")
    first, second = centre[pairs[:, 0]], centre[pairs[:, 1]]
    apart = np.hypot(*(first - second).T)
    tolerance = linking.near + linking.growth * np.hypot(*first.T)
    pairs = pairs[apart <= tolerance]
    links = coo_array(
        (np.ones(len(pairs), np.bool_), (pairs[:, 0], pairs[:, 1])), shape=(len(centre),) * 2
    )
    return connected_components(links, directed=False)[1].astype(np.int64)
