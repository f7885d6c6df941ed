"""Gives images the camera models of the pipeline file where the log has none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import CameraInfo, Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.logs.merge import SourceMessage
    from avrt.model.spec import CameraSpec


def with_models(
    messages: Iterable[SourceMessage], cameras: Sequence[CameraSpec]
) -> Iterator[SourceMessage]:
    """Yield every message; an image without a model gets that of its frame, if there is one.

    Zeros are what drivers send of a camera that nobody calibrated: they are no model.
    """
    infos = {
        camera.frame: CameraInfo(
            camera.width_px, camera.height_px, np.array(camera.projection).reshape(3, 4)
        )
        for camera in cameras
    }
    for message in messages:
        payload = message.payload
        if isinstance(payload, Image) and not _is_known(payload) and message.frame in infos:
            yield replace(message, payload=replace(payload, info=infos[message.frame]))
        else:
            yield message


def _is_known(image: Image) -> bool:
    return image.info is not None and bool(image.info.projection.any())
