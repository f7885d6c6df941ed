"""Blocks of arrays: any type, any layout, every byte of them, in their own memory."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import SoftwareFault
from avrt.exec import weights as module
from avrt.exec.weights import blocks_of, fingerprint

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
)


def bits(array):
    """The bytes of an array, in the order of its elements."""
    if isinstance(array, torch.Tensor):
        flat = array.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
        array = flat.view(torch.uint8).numpy() if len(flat) else np.zeros(0)
    return np.ascontiguousarray(array).tobytes()


@st.composite
def arrays(draw):
    """An array of numpy or torch: random bytes, some axes turned, some of it left out."""
    shape = draw(st.lists(st.integers(0, 7), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    made = torch.zeros(shape, dtype=dtype)
    if dtype is torch.bool:
        made = torch.from_numpy(np.asarray(rng.integers(2, size=shape) > 0))
    elif made.numel():
        content = torch.from_numpy(rng.integers(0, 256, made.nbytes, np.uint8))
        made = content.view(dtype).reshape(shape)
    if draw(st.booleans()) and dtype not in {torch.bfloat16, torch.float8_e4m3fn}:
        made = made.numpy()
    order = draw(st.permutations(range(len(shape))))
    made = made.permute(order) if isinstance(made, torch.Tensor) else made.transpose(order)
    return (
        made[draw(st.sampled_from([..., slice(1, None), slice(None, None, 2)]))] if shape else made
    )


def far(number, array, near=module._memory):
    """What numpy cannot see, as on a GPU: a tensor."""
    return torch.from_numpy(near(number, array))


@given(arrays(), st.sampled_from([16, 48, 4096]), st.booleans())
def test_blocks_hold_every_byte_once_and_write_to_the_array_itself(array, block_bytes, is_far):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "BLOCK_BYTES", block_bytes)
        if is_far:
            patched.setattr(module, "_memory", far)
        blocks = blocks_of([array])
    before = bits(array)
    assert b"".join(block.read().tobytes() for block in blocks) == before
    assert all(0 < block.size_bytes <= block_bytes for block in blocks)
    assert sum(block.size_bytes for block in blocks) == len(before)
    for block in blocks:
        block.write(block.read() ^ 1)
    assert bits(array) == bytes(one ^ 1 for one in before)


@pytest.mark.parametrize("made", [torch.arange(6.0), np.arange(6.0)])
def test_what_an_array_repeats_is_there_once(made):
    wide = made[:, None].expand(6, 4) if isinstance(made, torch.Tensor) else None
    shown = wide if wide is not None else np.lib.stride_tricks.as_strided(made, (6, 4), (8, 0))
    (block,) = blocks_of([shown])
    assert block.read().tobytes() == bits(made)
    block.write(np.zeros(block.size_bytes, np.uint8))
    assert not made.any()


def test_parameters_of_a_network_and_tensors_of_inference_are_written_too():
    with torch.inference_mode():
        constant = torch.ones(3)
    network = torch.nn.Conv2d(3, 5, 3).to(memory_format=torch.channels_last)
    held = [*network.parameters(), constant]
    assert not held[0].is_contiguous()
    for block in blocks_of(held):
        block.write(np.zeros(block.size_bytes, np.uint8))
    assert not any(one.any() for one in held)


def test_the_bytes_of_an_array_do_not_depend_on_its_layout():
    values = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4)
    last = values.contiguous(memory_format=torch.channels_last)
    assert last.stride() != values.stride()
    assert fingerprint(blocks_of([values])) == fingerprint(blocks_of([last]))


@pytest.mark.parametrize(
    "other",
    [np.arange(6, dtype=np.int32), np.arange(7), np.arange(6).reshape(2, 3), np.arange(6)[::-1]],
)
def test_arrays_of_other_types_shapes_or_values_have_another_fingerprint(other):
    assert fingerprint(blocks_of([np.arange(6)])) == fingerprint(blocks_of([np.arange(6)]))
    assert fingerprint(blocks_of([np.arange(6)])) != fingerprint(blocks_of([other]))


def test_a_large_array_is_cut_into_blocks():
    large = np.zeros(3 * module.BLOCK_BYTES // 8 + 1)
    sizes = [block.size_bytes for block in blocks_of([large, np.zeros(0), np.array(1.0)])]
    assert sizes == [module.BLOCK_BYTES] * 3 + [8, 8]


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.array([None]), "found one of Python objects (number 1)"),
        ([1.0], "found list (number 1)"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(array, found):
    with pytest.raises(SoftwareFault, match="expected arrays") as caught:
        blocks_of([np.zeros(3), array])
    assert found in caught.value.detail


def test_an_element_larger_than_a_block_is_a_block(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    assert [block.size_bytes for block in blocks_of([np.zeros(math.isqrt(9))])] == [8, 8, 8]
