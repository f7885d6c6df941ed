"""Reading ahead: the same items in the same order, a bound, and nothing left behind."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.prefetch import prefetched
from avrt.errors import DamagedInputError


@given(st.lists(st.integers()), st.integers(1, 5))
def test_items_come_in_order_whatever_the_bound(items, ahead):
    assert list(prefetched(items, ahead)) == items


def test_damage_is_raised_after_the_last_good_item():
    def read():
        yield 1
        yield 2
        raise DamagedInputError("cut off", "x.mcap", 2)

    seen = []
    with pytest.raises(DamagedInputError, match="cut off"):
        seen.extend(prefetched(read()))
    assert seen == [1, 2]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("a bug")])
def test_whatever_reading_raises_is_raised_and_nobody_waits_for_ever(error):
    def read():
        yield 1
        raise error

    seen = []
    with pytest.raises(type(error)) as caught:
        seen.extend(prefetched(read()))
    assert caught.value is error
    assert seen == [1]


def test_no_more_is_read_ahead_than_the_bound_and_closing_ends_the_thread():
    read, third = [], threading.Event()

    def endless():
        for i in range(10**6):
            read.append(i)
            if i == 3:
                third.set()
            yield i

    items = prefetched(endless(), ahead=2)
    assert next(items) == 0
    assert third.wait(60)
    items.close()
    assert len(read) <= 5
    assert not [t for t in threading.enumerate() if t.name == "avrt-read"]
