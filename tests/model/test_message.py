"""Origins keep the oldest and newest capture per source, whatever the order of merging."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.model.message import Message, Origin, Stamp, merge_origins

origins = st.dictionaries(
    st.sampled_from("abc"),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda t: Origin(min(t), max(t))),
)


def test_a_message_rests_on_nothing_until_told():
    message = Message(Stamp("cam", 0, 1, 1, 2), payload="x")
    assert message.origins == {}
    assert not message.degraded
    assert not message.speculative
    assert message.stamp.frame == ""


def test_merging_keeps_the_oldest_and_the_newest():
    merged = merge_origins([{"cam": Origin(3, 5)}, {"cam": Origin(1, 4), "top": Origin(2, 2)}])
    assert merged == {"cam": Origin(1, 5), "top": Origin(2, 2)}


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(origins, max_size=4))
def test_merging_does_not_depend_on_the_order(inputs):
    merged = merge_origins(inputs)
    assert merged == merge_origins(reversed(inputs))
    for source, origin in merged.items():
        every = [i[source] for i in inputs if source in i]
        assert origin.oldest_ns == min(o.oldest_ns for o in every)
        assert origin.newest_ns == max(o.newest_ns for o in every)
