"""What is handed over cannot be changed by its maker, nor by who reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from avrt.payload.digest import check_plain, digest_of
from avrt.payload.seal import sealed


@dataclass(frozen=True)
class Frozen:
    values: np.ndarray
    names: tuple[str, ...] = ()


@dataclass
class Loose:
    items: list[int] = field(default_factory=list)


def test_an_array_and_the_memory_it_is_a_view_of_become_read_only():
    memory = np.zeros(4)
    view = memory[:2]
    assert sealed(view) is view
    with pytest.raises(ValueError, match="read-only"):
        memory[0] = 1


def test_a_read_only_view_does_not_hide_memory_that_can_be_written():
    memory = np.zeros(4)
    view = memory[:2]
    view.flags.writeable = False
    sealed(view)
    assert not memory.flags.writeable


def test_lists_mappings_and_loose_dataclasses_are_copied():
    items, loose = [1], Loose([1])
    taken = sealed({"items": items, "pair": (items, 2), "loose": loose})
    items.append(2)
    loose.items.append(2)
    loose.items = []
    assert taken == {"items": [1], "pair": ([1], 2), "loose": Loose([1])}


def test_what_cannot_change_is_handed_over_as_it_is():
    payload = Frozen(np.zeros(2), ("a",))
    assert sealed(payload) is payload
    assert not payload.values.flags.writeable


def raised(call, value):
    try:
        call(value)
    except TypeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "payload",
    [
        None,
        1.5,
        {"a": [1, "b", (b"c", None)]},
        Frozen(np.zeros(2), ("a",)),
        np.float32(1),
        torch.zeros(2),
        object(),
        np.array([object()]),
        {"a": [object()]},
        {("a", object()): 1},
        Loose([object()]),
        {1, 2},
    ],
)
def test_what_has_no_digest_is_refused_without_one_too(payload):
    assert raised(check_plain, payload) == raised(digest_of, payload)


def test_a_dataclass_that_could_change_is_copied_whether_or_not_anything_in_it_is():
    loose = Loose(items=3)
    taken = sealed(loose)
    loose.items = 4
    assert taken.items == 3


def test_equal_bits_of_different_types_have_different_digests():
    bits = np.int64(np.float64(1.0).view(np.int64))
    digests = {digest_of(value) for value in (1.0, bits, np.float64(1.0), 1, True)}
    assert len(digests) == 5
