"""Votes are counted by verdict, and who was found wrong by task."""

from avrt.metrics.votes import VoteFigures
from avrt.model.records import VoteRecord


def test_verdicts_holds_and_blame_are_counted():
    votes = VoteFigures()
    for record in (
        VoteRecord(0, "plan", 1, "unanimous"),
        VoteRecord(1, "plan", 2, "majority"),
        VoteRecord(1, "plan", 3, "", blamed=("plan.2",)),
        VoteRecord(2, "plan", 4, "no_majority", held=True, blamed=("plan.1", "plan.2")),
    ):
        votes.vote(record)
    assert votes.without_majority == 1
    assert votes.summary() == {
        "count": 3,
        "verdicts": {"majority": 1, "no_majority": 1, "unanimous": 1},
        "held": 1,
        "blamed": {"plan.1": 1, "plan.2": 2},
    }
