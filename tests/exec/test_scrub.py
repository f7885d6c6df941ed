"""Weights that change are found within the declared time, mended, and told once."""

import queue

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import avrt
from avrt.errors import SoftwareFault
from avrt.exec import scrub as module
from avrt.exec import weights
from avrt.exec.scrub import Scrub, ScrubPlan
from avrt.exec.stream import Stream

FOREVER_S = 60
WINDOW_JOBS = 1000


def held(*arrays, jobs=4, window_jobs=WINDOW_JOBS):
    """A scrub that has taken the weights of the stage as declared."""
    made = Scrub("it", ScrubPlan(jobs, window_jobs))
    made.hold("", arrays)
    return made


def checked(scrub, jobs, variant=""):
    """What the next jobs have to tell."""
    told = []
    for _ in range(jobs):
        scrub.check(variant)
        told.append(scrub.fault(variant))
    return [fault for fault in told if fault is not None]


@given(st.data())
def test_any_flipped_bit_is_found_in_time_mended_and_told_once(data):
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(any))
    jobs = data.draw(st.integers(1, 12))
    before = data.draw(st.integers(0, 30))
    place = data.draw(st.integers(0, sum(sizes) * 64 - 1))
    arrays = [np.arange(size, dtype=np.float64) for size in sizes]
    copies = [array.copy() for array in arrays]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(weights, "BLOCK_BYTES", 64)
        scrub = held(*arrays, jobs=jobs)
    assert checked(scrub, before) == []
    number = next(n for n in range(len(sizes)) if place < 64 * sum(sizes[: n + 1]))
    bit = place - 64 * sum(sizes[:number])
    arrays[number].view(np.uint8)[bit // 8] ^= 1 << bit % 8
    (fault,) = checked(scrub, jobs)
    assert (type(fault), fault.kind) == (SoftwareFault, "weights")
    assert fault.detail.startswith(f"1 bit of array {number}, float64 [{sizes[number]}] had")
    assert [a.tobytes() for a in arrays] == [c.tobytes() for c in copies]
    assert checked(scrub, 2 * jobs) == []


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(1, 20))
def test_what_is_read_behind_a_job_is_bounded_and_all_is_read_within_its_jobs(sizes, jobs):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(weights, "BLOCK_BYTES", 64)
        scrub = held(*(np.zeros(size, np.int8) for size in sizes), jobs=jobs)
        read = []
        whole = weights.Block.crc32
        patched.setattr(weights.Block, "crc32", lambda block: read.append(block) or whole(block))
        for _ in range(3 * jobs):
            read.append(None)
            scrub.check("")
    blocks = {id(held.block) for held in scrub._ring}
    turns, starts = [], [n for n, block in enumerate(read) if block is None]
    for first, last in zip(starts, [*starts[1:], len(read)], strict=True):
        turns.append(read[first + 1 : last])
    assert scrub.job_bytes == -(-sum(sizes) // jobs)
    assert all(sum(b.size_bytes for b in turn) < scrub.job_bytes + 64 for turn in turns if turn)
    for first in range(2 * jobs):
        assert {id(b) for turn in turns[first : first + jobs] for b in turn} == blocks


KINDS = {
    "channels last": lambda: torch.ones(6, 4, 3, 3).contiguous(memory_format=torch.channels_last),
    "every other": lambda: torch.ones(9, 8)[:, ::2],
    "bfloat16": lambda: torch.ones(5, dtype=torch.bfloat16),
    "int8": lambda: torch.ones(5, dtype=torch.int8),
    "single": lambda: torch.ones(()),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "turned": lambda: np.ones((4, 6), np.float32).T,
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_kind_are_mended_where_they_are(kind):
    array = KINDS[kind]()
    scrub = held(torch.zeros(0), array, jobs=1)
    with torch.no_grad():
        array[...] = 3
    assert len(checked(scrub, 3)) == 1
    assert bool((array == 1).all())


def test_where_one_block_has_changed_all_are_looked_at_and_told_together(monkeypatch):
    monkeypatch.setattr(weights, "BLOCK_BYTES", 64)
    array = np.zeros(80)
    scrub = held(array, jobs=10)
    array[[0, 17, 79]] = 1.0
    (fault,) = checked(scrub, 1)
    assert fault.detail == (
        "3 blocks had changed, the first by 10 bits of array 0, float64 [80]; mended from its copy"
    )
    assert not array.any()


def test_the_third_change_within_ten_minutes_of_jobs_is_the_last():
    array = np.zeros(8)
    scrub = held(array, jobs=1, window_jobs=100)
    for after in (0, 49, 48):
        assert checked(scrub, after) == []
        array[0] = 1.0
        found = checked(scrub, 1)
        assert len(found) == 1
    assert "given up: it was the third time within 600 s" in found[0].detail
    assert not array.any()
    assert len(checked(scrub, 5)) == 5


def test_changes_that_are_far_apart_are_mended_each_time():
    array = np.zeros(8)
    scrub = held(array, jobs=1, window_jobs=100)
    for _ in range(6):
        array[0] = 1.0
        assert "mended" in checked(scrub, 1)[0].detail
        assert checked(scrub, 50) == []


def test_a_copy_that_has_changed_too_mends_nothing():
    array = np.zeros(8)
    scrub = held(array, jobs=1)
    array[0] = 1.0
    scrub._ring[0].copy[5] ^= 4
    assert "given up: its copy has changed too" in checked(scrub, 1)[0].detail
    assert array[0] == 1.0
    assert len(checked(scrub, 3)) == 3


def test_a_block_that_was_only_read_wrong_is_left_alone(monkeypatch):
    scrub = held(np.zeros(8), jobs=1)
    right, reads = weights.Block.crc32, iter([False, True])
    monkeypatch.setattr(weights.Block, "crc32", lambda block: right(block) ^ (not next(reads)))
    assert checked(scrub, 1) == []


def test_memory_that_does_not_keep_what_is_written_is_given_up(monkeypatch):
    array = np.zeros(8)
    scrub = held(array, jobs=1)
    array[0] = 1.0
    monkeypatch.setattr(weights.Block, "write", lambda _block, _content: None)
    assert "does not keep what is written" in checked(scrub, 1)[0].detail


def test_weights_that_moved_are_checked_whole_and_trusted_anew():
    scrub = held(np.zeros(8), np.ones(4), jobs=99)
    scrub._given_up[""] = SoftwareFault("weights", "it")
    moved = [np.zeros(8), np.ones(4)]
    scrub.moved("", moved)
    assert checked(scrub, 1) == []
    moved[1][2] = 7.0
    scrub.moved("", [moved[0].copy(), moved[1]])
    assert scrub.fault("").kind == "weights"
    assert moved[1][2] == 1.0


def test_weights_of_another_precision_are_taken_as_they_are_after_a_move():
    scrub = held(np.zeros(8), jobs=1)
    crc32s = dict(scrub.crc32s)
    half = np.ones(8, np.float16)
    scrub.moved("", [half])
    assert checked(scrub, 2) == []
    half[3] = 2.0
    assert len(checked(scrub, 1)) == 1
    assert half[3] == 1.0
    assert scrub.crc32s == crc32s


def test_variants_that_wait_are_checked_too_and_given_up_alone():
    declared, waiting = np.zeros(8), np.zeros(8)
    scrub = held(declared, jobs=2)
    scrub.hold("light", [waiting])
    for _ in range(module.CHANGES_MAX):
        waiting[1] = 3.0
        (fault,) = checked(scrub, 2)
    assert "of variant light had changed; given up" in fault.detail
    assert checked(scrub, 4) == []
    assert scrub.fault("light") is not None
    declared[0] = 1.0
    assert len(checked(scrub, 2)) == 1


def test_what_cannot_be_read_is_told_by_its_own_variant_only(monkeypatch):
    scrub = held(np.zeros(8), jobs=1)

    def gone(_block):
        raise OSError("gone")

    monkeypatch.setattr(weights.Block, "crc32", gone)
    assert checked(scrub, 2, "light") == []
    assert [fault.kind for fault in checked(scrub, 2)] == ["exception"] * 2


def test_what_cannot_be_mended_can_be_looked_at_only():
    array = np.zeros(8)
    array.flags.writeable = False
    with pytest.raises(SoftwareFault, match=r"array 0, float64 \[8\], read-only"):
        held(array)
    Scrub("it", None).hold("", [array])


def test_without_a_plan_weights_are_looked_at_once():
    array = np.zeros(8)
    scrub = Scrub("it", None)
    scrub.hold("", [array])
    assert scrub.told == f"64 bytes, CRC32 {scrub.crc32s['']:08x}"
    array[0] = 1.0
    assert checked(scrub, 3) == []
    assert Scrub("it", None).told == ""


# In a stream


class Looking(avrt.Stage):
    """Answers with its table, which it makes in its warm-up and anew where it moves to."""

    def __init__(self, scale=1.0):
        self.scale, self.jobs = scale, 0

    def warm(self):
        self.table = np.full(4, self.scale)

    def place(self, device):
        del device
        if hasattr(self, "table"):
            self.table = self.table.copy()

    def weight_arrays(self):
        return [self.table]

    def process(self):
        self.jobs += 1
        return self.table.tolist()


@pytest.fixture
def stream():
    """A warm stream of a stage whose weights are checked behind each job."""
    plan = ScrubPlan(1, WINDOW_JOBS)
    light = Looking(2.0)
    made = Stream("it", Looking(), variants={"light": (light, "")}, scrub=plan)
    assert made.warm().result().fault is None
    yield made
    made.close()


def go(stream, variant=""):
    """Do a job; return its payload, or its fault."""
    results = queue.Queue()
    stream.begin({}, results.put, variant=variant)
    result = results.get(timeout=FOREVER_S)
    return result.fault or list(result.payload)


def test_a_stream_tells_of_a_change_in_place_of_the_job_after_and_goes_on(stream):
    assert go(stream) == [1.0] * 4
    stream.state().result(timeout=FOREVER_S)  # what it does behind that job is done
    stream._stages[""].table[2] = 9.0
    assert go(stream) == [1.0, 1.0, 9.0, 1.0]
    assert go(stream).kind == "weights"
    assert stream._stages[""].jobs == 2
    assert go(stream) == [1.0] * 4


def test_a_stream_checks_the_variants_that_wait(stream):
    stream._stages["light"].table[2] = 9.0
    assert go(stream) == [1.0] * 4
    assert "of variant light" in go(stream).detail
    assert go(stream, "light") == [2.0] * 4


@pytest.mark.parametrize("plan", [None, ScrubPlan(1, WINDOW_JOBS)])
def test_weights_that_are_no_arrays_end_the_warm_up(plan):
    stage = Looking()
    stage.weight_arrays = lambda: ["none"]
    made = Stream("it", stage, scrub=plan)
    assert made.warm().result().fault.kind == "weights"
    made.close()
