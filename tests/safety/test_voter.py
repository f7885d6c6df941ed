"""What the voter remembers: the accepted output, who was wrong, who is trusted."""

import pytest
from driven import scene, track
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.safety.agreement import Scalar
from avrt.safety.objects import Objects
from avrt.safety.replicas import SHADOW_FRAMES, Replicas
from avrt.safety.vote import Ballot, Rules
from avrt.safety.voter import HOLD_NS, Answer, Voter

MS = 1_000_000


@pytest.fixture
def voter():
    return Voter(Rules(agreement=Scalar(absolute=1.0), domains=("a", "b", "c")))


def ballots(*values):
    return [
        Ballot(i, abstains=value) if isinstance(value, str) else Ballot(i, value)
        for i, value in enumerate(values)
        if value is not None
    ]


def over(voter, activation, *values, at_ns=0):
    return voter.vote(activation, ballots(*values), "over", at_ns)


def test_an_early_decision_stands_and_the_last_one_is_judged_when_it_is_over(voter):
    assert voter.vote(0, ballots(5.0, None, 9.0), "early", 1) == Answer("open")
    assert voter.vote(0, ballots(5.0, 5.1, 9.0), "early", 2) == Answer("majority", 0)
    assert over(voter, 0, 5.0, 5.1, 9.0) == Answer("", blamed=(2,))
    assert [replica.points for replica in voter.replicas.all] == [0, 0, 1]


def test_whoever_comes_after_the_last_time_was_late_even_if_right(voter):
    assert voter.vote(0, ballots(5.0, 5.0, None), "deadline", 1) == Answer("majority_of_two", 0)
    assert over(voter, 0, 5.0, 5.0, 5.0).blamed == (2,)
    assert voter.replicas.all[2].points == 0.5


def test_a_late_one_that_would_have_been_early_enough_is_not_blamed(voter):
    assert voter.vote(0, ballots(5.0, 5.0, None), "early", 1).choice == 0
    assert over(voter, 0, 5.0, 5.0, 5.0).blamed == ()


def test_without_a_decision_the_last_accepted_output_is_held_for_two_frames(voter):
    assert not over(voter, 0, 1.0, 5.0, 9.0).held
    assert over(voter, 1, 5.0, 5.0, 5.0, at_ns=10 * MS).choice == 0
    held = [over(voter, i, 1.0, 5.0, 9.0, at_ns=(20 + i) * MS).held for i in range(2, 6)]
    assert held == [True, True, False, False]
    assert over(voter, 6, 5.0, 5.0, 5.0, at_ns=40 * MS).choice == 0
    assert over(voter, 7, 1.0, 5.0, 9.0, at_ns=50 * MS).held


def test_a_vote_that_fails_holds_what_was_accepted_and_blames_nobody(voter):
    over(voter, 0, 5.0, 5.0, 5.0)
    assert voter.failed(1, "deadline", 10 * MS) == Answer("failed", held=True)
    assert voter.failed(1, "over", 11 * MS) == Answer("")
    assert voter.failed(2, "over", 20 * MS) == Answer("failed", held=True)
    assert voter.failing == 2
    assert voter.failed(3, "over", 30 * MS) == Answer("failed")
    assert over(voter, 4, 5.0, 5.0, 9.0, at_ns=40 * MS) == Answer("majority", 0, blamed=(2,))


def test_a_decided_vote_stays_so_when_its_judging_fails(voter):
    assert voter.vote(0, ballots(5.0, 5.0), "early", 1).choice == 0
    assert voter.failed(0, "over", 2) == Answer("")
    assert voter.failing == 0


def test_what_must_not_be_lost_is_published_with_the_selected_list(voter):
    """Whose list it is was wrong all the same: quarantined, it adds nothing any more."""
    voter = Voter(Rules(agreement=Objects(), domains=("a", "b", "c")))
    seen, more = scene(track(1, 10, 0)), scene(track(1, 10, 0), track(2, 30, 0))
    for activation in range(3):
        found = voter.vote(activation, ballots(seen, seen, more), "early", activation)
        assert (found.verdict, found.choice, len(found.merged.objects)) == ("majority", 0, 2)
        assert found.is_doubtful
        told = over(voter, activation, seen, seen, more, at_ns=activation)
        assert told.blamed == (2,)
    assert told.quarantined == (2,)
    found = over(voter, 3, seen, seen, more)
    assert (found.choice, found.merged, found.is_doubtful) == (0, None, False)


def test_what_comes_after_the_decision_adds_nothing():
    voter = Voter(Rules(agreement=Objects(), domains=("a", "b", "c")))
    seen, more = scene(track(1, 10, 0)), scene(track(1, 10, 0), track(2, 30, 0))
    found = voter.vote(0, ballots(seen, seen), "early", 1)
    assert (found.choice, found.merged, found.is_doubtful) == (0, None, False)
    assert over(voter, 0, seen, seen, more) == Answer("", blamed=(2,))


def test_an_output_that_is_too_old_is_not_held(voter):
    over(voter, 0, 5.0, 5.0, 5.0, at_ns=0)
    assert not over(voter, 1, 1.0, 5.0, 9.0, at_ns=HOLD_NS + 1).held


def test_two_votes_in_a_row_without_a_decision_are_a_failure(voter):
    over(voter, 0, "late", "late", "late")
    over(voter, 1, 1.0, 5.0, 9.0)
    assert voter.failing == 2
    over(voter, 2, 5.0, 5.0, 9.0)
    assert voter.failing == 0


def test_an_older_activation_is_given_up_when_a_newer_one_is_accepted(voter):
    assert voter.vote(0, ballots(1.0, 5.0, None), "early", 1).verdict == "open"
    assert voter.vote(1, ballots(6.0, 6.0, None), "early", 2).choice == 0
    assert over(voter, 0, 1.0, 5.0, 5.0) == Answer("")
    assert voter._previous == 6.0


def test_an_output_that_is_held_for_a_newer_activation_gives_up_older_ones(voter):
    over(voter, 0, 5.0, 5.0, 5.0)
    assert voter.vote(1, ballots(1.0, 7.0, None), "early", 1).verdict == "open"
    assert voter.vote(2, ballots(1.0, None, None), "deadline", 2).held
    assert over(voter, 1, 1.0, 7.0, 7.0) == Answer("")
    assert voter._previous == 5.0


@pytest.fixture
def logical():
    """Return a voter of a stage that publishes at its deadlines."""
    rules = Rules(agreement=Scalar(absolute=1.0), domains=("a", "b", "c"), supersedes=False)
    return Voter(rules)


def test_what_is_held_is_the_newest_that_was_accepted_and_never_newer_than_its_frame(logical):
    assert logical.vote(1, ballots(1.0, 7.0, None), "early", 1).verdict == "open"
    assert logical.vote(2, ballots(12.0, 12.0, None), "early", 2).choice == 0
    assert over(logical, 1, 1.0, 11.0, 11.0).choice == 1
    assert logical._previous == 12.0
    assert logical.vote(3, ballots(1.0, 7.0, None), "deadline", 3).held
    assert logical.vote(5, ballots(15.0, 15.0, None), "early", 4).choice == 0
    assert not logical.vote(4, ballots(1.0, 7.0, None), "deadline", 5).held


def test_an_output_after_its_deadline_was_late_whoever_decided_early(voter):
    assert voter.vote(0, ballots(5.0, 5.0, None), "early", 1).choice == 0
    late = [Ballot(0, 5.0), Ballot(1, 5.0), Ballot(2, 5.0, is_late=True)]
    assert voter.vote(0, late, "over", 2).blamed == (2,)
    assert voter.replicas.all[2].points == 0.5


def test_what_is_too_old_to_be_held_judges_nothing_new():
    accept = lambda value, previous: previous is None or abs(value - previous) <= 2  # noqa: E731
    rules = Rules(agreement=Scalar(absolute=1.0), domains=("a", "b", "c"), accept=accept)
    voter = Voter(rules)
    over(voter, 0, 5.0, 5.0, 5.0, at_ns=0)
    assert over(voter, 1, 50.0, 50.0, 50.0, at_ns=50 * MS).verdict == "rejected"
    assert over(voter, 2, 50.0, 50.0, 50.0, at_ns=150 * MS).verdict == "rejected"
    assert over(voter, 3, 50.0, 50.0, 50.0, at_ns=200 * MS).choice == 0


def test_what_hits_all_replicas_at_once_leaves_all_of_them(voter):
    over(voter, 0, "crashed", "crashed", "crashed")
    assert voter.replicas.active == [0, 1, 2]
    assert over(voter, 1, 5.0, 5.0, 5.0).verdict == "unanimous"


def test_a_replica_that_does_nothing_earns_nothing(voter):
    over(voter, 0, 5.0, 5.0, 9.0)
    for activation in range(1, 20):
        over(voter, activation, 5.0, 5.0, "skipped")
    assert voter.replicas.all[2].points == 1.0


def test_three_wrong_outputs_quarantine_a_replica_and_then_it_counts_no_more(voter):
    answers = [over(voter, i, 5.0, 5.0, 9.0) for i in range(3)]
    assert [answer.quarantined for answer in answers] == [(), (), (2,)]
    assert over(voter, 3, 5.0, 9.0, 9.0).verdict == "tie"


def test_a_crash_quarantines_at_once(voter):
    assert over(voter, 0, 5.0, 5.0, "crashed").quarantined == (2,)


def test_a_transient_fault_quarantines_nobody(voter):
    for activation in range(1000):
        values = [5.0, 5.0, 5.0]
        values[activation % 3] += 100 * (activation % 40 == 0)
        assert over(voter, activation, *values).quarantined == ()
    assert voter.replicas.active == [0, 1, 2]


def test_a_restored_replica_counts_again_after_it_has_agreed_long_enough(voter):
    over(voter, 0, 5.0, 5.0, "crashed")
    voter.replicas.restored(2)
    for activation in range(1, SHADOW_FRAMES):
        assert over(voter, activation, 5.0, 5.0, 5.0).verdict == "majority_of_two"
    over(voter, SHADOW_FRAMES, 5.0, 5.0, 5.0)
    assert over(voter, SHADOW_FRAMES + 1, 5.0, 9.0, 5.0).choice == 0


def test_one_that_disagrees_while_it_follows_along_is_quarantined_again(voter):
    over(voter, 0, 5.0, 5.0, "crashed")
    voter.replicas.restored(2)
    over(voter, 1, 5.0, 5.0, 9.0)
    assert voter.replicas.all[2].standing == "quarantined"


@pytest.mark.parametrize(("apart_s", "standing"), [(200, "out"), (400, "active")])
def test_the_third_quarantine_within_ten_minutes_is_for_good(apart_s, standing):
    replicas = Replicas(3)
    for number in range(3):
        at_ns = number * apart_s * 1000 * MS
        replicas.judge({2: 3.0}, (), at_ns)
        replicas.restored(2)
        for _ in range(SHADOW_FRAMES):
            replicas.followed(2, agrees=True, at_ns=at_ns)
    assert replicas.all[2].standing == standing


def test_disagreement_alone_never_leaves_fewer_than_two():
    replicas = Replicas(3)
    for _ in range(10):
        replicas.judge({0: 1.0, 1: 1.0, 2: 1.0}, (), 0)
    assert replicas.active == [1, 2]
    assert replicas.judge({2: 3.0}, (), 0) == [2]


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(*[st.one_of(st.sampled_from([5.0, 5.5, 9.0, 13.0, "late", "crashed"]))] * 3),
        max_size=30,
    )
)
def test_what_is_accepted_was_said_by_a_trusted_replica_and_never_by_a_bad_one(frames):
    voter = Voter(Rules(agreement=Scalar(absolute=1.0), domains=("a", "b", "c")))
    for activation, values in enumerate(frames):
        trusted = set(voter.replicas.active)
        answer = over(voter, activation, *values)
        if answer.choice is not None:
            assert answer.choice in trusted
            assert not isinstance(values[answer.choice], str)
            agreeing = [v for v in values if not isinstance(v, str)]
            assert sum(abs(v - values[answer.choice]) <= 1 for v in agreeing) >= 2
        assert not voter._decided


def twins(accept):
    """Return a voter over two replicas of one failure domain and one of another."""
    return Voter(Rules(agreement=Scalar(absolute=1.0), domains=("a", "a", "b"), accept=accept))


def test_who_objects_to_a_pair_of_one_domain_is_never_silenced_for_it():
    voter = twins(lambda _output, _previous: True)
    for activation in range(20):
        assert voter.vote(activation, ballots(5.0, 5.0), "early", 0) == Answer("open")
        found = over(voter, activation, 5.0, 5.0, 9.0)
        assert found == Answer("weak_majority", 0)
        assert found.is_doubtful
    assert voter.replicas.active == [0, 1, 2]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(*[st.sampled_from([5.0, 5.5, 9.0, 13.0, "late"])] * 3), max_size=30),
    st.sampled_from([None, lambda output, _previous: output < 10, lambda *_: True]),
)
def test_a_pair_of_one_domain_is_never_told_to_be_right_while_another_objects(frames, accept):
    voter = twins(accept)
    for activation, values in enumerate(frames):
        answer = over(voter, activation, *values)
        third = values[2]
        if answer.choice in {0, 1} and not isinstance(third, str) and 2 in voter.replicas.active:
            assert answer.is_doubtful or abs(third - values[answer.choice]) <= 1
