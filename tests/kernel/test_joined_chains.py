"""Where two paths lead from one source to one stage, each is a chain of its own."""

from __future__ import annotations

from builder import Bench, sampled, stage

from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec

SLOW, JOIN = "slow", "join"


def joined():
    """`join` is triggered by the source at once and samples what `slow` made of it before."""
    bench = Bench(
        stage(SLOW, "lidar"),
        stage(JOIN, "lidar", sampled(SLOW, optional=True)),
        chains=(
            ChainSpec(name="direct", path=("lidar", JOIN)),
            ChainSpec(name="long", path=("lidar", SLOW, JOIN)),
        ),
    )
    job = 0
    for at_ns in (0, 100, 200):
        bench.arrive(at_ns, "lidar")
        bench.complete(at_ns + 2, job)
        bench.complete(at_ns + 5, job + 1)
        job += 2
    return bench


def records(bench, chain):
    return [r for r in bench.all_records(ChainRecord) if r.chain == chain]


def test_each_path_rests_on_its_own_message():
    bench = joined()
    assert [r.path_ns for r in records(bench, "direct")] == [5, 5, 5]
    assert [r.path_ns for r in records(bench, "long")] == [5, 5, 5]


def test_a_sampled_input_that_is_older_makes_the_long_path_longer():
    bench = Bench(
        stage(JOIN, "lidar", sampled(SLOW, optional=True)),
        stage(SLOW, "lidar"),
        chains=(
            ChainSpec(name="direct", path=("lidar", JOIN)),
            ChainSpec(name="long", path=("lidar", SLOW, JOIN)),
        ),
    )
    for index, at_ns in enumerate((0, 100, 200)):
        bench.arrive(at_ns, "lidar")  # `join` starts first and samples what `slow` made before
        bench.complete(at_ns + 5, 2 * index)
        bench.complete(at_ns + 7, 2 * index + 1)
    assert [r.path_ns for r in records(bench, "direct")] == [5, 5, 5]
    assert [r.path_ns for r in records(bench, "long")] == [105, 105]
    assert [r.reaction_ns for r in records(bench, "direct")] == [None, 105, 105]
    assert [r.reaction_ns for r in records(bench, "long")] == [None, 205]
    assert [r.age_ns for r in records(bench, "long")] == [None, 205]
