"""The last times at which a driver was late."""

from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.lateness import Lateness

PAIRS = st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), max_size=20)


@given(PAIRS, st.integers(1, 6))
def test_the_last_ones_are_kept_oldest_first(pairs, size):
    late = Lateness(size)
    for at_ns, late_ns in pairs:
        late.add(at_ns, late_ns)
    assert list(late) == pairs[-size:]
    assert len(late) == len(pairs[-size:])
