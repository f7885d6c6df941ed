"""Random sequences of tracked objects, and what TrackEval says of a sequence."""

import numpy as np

from avrt.metrics.accuracy.matching import Frame, nearness


def sequence(seed, frames=40, objects=6):
    """Objects that wander, with tracks that miss, swap, break and stray."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 12, (objects, 2))
    names = list(range(objects))
    made = []
    for _ in range(frames):
        places += rng.normal(0, 0.3, places.shape)
        if rng.random() < 0.15:
            a, b = rng.integers(objects, size=2)
            names[a], names[b] = names[b], names[a]
        if rng.random() < 0.1:
            names[rng.integers(objects)] = int(rng.integers(100, 200))
        true = [i for i in range(objects) if rng.random() < 0.8]
        found = [i for i in range(objects) if rng.random() < 0.8]
        ids = [names[i] for i in found]
        keep = [k for k, name in enumerate(ids) if ids.index(name) == k]
        spots = places + rng.normal(0, 0.7, places.shape)
        similarity = nearness(
            [tuple(places[i]) for i in true], [tuple(spots[found[k]]) for k in keep]
        )
        made.append(Frame(tuple(true), tuple(ids[k] for k in keep), similarity))
    return made


def by_trackeval(frames):
    """The results of CLEAR, Identity and HOTA of TrackEval (only where it is installed)."""
    import trackeval  # noqa: PLC0415

    true = sorted({name for frame in frames for name in frame.true_ids})
    found = sorted({name for frame in frames for name in frame.found_ids})
    data = {
        "num_timesteps": len(frames),
        "num_gt_ids": len(true),
        "num_tracker_ids": len(found),
        "num_gt_dets": sum(len(frame.true_ids) for frame in frames),
        "num_tracker_dets": sum(len(frame.found_ids) for frame in frames),
        "gt_ids": [np.array([true.index(n) for n in f.true_ids], int) for f in frames],
        "tracker_ids": [np.array([found.index(n) for n in f.found_ids], int) for f in frames],
        "similarity_scores": [frame.similarity for frame in frames],
    }
    quiet = {"PRINT_CONFIG": False}
    metrics = {
        "CLEAR": trackeval.metrics.CLEAR(quiet),
        "Identity": trackeval.metrics.Identity(quiet),
        "HOTA": trackeval.metrics.HOTA(),
    }
    return metrics, {name: metric.eval_sequence(data) for name, metric in metrics.items()}
