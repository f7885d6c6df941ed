"""Whatever a user's stage does becomes a result."""

import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from avrt.errors import DataFault, FaultError, InputError, SpecError
from avrt.exec.runner import guarded, run_job, warm_up
from avrt.exec.stream import Stream, wait
from avrt.model.stage import Stage
from avrt.payload.digest import digest_of

FOREVER_NS = 3600 * 10**9


class Does(Stage):
    """A stage that calls what it is given."""

    def __init__(self, call, warm=lambda: None):
        self.process = call
        self.warm = warm


def run(call, **inputs):
    return run_job("it", Does(call), inputs)


def raising(error):
    def process():
        raise error

    return process


def test_a_payload_comes_back_with_its_digest_and_its_time():
    result = run(lambda: {"a": 1})
    assert result.payload == {"a": 1}
    assert result.fault is None
    assert result.host_ns >= 1
    assert result.digest == digest_of({"a": 1})


class OwnError(BaseException):
    """What nobody expects."""


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (ValueError("boom"), "exception", "ValueError: boom at "),
        (ValueError(), "exception", "ValueError at "),
        (ValueError("two\nlines"), "exception", "ValueError: two lines at "),
        (KeyError("x"), "exception", "KeyError: 'x' at "),
        (MemoryError(), "out_of_memory", "MemoryError at "),
        (RecursionError("deep"), "exception", "RecursionError: deep at "),
        (SystemExit(0), "exception", "SystemExit: 0 at "),
        (OwnError("own"), "exception", "OwnError: own at "),
        (SpecError("mine"), "exception", "SpecError: mine at "),
        (InputError("what", "where"), "exception", "InputError: where: what at "),
        (DataFault("negative_mass", "-3 kg"), "negative_mass", "-3 kg"),
    ],
)
def test_whatever_a_stage_raises_is_a_fault_that_says_where(error, kind, detail):
    result = run(raising(error))
    assert result.fault.kind == kind
    assert result.fault.detail.startswith(detail)
    assert result.payload is None
    assert result.digest == b""
    if kind == "exception":
        place, _, line = result.fault.detail.rpartition(" at ")[2].rpartition(":")
        assert place == __file__
        assert int(line) == raising(error).__code__.co_firstlineno + 1


def test_the_line_is_that_of_the_users_file_and_not_of_a_library():
    result = run(lambda: np.zeros(3).reshape(2, 2))
    assert __file__ in result.fault.detail


def test_a_long_message_is_cut():
    assert len(run(raising(ValueError("x" * 10**6))).fault.detail) < 1000


def test_none_is_no_payload():
    result = run(lambda: None)
    assert result.fault.kind == "no_payload"
    assert "return an empty payload" in result.fault.detail


def cyclic():
    payload = []
    payload.append(payload)
    return payload


async def forgotten():
    return 1


@pytest.mark.parametrize(
    "payload",
    [
        {1, 2},
        object(),
        [object()],
        {"a": {"b": (1, lambda: 0)}},
        np.array([object()]),
        np.array([(1, None)], dtype=[("a", "i4"), ("b", "O")]),
        (item for item in ()),
        Does(None),
        cyclic(),
        threading.Lock(),
    ],
    ids=[
        "set",
        "object",
        "list",
        "dict",
        "array",
        "records",
        "generator",
        "stage",
        "cycle",
        "lock",
    ],
)
def test_what_is_no_plain_data_is_a_bad_payload(payload):
    result = run(lambda: payload)
    assert result.fault.kind == "bad_payload"
    assert result.fault.detail
    assert result.payload is None


def test_a_coroutine_is_a_bad_payload():
    coroutine = forgotten()
    assert run(lambda: coroutine).fault.kind == "bad_payload"
    coroutine.close()


@dataclass
class Grid:
    """A user's own payload."""

    cells: np.ndarray
    names: list = field(default_factory=list)
    more: Mapping = field(default_factory=dict)


def test_a_users_dataclass_is_a_payload_and_every_number_counts():
    def make(cell=0.0, name="a"):
        cells = np.zeros((2, 2))
        cells[0, 0] = cell
        return Grid(cells, [name], {"t": torch.zeros(2)})

    digests = [run(lambda k=k: make(*k)).digest for k in ((), (), (1e-300,), (0.0, "b"), (-0.0,))]
    assert digests[0] == digests[1]
    assert len(set(digests[1:])) == 4


def test_an_array_that_is_handed_over_is_read_only_and_so_is_its_memory():
    buffer = np.zeros(10)
    result = run(lambda: Grid(buffer[2:5], [np.ones(1)], {"m": (np.ones(2),)}))
    grid = result.payload
    for array in (grid.cells, grid.names[0], grid.more["m"][0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        buffer[0] = 7


def test_a_stage_that_writes_into_what_it_returned_fails_at_that_line():
    class Reuses(Stage):
        def __init__(self):
            self.buffer = np.zeros(4)

        def process(self):
            self.buffer[:] += 1
            return self.buffer

    stage = Reuses()
    first, second = run_job("it", stage, {}), run_job("it", stage, {})
    assert first.payload.tolist() == [1, 1, 1, 1]
    assert "ValueError" in second.fault.detail
    assert "read-only" in second.fault.detail


def test_warming_up_tells_its_time_or_its_fault():
    assert warm_up(Does(None)).host_ns >= 1
    assert warm_up(Does(None)).fault is None
    failed = warm_up(Does(None, raising(SystemExit(3))))
    assert failed.fault.detail.startswith("SystemExit: 3 at ")


def test_guarded_lets_pass_what_it_is_told_to():
    assert guarded(lambda: 5) == 5
    for error in (SpecError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            guarded(raising(error), (SpecError, KeyboardInterrupt))
        assert isinstance(guarded(raising(error)), FaultError)


def test_a_stream_takes_its_work_in_order_on_one_thread():
    seen = []

    def process(k):
        seen.append((k, threading.get_ident()))
        return k

    stream = Stream("it", Does(process, lambda: seen.append(("warm", threading.get_ident()))))
    futures = [stream.warm(), *(stream.submit({"k": k}) for k in range(5))]
    results = [wait(future, FOREVER_NS) for future in futures]
    stream.close()
    assert [result.payload for result in results] == [None, 0, 1, 2, 3, 4]
    assert [k for k, _ in seen] == ["warm", 0, 1, 2, 3, 4]
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_a_stream_tells_what_came_of_a_job_on_its_own_thread():
    told = []
    stream = Stream("it", Does(lambda k: k))
    stream.begin({"k": 7}, lambda result: told.append((result.payload, threading.get_ident())))
    wait(stream.submit({"k": 8}), FOREVER_NS)
    stream.close()
    ((payload, thread),) = told
    assert payload == 7
    assert thread != threading.get_ident()


def test_a_stream_goes_on_after_a_fault():
    stream = Stream("it", Does(lambda k: sys.exit(k) if k == 0 else k))
    first, second = stream.submit({"k": 0}), stream.submit({"k": 1})
    assert wait(first, FOREVER_NS).fault.kind == "exception"
    assert wait(second, FOREVER_NS).payload == 1
    stream.close()


def test_waiting_ends_when_the_time_is_up_and_any_time_may_be_given():
    gate = threading.Event()
    stream = Stream("it", Does(gate.wait))
    future = stream.submit({})
    assert wait(future, 1) is None
    gate.set()
    assert wait(future, 2**63 - 1).payload is True
    stream.close()


def test_a_closed_stream_finishes_what_is_queued_and_ends():
    gate = threading.Event()
    stream = Stream("it", Does(gate.wait))
    futures = [stream.submit({}) for _ in range(3)]
    stream.close()
    gate.set()
    assert [wait(future, FOREVER_NS).payload for future in futures] == [True] * 3
    assert stream._worker.join()


# Memory


class Greedy(Stage):
    """Finds no memory in its first so many calls."""

    def __init__(self, refusals):
        self.calls, self.refusals = 0, refusals

    def process(self):
        self.calls += 1
        if self.calls <= self.refusals:
            raise MemoryError
        return self.calls


@pytest.mark.parametrize(("refusals", "calls"), [(0, 1), (1, 2), (2, 2)])
def test_a_stage_that_finds_no_memory_is_tried_once_more(refusals, calls):
    stage = Greedy(refusals)
    stream = Stream("it", stage)
    result = wait(stream.submit({}), FOREVER_NS)
    stream.close()
    assert stage.calls == calls
    assert (result.fault is None) == (refusals < 2)
    assert result.fault is None or result.fault.kind == "out_of_memory"
    assert result.host_ns >= 1
