"""The checker against a brute-force one: reachability in the graph of all calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avrt.device import Executor, OrderChecker, SimulatedDevice
from avrt.device.order import RACES_MAX

STREAMS, BUFFERS = 3, 2

STEP = st.one_of(
    st.tuples(st.just("read"), st.integers(0, STREAMS - 1), st.integers(0, BUFFERS - 1)),
    st.tuples(st.just("write"), st.integers(0, STREAMS - 1), st.integers(0, BUFFERS - 1)),
    st.tuples(st.just("order"), st.integers(0, STREAMS - 1), st.integers(0, STREAMS - 1)),
    st.tuples(st.just("host"), st.integers(0, STREAMS - 1), st.just(0)),
)


def fresh():
    executor = Executor(SimulatedDevice(), checker=OrderChecker())
    streams = [executor.stream(f"s{index}") for index in range(STREAMS)]
    buffers = [executor.allocate(64, streams[0]) for _ in range(BUFFERS)]
    return executor, streams, buffers


class Graph:
    """Every step is a node; it comes after whatever its stream came after."""

    def __init__(self):
        self.after = [set() for _ in range(STREAMS)]
        self.accesses = []
        self.racing = set()

    def access(self, stream, buffer, *, writes):
        node = len(self.accesses)
        for earlier, (other, other_buffer, other_writes) in enumerate(self.accesses):
            conflict = other_buffer == buffer and (writes or other_writes)
            if conflict and other != stream and earlier not in self.after[stream]:
                self.racing.add(node)
        self.accesses.append((stream, buffer, writes))
        self.after[stream].add(node)

    def order(self, one, two):
        self.after[two] |= self.after[one]

    def host(self, stream):
        for other in range(STREAMS):
            self.order(stream, other)


@given(st.lists(STEP, max_size=40))
def test_the_first_race_of_a_run_is_the_one_of_the_graph(steps):
    """Later ones may differ: the checker keeps only the last write and the reads since."""
    executor, streams, buffers = fresh()
    graph = Graph()
    for kind, one, two in steps:
        if kind == "order":
            executor.wait(streams[two], executor.record(streams[one]))
            graph.order(one, two)
        elif kind == "host":
            executor.synchronize(streams[one])
            graph.host(one)
        else:
            access = {"reads" if kind == "read" else "writes": (buffers[two],)}
            executor.launch(streams[one], int, **access)
            graph.access(one, two, writes=kind == "write")
        assert (executor.checker.race_count > 0) == (len(graph.racing) > 0)
        if graph.racing:
            return


def test_a_race_names_both_accesses():
    executor, streams, buffers = fresh()
    executor.launch(streams[0], int, writes=(buffers[0],), name="produce")
    executor.launch(streams[1], int, reads=(buffers[0],), name="consume")
    (race,) = executor.checker.races
    assert (race.name, race.access, race.earlier) == ("consume", ("s1", 1), (("s0", 1),))


def test_a_wait_for_an_earlier_recording_does_not_order_later_work():
    executor, streams, buffers = fresh()
    event = executor.record(streams[0])
    executor.launch(streams[0], int, writes=(buffers[0],))
    executor.wait(streams[1], event)
    executor.launch(streams[1], int, reads=(buffers[0],))
    assert executor.checker.race_count == 1


def test_a_host_wait_orders_streams_that_were_at_work_before():
    executor, streams, buffers = fresh()
    executor.launch(streams[1], int)
    executor.launch(streams[0], int, writes=(buffers[0],))
    executor.synchronize(streams[0])
    executor.launch(streams[1], int, reads=(buffers[0],))
    assert executor.checker.race_count == 0


def test_a_query_orders_nothing():
    executor, streams, buffers = fresh()
    executor.launch(streams[0], int, writes=(buffers[0],))
    assert executor.query(executor.record(streams[0]))
    executor.launch(streams[1], int, reads=(buffers[0],))
    assert executor.checker.race_count == 1


def test_the_list_of_races_is_bounded_and_the_count_is_not():
    executor, streams, buffers = fresh()
    for _ in range(RACES_MAX):
        for stream in streams[:2]:
            executor.launch(stream, int, writes=(buffers[0],))
    assert len(executor.checker.races) == RACES_MAX
    assert executor.checker.race_count == 2 * RACES_MAX - 1


def test_a_block_that_was_given_back_has_no_history():
    executor, streams, buffers = fresh()
    executor.launch(streams[0], int, writes=(buffers[0],))
    executor.deallocate(buffers[0], streams[0])
    executor.pool.trim()
    assert executor.checker._histories == {}
