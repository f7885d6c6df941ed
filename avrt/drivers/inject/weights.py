"""A bit of a stage's weights is flipped, in the memory that the stage computes with.

It is one bit of one element of all arrays together. Which bit may be told; else it is drawn from
those of the sign and the exponent of a floating-point number, or of the low byte of any other, as
for outputs (`values`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.drivers.inject.values import EXPONENT_FROM, LOW_BITS
from avrt.exec.weights import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from avrt.exec.weights import Block


def can_flip(arrays: Iterable[object], bit: int | None) -> bool:
    """Tell whether any element has this bit, or there is any."""
    return bool(_having(arrays, bit))


def flip(arrays: Iterable[object], bit: int | None, rng: np.random.Generator) -> None:
    """Flip a bit of an element that is drawn; `can_flip` holds."""
    blocks = _having(arrays, bit)
    element = int(rng.integers(sum(_elements(block) for block in blocks)))
    for block in blocks:
        if element < _elements(block):
            break
        element -= _elements(block)
    bit = _drawn(block, rng) if bit is None else bit
    content = block.read().copy()
    content[element * block.item_bytes + bit // 8] ^= 1 << bit % 8
    block.write(content)


def _having(arrays: Iterable[object], bit: int | None) -> list[Block]:
    return [block for block in blocks_of(arrays) if (bit or 0) < 8 * block.item_bytes]


def _elements(block: Block) -> int:
    return block.size_bytes // block.item_bytes


def _drawn(block: Block, rng: np.random.Generator) -> int:
    """Return the number of a bit, counted from the lowest of a little-endian element."""
    low = EXPONENT_FROM.get(block.item_bytes) if block.is_float else None
    if low is None:
        return int(rng.integers(LOW_BITS))
    return int(rng.integers(low, 8 * block.item_bytes))
