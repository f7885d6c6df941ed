"""Turn a camera message into pixels; one that has none is a fault of the data, not of the stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image as PillowImage

from avrt.errors import DataFault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from avrt.payload import Image


def prepare() -> None:
    """Load Pillow's decoders, which it does at its first image otherwise."""
    PillowImage.preinit()


def decoded(image: Image) -> NDArray[np.uint8]:
    """Return the pixels, (height, width, 3) uint8 RGB.

    Raises:
        DataFault: the data is cut off, of another format, or of another size than it says.
    """
    try:
        return image.pixels()
    except (OSError, ValueError) as error:
        raise DataFault("image", f"{image.encoding} that cannot be decoded: {error}") from None
