"""One box remains for each object, whatever the order they come in and the view that shows them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.stages.camera.suppression import (
    Candidates,
    area,
    intersection,
    joined,
    suppressed,
    together,
)

GROUPS = np.array([0, 0, 1])
IOU = 0.5

corners = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 12), st.integers(1, 12))
rows = st.tuples(corners, st.integers(1, 9), st.integers(0, 2), st.booleans(), st.booleans())


def candidates(*boxes):
    """Each is (left, top, right, bottom), score, class, and which of left and right are cut."""
    return Candidates(
        np.array([box for box, *_ in boxes], np.float32).reshape(-1, 4),
        np.array([score for _, score, *_ in boxes], np.float32),
        np.array([kind for _, _, kind, *_ in boxes], np.int64),
        np.array([cut for *_, cut in boxes], np.bool_).reshape(-1, 2),
    )


def whole(box, score=0.9, kind=0):
    return box, score, kind, (False, False)


@st.composite
def drawn(draw):
    found = draw(st.lists(rows, max_size=8))
    return candidates(
        *(
            ((x, y, x + width, y + height), score / 10, kind, (left, right))
            for (x, y, width, height), score, kind, left, right in found
        )
    )


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("boxes", "scores", "classes")
    )


@settings(max_examples=50)
@given(found=drawn(), seed=st.integers(0, 99))
def test_the_order_of_the_input_says_nothing(found, seed):
    mixed = found.taken(np.random.default_rng(seed).permutation(len(found)))
    assert same(suppressed(found, GROUPS, IOU), suppressed(mixed, GROUPS, IOU))


@settings(max_examples=50)
@given(found=drawn())
def test_what_remains_remains(found):
    once = suppressed(found, GROUPS, IOU)
    assert same(once, suppressed(once, GROUPS, IOU))


@settings(max_examples=50)
@given(found=drawn())
def test_the_best_whole_box_of_each_group_remains(found):
    kept = suppressed(found, GROUPS, IOU)
    uncut = found.taken(~found.cut.any(axis=1))
    for group in set(GROUPS[uncut.classes].tolist()):
        best = uncut.scores[GROUPS[uncut.classes] == group].max()
        assert best in kept.scores[GROUPS[kept.classes] == group]


@settings(max_examples=50)
@given(found=drawn())
def test_no_two_whole_boxes_of_a_group_overlap_too_much(found):
    kept = suppressed(found, GROUPS, IOU)
    kept = kept.taken(~kept.cut.any(axis=1))
    for i, box in enumerate(kept.boxes):
        shared = intersection(box, kept.boxes)
        iou = shared / (area(box) + area(kept.boxes) - shared)
        iou[i] = 0
        assert (iou[GROUPS[kept.classes] == GROUPS[kept.classes[i]]] <= IOU + 1e-6).all()


@settings(max_examples=50)
@given(found=drawn())
def test_the_best_score_comes_first(found):
    scores = suppressed(found, GROUPS, IOU).scores
    assert (np.diff(scores) <= 0).all()


def test_the_better_of_two_alike_remains():
    found = candidates(whole((0, 0, 10, 10), 0.6), whole((1, 0, 11, 10), 0.8, kind=1))
    kept = suppressed(found, GROUPS, IOU)
    assert kept.boxes.tolist() == [[1, 0, 11, 10]]
    assert kept.classes.tolist() == [1]


def test_other_groups_do_not_compete():
    found = candidates(whole((0, 0, 10, 10)), whole((0, 0, 10, 10), kind=2))
    assert len(suppressed(found, GROUPS, IOU)) == 2


def test_a_half_is_dropped_for_the_whole_even_with_a_better_score():
    half = (0, 0, 4, 10), 0.95, 0, (False, True)
    found = candidates(half, whole((0, 0, 10, 10), 0.5))
    assert suppressed(found, GROUPS, IOU).boxes.tolist() == [[0, 0, 10, 10]]


def test_a_half_that_nothing_else_shows_remains():
    half = (0, 0, 4, 10), 0.4, 0, (False, True)
    found = candidates(half, whole((20, 0, 30, 10), 0.5))
    assert len(suppressed(found, GROUPS, IOU)) == 2


@pytest.mark.parametrize(("scores", "kind"), [((0.6, 0.7), 1), ((0.8, 0.7), 0)])
def test_two_parts_of_one_object_become_one_of_the_better_parts_class(scores, kind):
    left = candidates(((60, 10, 100, 50), scores[0], 0, (False, True)), whole((0, 0, 9, 9), 0.3))
    right = candidates(((80, 12, 130, 50), scores[1], 1, (True, False)))
    united = suppressed(joined([left, right], GROUPS), GROUPS, IOU)
    assert united.boxes.tolist() == [[60, 10, 130, 50], [0, 0, 9, 9]]
    assert united.scores.tolist() == pytest.approx([max(scores), 0.3])
    assert united.classes.tolist() == [kind, 0]
    assert not united.cut.any()


def test_an_object_across_three_views_becomes_one():
    one = candidates(((60, 10, 100, 50), 0.6, 0, (False, True)))
    two = candidates(((80, 10, 180, 50), 0.8, 0, (True, True)))
    three = candidates(((160, 10, 200, 50), 0.7, 0, (True, False)))
    assert joined([one, two, three], GROUPS).boxes.tolist() == [[60, 10, 200, 50]]


@pytest.mark.parametrize(
    "right",
    [
        ((80, 35, 130, 90), 0.7, 0, (True, False)),  # at another height
        ((80, 12, 130, 50), 0.7, 2, (True, False)),  # of another group
        ((85, 12, 130, 50), 0.7, 0, (False, False)),  # not cut
    ],
)
def test_parts_that_do_not_continue_each_other_stay_apart(right):
    left = candidates(((60, 10, 100, 50), 0.6, 0, (False, True)))
    assert len(joined([left, candidates(right)], GROUPS)) == 2


def test_the_parts_most_alike_find_each_other_and_no_other():
    left = candidates(
        ((60, 10, 100, 50), 0.6, 0, (False, True)), ((50, 20, 100, 50), 0.9, 0, (False, True))
    )
    right = candidates(
        ((80, 10, 130, 50), 0.7, 0, (True, False)), ((80, 70, 140, 99), 0.7, 0, (True, False))
    )
    found = joined([left, right], GROUPS).boxes.tolist()
    assert sorted(found) == [[50, 20, 100, 50], [60, 10, 130, 50], [80, 70, 140, 99]]


def test_one_view_is_left_as_it_is():
    view = candidates(whole((0, 0, 10, 10)), whole((0, 0, 10, 10)))
    assert same(joined([view], GROUPS), view)
    assert len(together([view, candidates()])) == 2
