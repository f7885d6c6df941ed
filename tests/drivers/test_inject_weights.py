"""A bit of a stage's weights is flipped: one, where it was said, in the stage's own memory."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.draws import generator
from avrt.drivers.inject.weights import can_flip, flip

HOLDERS = {
    "float64": lambda: np.ones(5),
    "float32": lambda: torch.ones(3, 2),
    "bfloat16": lambda: torch.ones(7, dtype=torch.bfloat16),
    "int8": lambda: torch.ones(4, dtype=torch.int8)[::2],
}
EXPONENTS = {"float64": range(52, 64), "float32": range(23, 32), "bfloat16": range(10, 16)}


def flipped(before, after):
    """(element, bit) of each bit in which the arrays differ."""
    words = [np.frombuffer(one, np.uint8) for one in (before[1], after[1])]
    places = np.flatnonzero(np.unpackbits(words[0] ^ words[1], bitorder="little"))
    bits = 8 * before[0]
    return [(int(place) // bits, int(place) % bits) for place in places]


def content(array):
    if isinstance(array, torch.Tensor):
        array = array.contiguous().view(torch.uint8).numpy().reshape(-1, array.element_size())
        return array.shape[-1], array.tobytes()
    return array.itemsize, array.tobytes()


@given(st.sampled_from(sorted(HOLDERS)), st.integers(0, 63) | st.none(), st.integers(0, 99))
def test_one_bit_of_one_element_is_flipped_in_place_and_back(kind, bit, seed):
    array = HOLDERS[kind]()
    before = content(array)
    arrays = [np.zeros(0), array]
    if bit is not None and bit >= 8 * before[0]:
        assert not can_flip(arrays, bit)
        return
    flip(arrays, bit, generator(seed, "it"))
    ((element, found),) = flipped(before, content(array))
    assert element < np.prod(array.shape)
    assert found in (EXPONENTS.get(kind, range(8)) if bit is None else [bit])
    flip(arrays, bit, generator(seed, "it"))
    assert content(array) == before


def test_every_element_of_every_array_is_hit_at_some_seed():
    hit = set()
    for seed in range(200):
        arrays = [np.zeros(2), np.zeros(3, np.float32)]
        flip(arrays, 5, generator(seed, "it"))
        hit.add(tuple(np.flatnonzero(np.concatenate(arrays))))
    assert hit == {(index,) for index in range(5)}


@pytest.mark.parametrize("arrays", [[], [np.zeros(0)]])
def test_where_there_are_no_weights_nothing_can_be_flipped(arrays):
    assert not can_flip(arrays, None)
    assert not can_flip(arrays, 0)
