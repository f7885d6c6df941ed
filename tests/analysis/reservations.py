"""Random supplies, and what each gives, ns by ns."""

from __future__ import annotations

from hypothesis import strategies as st

from avrt.model.supply import Supply


@st.composite
def supplies(draw, period_max=9):
    period_ns = draw(st.integers(1, period_max))
    budget_ns = draw(st.integers(1, period_ns))
    starts = st.integers(0, period_ns - budget_ns)
    return Supply(period_ns, budget_ns, tuple(draw(st.lists(starts, min_size=1, max_size=4))))


def gives(supply, tick):
    """Whether a supply gives the ns that begins at this time."""
    period, into = divmod(tick, supply.period_ns)
    start = supply.starts_ns[period % len(supply.starts_ns)]
    return start <= into < start + supply.budget_ns
