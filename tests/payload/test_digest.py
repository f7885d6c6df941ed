"""Digests of payloads: every change is told, and equal payloads have equal ones."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.payload.digest import checksum_of, digest_of, is_intact

BOTH = pytest.mark.parametrize("make", [digest_of, checksum_of])


@dataclass(frozen=True)
class Thing:
    xyz: object
    label: str
    score: float
    parts: tuple


def thing(words):
    return Thing(np.array(words, np.uint32).view(np.float32), "car", 0.5, (1, None, {"a": True}))


@BOTH
@given(
    words=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40),
    place=st.integers(0, 10**6),
)
def test_one_flipped_bit_is_always_told(make, words, place):
    digest = make(thing(words))
    assert is_intact(thing(words), digest)
    at, bit = divmod(place % (32 * len(words)), 32)
    flipped = [*words[:at], words[at] ^ 1 << bit, *words[at + 1 :]]
    assert not is_intact(thing(flipped), digest)


@BOTH
def test_what_looks_alike_is_told_apart(make):
    alike = [0, 0.0, -0.0, False, "0", b"0", None, [], {}, np.zeros(1), np.zeros(1, np.float32)]
    alike += [np.zeros((1, 1)), [0], {"0": 0}, [[0]], np.float32(0), np.float64(0)]
    assert len({make(payload) for payload in alike}) == len(alike)


@BOTH
def test_what_is_no_payload_is_refused(make):
    with pytest.raises(TypeError, match="expected plain data, an array or a dataclass"):
        make([object()])
