"""What an image says about the tracks: in which direction something is, and of which class.

A track's box is projected (Hartley and Zisserman, "Multiple View Geometry", 2nd edition, section
6.1) and compared with the detected boxes: the middle's column tells the bearing and corrects the
track across the line of sight; row and height only have to fit, because a track's height and the
road's slope are not known well enough to make a distance of them (a fifth of the height is a fifth
of the distance). A camera alone starts no track; it confirms what another sensor placed.

Pairs are found in a wide window first (Kuhn-Munkres). How many of them also pass the track's own
gate, and how far apart they are, tells whether camera and tracks agree at all (`agreement`). While
they do not, images correct no positions.

Shape letters: K tracks, D detections.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from avrt.stages.fusion import tracking
from avrt.stages.fusion.hypothesis import voted
from avrt.stages.fusion.looks import Outcome, Seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload import CameraInfo, ImageDetections
    from avrt.stages.fusion.agreement import Agreement
    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Hypothesis
    from avrt.stages.fusion.looks import Rules

SENSOR = "camera"
DETECTIONS_MAX = 256
NEAR = 1.0  # metres before the lens: what has a corner nearer than this is not compared
WINDOW = math.radians(8.0)  # across: pairs are looked for within this
WINDOW_SIGMA = math.radians(3.0)
PIXEL_SIGMA, WIDTH_SIGMA = 3.0, 0.08  # pixels, and share of the box's width
HEIGHT_SIGMA = 0.4  # of the logarithm of the height
ROW_SIGMA = 0.35  # share of the box's height, beside WINDOW_SIGMA
RATE_SEEN, RATE_MISSED = 0.6, 0.03  # see `existence`: fog hides everything at once
CLUTTER = 0.002  # false detections for each column and e-fold of height
GATE_SQUARED = 9.21  # 99 % of chi-square in two dimensions: column and height
LABEL_COST = 4.0  # of a pair whose classes differ
ALONE = 14.0  # cost of a track without a detection
SCORE_MIN = 0.1
FAR_PX = 1e5  # pixels: no box reaches further
COMPARED_HITS = 3  # a track seen less often is not known well enough to judge a camera by
COMPARED_SIGMA = 1.0  # metres, likewise
CORNERS = np.array(
    [
        [x, y, z]
        for z in (-0.5, 0.5)
        for x, y in ((0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5))
    ]
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A visible track and a detection.

    Attributes:
        row, index: which of the visible tracks, which detection.
        columns: how far the detection's middle is to the right of the track's, pixels.
        apart: distance of the middles, pixels.
        sigma: standard deviation of the measured column, pixels.
        gradient: (2,) float64, change of the column with the track's x and y, pixels a metre.
        ratio: density of this pair over that of false detections.
        gated: it may be the track's.
    """

    row: int
    index: int
    columns: float
    apart: float
    sigma: float
    gradient: NDArray[np.float64]
    ratio: float
    gated: bool


@dataclass(frozen=True, slots=True)
class CameraLook:
    """One image's detections.

    Attributes:
        boxes: (D, 4) float64, pixels: left, top, right, bottom.
        matrix: (3, 4) float64, pixels, from the tracker's frame.
        size: width and height of the image, pixels.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: tuple[str, ...]
    matrix: NDArray[np.float64]
    size: tuple[int, int]
    dropped: int = 0

    @classmethod
    def of(cls, found: ImageDetections, info: CameraInfo, to_camera: Matrix) -> CameraLook:
        """Take what can be used; of too many those of the highest score."""
        boxes = np.asarray(found.boxes, np.float64).reshape(-1, 4)
        scores = np.asarray(found.scores, np.float64).reshape(-1)
        size = (found.width_px, found.height_px)
        usable = (np.abs(boxes) < FAR_PX).all(axis=1) & (scores >= SCORE_MIN)
        boxes = np.where(usable[:, None], boxes, 0.0)
        usable &= (boxes[:, 2:] - boxes[:, :2] > 1).all(axis=1)
        order = np.lexsort((*boxes.T, -scores))
        rows = order[usable[order]][:DETECTIONS_MAX]
        rigid = np.vstack([np.array(to_camera).reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])
        labels = tuple(found.labels[i] for i in rows.tolist())
        matrix = info.projection @ rigid
        return cls(boxes[rows], scores[rows], labels, matrix, size, len(boxes) - len(rows))

    @property
    def focal(self) -> float:
        """Focal length along the rows, pixels: of the row's part that is square to the axis."""
        across, axis = self.matrix[0, :3], self.matrix[2, :3]
        return float(np.linalg.norm(across - (across @ axis) * axis))

    def seen(
        self,
        key: Key,
        known: Sequence[Hypothesis],
        rules: Rules,
        agreement: Agreement,
        offset_max: float,
    ) -> tuple[Seen, Agreement]:
        """Return the tracks after this image, and how well it fits them.

        `offset_max` is in radians.
        """
        rows, rects = self._visible(known)
        pairs = self._pairs([known[i] for i in rows], rects)
        agreement = self._agreed(key[0], [known[i] for i in rows], pairs, agreement)
        bound = self.focal * math.tan(offset_max)
        anomaly = agreement.anomaly(bound)
        after, matched = list(known), 0
        of_row = {pair.row: pair for pair in pairs if pair.gated}
        for row, i in enumerate(rows):
            pair = of_row.get(row)
            if pair is None:
                after[i] = known[i].missed(SENSOR, key[0], RATE_MISSED)
                continue
            matched += 1
            after[i] = rules.judged(self._corrected(known[i], pair, key[0], trusted=not anomaly))
        outcome = Outcome(
            capture_ns=key[0],
            measurements=len(self.boxes),
            matched=matched,
            dropped=self.dropped,
            residual=agreement.residual if agreement.pairs else None,
            anomaly=anomaly,
        )
        return Seen(after, [], outcome), agreement

    def _visible(self, known: Sequence[Hypothesis]) -> tuple[list[int], NDArray[np.float64]]:
        """Return which tracks stand in the image, and their outlines there, (K, 4) pixels."""
        if not known:
            return [], np.zeros((0, 4))
        corners = np.stack([_corners(one) for one in known])
        ends = corners @ self.matrix[:, :3].T + self.matrix[:, 3]
        ahead = ends[..., 2].min(axis=1) > NEAR
        uv = ends[..., :2] / np.where(ahead[:, None, None], ends[..., 2:], 1.0)
        low, high = uv.min(axis=1), uv.max(axis=1)
        middle = (low + high) / 2
        inside = ahead & (middle >= 0).all(axis=1) & (middle < self.size).all(axis=1)
        rects = np.concatenate(
            [np.clip(low, 0.0, self.size), np.clip(high, 0.0, self.size)], axis=1
        )
        rows = np.nonzero(inside)[0].tolist()
        return rows, rects[rows]

    def _pairs(self, known: Sequence[Hypothesis], rects: NDArray[np.float64]) -> list[Pair]:
        """Return the pairs within the wide window that fit best together, by track."""
        if not known or not len(self.boxes):
            return []
        wide, high = rects[:, 2] - rects[:, 0], rects[:, 3] - rects[:, 1]
        offset = _middles(self.boxes)[None] - _middles(rects)[:, None]
        size = np.log((self.boxes[:, 3] - self.boxes[:, 1])[None] / np.maximum(high, 1.0)[:, None])
        window = self.focal * WINDOW_SIGMA
        row_sigma = np.hypot(window, ROW_SIGMA * high)[:, None]
        fit = (offset[..., 1] / row_sigma) ** 2 + (size / HEIGHT_SIGMA) ** 2
        unlike = np.array(
            [[_is_unlike(one.label, label) for label in self.labels] for one in known]
        )
        cost = (offset[..., 0] / window) ** 2 + fit + LABEL_COST * unlike
        usable = (np.abs(offset[..., 0]) < self.focal * WINDOW) & (cost < ALONE)
        alone = np.full((len(known), len(known)), ALONE)
        rows, columns = linear_sum_assignment(np.hstack([np.where(usable, cost, 1e6), alone]))
        return [
            self._pair(known[i], i, j, offset[i, j], float(wide[i]), float(size[i, j]))
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
            if j < len(self.boxes) and usable[i, j]
        ]

    def _pair(
        self,
        one: Hypothesis,
        row: int,
        index: int,
        offset: NDArray[np.float64],
        wide: float,
        size: float,
    ) -> Pair:
        centre = self.matrix[:, :3] @ (one.mean[0], one.mean[1], one.z) + self.matrix[:, 3]
        gradient = (self.matrix[0, :2] - centre[0] / centre[2] * self.matrix[2, :2]) / centre[2]
        sigma = PIXEL_SIGMA + WIDTH_SIGMA * wide
        variance = sigma**2 + float(gradient @ one.covariance[:2, :2] @ gradient)
        squared = float(offset[0] ** 2 / variance + (size / HEIGHT_SIGMA) ** 2)
        density = math.exp(-squared / 2) / (2 * math.pi * math.sqrt(variance) * HEIGHT_SIGMA)
        return Pair(
            row=row,
            index=index,
            columns=float(offset[0]),
            apart=math.hypot(*offset),
            sigma=sigma,
            gradient=gradient,
            ratio=density / CLUTTER,
            gated=squared < GATE_SQUARED,
        )

    def _agreed(
        self, at_ns: int, known: Sequence[Hypothesis], pairs: Sequence[Pair], agreement: Agreement
    ) -> Agreement:
        """Return the agreement after this look; an image that shows nothing says nothing."""
        sure = {row for row, one in enumerate(known) if _is_sure(one)}
        possible = min(len(sure), len(self.boxes))
        if not possible:
            return agreement
        compared = [pair for pair in pairs if pair.row in sure]
        share = sum(pair.gated for pair in compared) / possible
        return agreement.after(at_ns, share, [pair.apart for pair in compared])

    def _corrected(self, one: Hypothesis, pair: Pair, at_ns: int, *, trusted: bool) -> Hypothesis:
        seen = one.shown(SENSOR, at_ns, RATE_SEEN, pair.ratio, ranging=False)
        votes = voted(one.votes, self.labels[pair.index], float(self.scores[pair.index]))
        if not trusted:
            return replace(seen, votes=votes)
        observe = np.zeros((1, tracking.STATES))
        observe[0, :2] = pair.gradient
        mean, covariance = tracking.corrected(
            one.mean,
            one.covariance,
            observe,
            np.array([pair.columns]),
            np.array([[pair.sigma**2]]),
        )
        near = one.nearest_x + float(mean[0] - one.mean[0])
        return replace(seen, mean=mean, covariance=covariance, votes=votes, nearest_x=near)


def _is_sure(one: Hypothesis) -> bool:
    """Tell whether a track is known well enough, from range, to judge a camera by."""
    return one.hits >= COMPARED_HITS and one.sigma < COMPARED_SIGMA and one.misses == 0


def _corners(one: Hypothesis) -> NDArray[np.float64]:
    """Return the corners of a track's box, (8, 3) float64, metres, in the tracker's frame."""
    cos, sin = math.cos(one.mean[4]), math.sin(one.mean[4])
    local = CORNERS * (one.length, one.width, one.height)
    return np.stack(
        [
            one.mean[0] + local[:, 0] * cos - local[:, 1] * sin,
            one.mean[1] + local[:, 0] * sin + local[:, 1] * cos,
            one.z + local[:, 2],
        ],
        axis=1,
    )


def _is_unlike(label: str, seen: str) -> bool:
    return label != seen and "unknown" not in {label, seen}


def _middles(rects: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((rects[:, :2] + rects[:, 2:]) / 2)
