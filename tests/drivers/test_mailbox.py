"""A source never waits, and what gives way to newer messages is counted."""

from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.mailbox import Mailbox


def test_the_oldest_gives_way_to_the_newest():
    box = Mailbox(2)
    for number in range(5):
        box.put(number)
    assert [box.take(), box.take(), box.take()] == [3, 4, None]
    assert (box.delivered, box.dropped) == (5, 3)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 5))
def test_every_message_is_taken_dropped_or_still_there(puts, size):
    box, taken, put = Mailbox(size), [], 0
    for is_put in puts:
        if is_put:
            box.put(put)
            put += 1
        elif (letter := box.take()) is not None:
            taken.append(letter)
    assert box.taken == len(taken)
    left = []
    while (letter := box.take()) is not None:
        left.append(letter)
    assert taken + left == sorted(taken + left)
    assert len(taken) + len(left) + box.dropped == put == box.delivered
    assert len(left) <= size
