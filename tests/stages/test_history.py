"""Whatever order measurements come in, what is believed is what it would be in their own order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avrt.stages.fusion.history import History

keys = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), unique=True, max_size=12
)


def step(state, key, look):
    return (*state, (key, look))


@given(keys=keys, data=st.data())
def test_every_order_of_arrival_gives_the_same_history(keys, data):
    order = data.draw(st.permutations(keys))
    cuts = data.draw(st.integers(0, len(order)))
    history = History(())
    for some in (order[:cuts], *([one] for one in order[cuts:])):
        history = history.with_looks([(key, f"look {key}") for key in some], step)
    assert history.newest == tuple((key, f"look {key}") for key in sorted(keys))
    assert [one.key for one in history.entries] == sorted(keys)


@given(keys=keys, before=st.integers(0, 6), at=st.integers(-1, 6))
def test_what_is_folded_away_stays_in_what_is_believed(keys, before, at):
    history = History(()).with_looks([(key, "") for key in keys], step)
    kept = history.without(before)
    assert kept.newest == history.newest
    assert all(one.key[0] >= before for one in kept.entries)
    assert history.at(at) == tuple((key, "") for key in sorted(keys) if key[0] <= at)
    if at >= before:
        assert kept.at(at) == history.at(at)


@given(keys=keys)
def test_a_history_knows_what_it_holds_and_never_changes(keys):
    empty = History(())
    full = empty.with_looks([(key, "") for key in keys], step)
    assert all(full.holds(key) for key in keys)
    assert not full.holds((9, 0, 0))
    assert empty == History(())
    assert full.rebased(("other",), step).newest == ("other", *full.newest)
