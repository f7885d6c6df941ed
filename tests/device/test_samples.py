"""What is kept of samples, and that they come back as they were."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.device.samples import GpuSample, ResourceSample, Samples

WHOLE = st.integers(0, 2**50)
SHARE = st.floats(0, 1e6)
OF_TYPE = {
    "int": WHOLE,
    "float": SHARE,
    "int | None": st.none() | WHOLE,
    "float | None": st.none() | SHARE,
}


def built(kind, **given_fields):
    of_type = {item.name: OF_TYPE.get(item.type) for item in fields(kind)}
    return st.builds(kind, **of_type | given_fields)


gpus = st.lists(built(GpuSample), max_size=2).map(tuple)
samples_of_host = st.lists(built(ResourceSample, gpus=gpus), max_size=12)


@given(samples_of_host, st.integers(2**60, 2**62))
def test_samples_come_back_as_they_were(samples, start_ns):
    """Host times may be of any size: only those since the first sample are kept as floats."""
    kept = Samples(5, gpus=2)
    moved = []
    for n, one in enumerate(samples):
        told = {item.name: getattr(one, item.name) for item in fields(one)}
        times = {"since_ns": start_ns + 10 * n, "at_ns": start_ns + 10 * n + 9}
        moved.append(ResourceSample(**told | times))
        kept.append(moved[-1])
    assert kept.all() == moved[-5:]
    assert len(kept) == len(moved[-5:])
    assert kept.last() == (moved[-1] if moved else None)


@pytest.mark.parametrize(("at_ns", "found"), [(0, [7, 9]), (7, [9]), (8, [9]), (9, [])])
def test_samples_since_a_time(at_ns, found):
    kept = Samples(2)
    for end_ns in (5, 7, 9):
        kept.append(ResourceSample(end_ns - 2, end_ns, 1, 0.0))
    assert [sample.at_ns for sample in kept.since(at_ns)] == found


def test_a_gpu_more_than_there_is_place_for_is_left_out():
    kept = Samples(1, gpus=1)
    kept.append(ResourceSample(0, 1, 1, 0.0, gpus=(GpuSample(0, 0, 1, 2), GpuSample(1, 1, 2, 3))))
    kept.append(ResourceSample(1, 2, 1, 0.0, gpus=(GpuSample(0, 0, 1, 2),)))
    assert kept.all()[0].gpus == (GpuSample(0, 0, 1, 2),)
    kept.append(ResourceSample(2, 3, 1, 0.0))
    assert kept.all()[0].gpus == ()
