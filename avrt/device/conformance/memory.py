"""Conformance of memory: freed once, reused in stream order, and the guard that is the reason."""

from __future__ import annotations

from functools import partial

import torch

from avrt.device.base import BufferMisused, OutOfMemory
from avrt.device.conformance.rig import SLOW_NS, Rig, integers, races, read
from avrt.device.lifetimes import POISON
from avrt.errors import raised_by

SIZE_BYTES = 4096
FIELD_ROUNDS = 1000


def freeing_twice_raises(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    buffer = executor.allocate(SIZE_BYTES, stream)
    executor.deallocate(buffer, stream)
    before = executor.pool.statistics.bytes_free
    error = raised_by(partial(executor.deallocate, buffer, stream))
    assert isinstance(error, BufferMisused), error
    assert executor.pool.statistics.bytes_free == before


def use_after_free_raises(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    freed, other = executor.allocate(SIZE_BYTES, stream), executor.allocate(SIZE_BYTES, stream)
    executor.deallocate(freed, stream)
    for use in (
        partial(executor.launch, stream, int, reads=(freed,)),
        partial(executor.launch, stream, int, writes=(freed,)),
        partial(executor.copy, other, freed, stream),
        partial(executor.copy, freed, other, stream),
    ):
        error = raised_by(use)
        assert isinstance(error, BufferMisused), error


def reuse_on_the_same_stream_is_immediate(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    release = rig.hold(stream)
    first = executor.allocate(SIZE_BYTES, stream)
    executor.deallocate(first, stream)
    second = executor.allocate(SIZE_BYTES, stream)
    assert second.storage is first.storage
    assert executor.pool.statistics.reuse_waits == 0
    assert executor.pool.statistics.bytes_in_use_max == SIZE_BYTES
    release()


def reuse_on_another_stream_waits(rig: Rig) -> None:
    executor = rig.executor
    assert _race(rig) == [7]
    assert executor.pool.statistics.reuse_waits == 1
    assert races(executor) == 0


def without_the_guard_reuse_is_caught_and_does_harm(rig: Rig) -> None:
    """The mutant: it shows that the tests above can fail."""
    rig.executor.pool.guarded = False
    got = _race(rig)
    assert races(rig.executor) > 0, "the checker saw no race"
    assert got != [7], "the data was right by luck"


def freed_memory_is_poisoned_in_debug_mode(rig: Rig) -> None:
    executor = rig.make(debug=True)
    stream = executor.stream("s")
    buffer, _ = integers(executor, stream)
    executor.deallocate(buffer, stream)
    again = executor.allocate(8, stream)
    assert again.storage is buffer.storage
    assert read(executor, stream, again) == [int.from_bytes([POISON] * 8, "little", signed=True)]


def memory_of_a_failed_stream_is_as_good_as_any(rig: Rig) -> None:
    executor = rig.executor
    bad, good = executor.stream("bad"), executor.stream("good")
    buffer = executor.allocate(8, bad)
    executor.launch(bad, _breaks, writes=(buffer,))
    executor.deallocate(buffer, bad)
    again, number = integers(executor, good)
    assert again.storage is buffer.storage
    executor.launch(good, partial(number.fill_, 6), writes=(again,))
    assert read(executor, good, again) == [6]
    assert good.error is None


def the_bound_of_memory_holds(rig: Rig) -> None:
    executor = rig.make(bytes_max=4 * SIZE_BYTES)
    stream = executor.stream("s")
    kept = [executor.allocate(SIZE_BYTES, stream) for _ in range(3)]
    executor.deallocate(kept.pop(), stream)
    big = executor.allocate(2 * SIZE_BYTES, stream)
    assert executor.pool.statistics.evictions == 1
    error = raised_by(partial(executor.allocate, SIZE_BYTES, stream))
    assert isinstance(error, OutOfMemory), error
    executor.deallocate(big, stream)
    executor.pool.trim()
    assert executor.pool.statistics.bytes_free == 0


def memory_freed_under_a_side_stream_stays_right(rig: Rig) -> None:
    """Field case GPU-01: a tensor is freed while a side stream still copies it."""
    executor = rig.executor
    main, side = executor.stream("main"), executor.stream("side")
    wrong, count = integers(executor, side)
    target, taken = integers(executor, side)
    for step in range(FIELD_ROUNDS):
        frame = executor.allocate(8, main)
        number = frame.view((1,), torch.int64)
        executor.launch(main, partial(number.fill_, step), writes=(frame,))
        executor.wait(side, executor.record(main))
        if step % 250 == 0:
            executor.delay(side, SLOW_NS)
        executor.copy(target, frame, side)
        executor.launch(
            side, partial(_count_wrong, count, taken, step), reads=(target,), writes=(wrong,)
        )
        executor.deallocate(frame, main)
        other = executor.allocate(8, main)
        executor.launch(main, partial(other.view((1,), torch.int64).fill_, -1), writes=(other,))
        executor.deallocate(other, main)
    assert read(executor, side, wrong) == [0]
    assert races(executor) == 0


def _race(rig: Rig) -> list[int]:
    """Let a held reader's buffer be freed and had by a stream that overwrites it at once.

    Without the guard the overwriting stream is over before the reader is let go.
    """
    executor = rig.executor
    slow, quick = executor.stream("slow"), executor.stream("quick")
    result, _ = integers(executor, slow)
    first, number = integers(executor, slow, SIZE_BYTES // 8)
    executor.launch(slow, partial(number.fill_, 7), writes=(first,))
    executor.synchronize(slow)
    release = rig.hold(slow)
    executor.copy(result, first, slow)
    executor.deallocate(first, slow)
    second = executor.allocate(SIZE_BYTES, quick)
    assert second.storage is first.storage
    overwrite = partial(second.view((SIZE_BYTES // 8,), torch.int64).fill_, -1)
    executor.launch(quick, overwrite, writes=(second,))
    if executor.pool.guarded:
        release()
    executor.synchronize(quick)
    release()
    return read(executor, slow, result)


def _count_wrong(count: torch.Tensor, taken: torch.Tensor, expected: int) -> None:
    count.add_(taken.ne(expected).to(count.dtype))


def _breaks() -> None:
    raise ValueError("a kernel failed")
