"""Tracks against the truth: where they are, how fast, whether they exist, and who they are.

A track is shown, and so a hit or false, when it is confirmed and believed with one half at least;
the calibration of `existence` is over all tracks. Pairs are those of CLEAR MOT; velocity errors are
the length of the difference. The latency of an object counts from the first message at which it
could be seen to the first with a track of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.metrics.accuracy.clear import Clear, clear
from avrt.metrics.accuracy.existence import Bin, brier, calibration
from avrt.metrics.accuracy.hota import Hota, hota
from avrt.metrics.accuracy.identity import Identity, identity
from avrt.metrics.accuracy.matching import Frame, matched, nearness
from avrt.metrics.accuracy.share import Share, Spread, spread
from avrt.report.score.scenes import on_others

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.model.message import Message
    from avrt.payload import Track, Tracks
    from avrt.report.score.scenes import Array, Present, Scenes

EXISTENCE_MIN = 0.5


@dataclass(slots=True)
class ObjectScore:
    """One true object: when it could be seen, when it had a track, and which."""

    id: int
    label: str
    first_seen_ns: int
    first_tracked_ns: int | None = None
    frames: int = 0
    tracked: int = 0
    tracks: list[int] = field(default_factory=list)

    @property
    def latency_ns(self) -> int | None:
        return None if self.first_tracked_ns is None else self.first_tracked_ns - self.first_seen_ns

    def data(self) -> dict[str, object]:
        return {
            "id": self.id,
            "label": self.label,
            "first_seen_ns": self.first_seen_ns,
            "first_tracked_ns": self.first_tracked_ns,
            "latency_ns": self.latency_ns,
            "frames": self.frames,
            "tracked": self.tracked,
            "tracks": self.tracks,
        }


@dataclass(frozen=True, slots=True)
class TrackScore:
    """The score of one stage that tracks.

    Attributes:
        frames, without_truth: messages that were scored, and that could not be.
        said: of every track how likely it was said to be real, and whether it was; nothing of one
            whose existence is no number.
    """

    frames: int
    without_truth: int
    clear: Clear
    identity: Identity
    hota: Hota
    position: Spread
    velocity: Spread
    labels: Share
    said: tuple[tuple[float, bool], ...]
    objects: tuple[ObjectScore, ...]

    @property
    def recall(self) -> Share:
        return Share(self.clear.hits, self.clear.hits + self.clear.missed)

    @property
    def precision(self) -> Share:
        return Share(self.clear.hits, self.clear.hits + self.clear.false)

    @property
    def latency(self) -> Spread:
        return spread(o.latency_ns for o in self.objects if o.latency_ns is not None)

    @property
    def bins(self) -> list[Bin]:
        return calibration(self.said)

    def data(self) -> dict[str, object]:
        sums = self.clear
        return {
            "kind": "tracks",
            "frames": self.frames,
            "without_truth": self.without_truth,
            "recall": self.recall.data(),
            "precision": self.precision.data(),
            "position_m": self.position.data(),
            "velocity_m_s": self.velocity.data(),
            "labels": self.labels.data(),
            "hota": self.hota.hota,
            "det_a": self.hota.det_a,
            "ass_a": self.hota.ass_a,
            "loc_a": self.hota.loc_a,
            "mota": sums.mota,
            "motp_m": sums.motp_metres if sums.hits else None,
            "idf1": self.identity.idf1,
            "switches": sums.switches,
            "fragments": sums.fragments,
            "mostly_tracked": sums.mostly_tracked,
            "partly_tracked": sums.partly_tracked,
            "mostly_lost": sums.mostly_lost,
            "existence": {
                "tracks": len(self.said),
                "brier": brier(self.said),
                "bins": [one.data() for one in self.bins],
            },
            "latency_ns": self.latency.data(),
            "objects": [one.data() for one in self.objects],
        }


@dataclass(frozen=True, slots=True)
class _Instant:
    """One message with what counts of the truth and of its tracks."""

    at_ns: int
    there: Sequence[Present]
    shown: Sequence[Track]

    @property
    def frame(self) -> Frame:
        return Frame(
            tuple(one.object.id for one in self.there),
            tuple(one.id for one in self.shown),
            _near(self.there, self.shown),
        )


def score_tracks(messages: Iterable[Message[Tracks]], scenes: Scenes) -> TrackScore:
    """Return the score of a stage's output; raises DataFault where no transform leads there."""
    instants: list[_Instant] = []
    said: list[tuple[float, bool]] = []
    without = 0
    for message in messages:
        stamp = message.stamp
        there = scenes.in_frame(stamp.capture_ns, stamp.frame)
        if there is None:
            without += 1
            continue
        tracks = message.payload.objects
        real = {tracks[f].id for _, f in matched(_near(there, tracks))}
        said += [(one.existence, one.id in real) for one in tracks if math.isfinite(one.existence)]
        shown = [one for one in tracks if one.confirmed and one.existence >= EXISTENCE_MIN]
        others = on_others(there, _places(shown), matched(_near(there, shown)))
        instants.append(
            _Instant(
                stamp.capture_ns,
                [one for one in there if one.counts],
                [one for place, one in enumerate(shown) if place not in others],
            )
        )
    frames = [instant.frame for instant in instants]
    sums, pairs = clear(frames)
    hits = [
        (instant.at_ns, instant.there[t], instant.shown[f])
        for instant, those in zip(instants, pairs, strict=True)
        for t, f in those
    ]
    return TrackScore(
        len(instants),
        without,
        sums,
        identity(frames),
        hota(frames),
        spread(math.dist(true.place, (track.box.x, track.box.y)) for _, true, track in hits),
        spread(_velocity_errors((true, track) for _, true, track in hits)),
        Share(sum(true.object.label == track.label for _, true, track in hits), len(hits)),
        tuple(said),
        tuple(_objects(instants, hits)),
    )


def _near(there: Sequence[Present], tracks: Sequence[Track]) -> Array:
    return nearness([one.place for one in there], _places(tracks))


def _places(tracks: Sequence[Track]) -> list[tuple[float, float]]:
    return [(one.box.x, one.box.y) for one in tracks]


def _velocity_errors(pairs: Iterable[tuple[Present, Track]]) -> Iterable[float]:
    for true, track in pairs:
        error = math.hypot(true.object.vx - track.vx, true.object.vy - track.vy)
        if math.isfinite(error):  # the truth may not know velocities
            yield error


def _objects(
    instants: Sequence[_Instant], hits: Sequence[tuple[int, Present, Track]]
) -> Iterable[ObjectScore]:
    found: dict[int, ObjectScore] = {}
    for instant in instants:
        for one in instant.there:
            true = one.object
            score = found.setdefault(true.id, ObjectScore(true.id, true.label, instant.at_ns))
            score.frames += 1
    for at_ns, one, track in hits:
        score = found[one.object.id]
        score.tracked += 1
        if score.first_tracked_ns is None:
            score.first_tracked_ns = at_ns
        if track.id not in score.tracks:
            score.tracks.append(track.id)
    return found.values()
