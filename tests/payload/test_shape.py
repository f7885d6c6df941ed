"""The size of a payload, in a word."""

import numpy as np
import pytest

from avrt.payload import CameraInfo, Detections, Image, PointCloud
from avrt.payload.shape import shape_of

INFO = CameraInfo(1242, 375, np.eye(3, 4))


def cloud(count):
    return PointCloud(np.zeros((count, 3), np.float32))


@pytest.mark.parametrize(
    ("payload", "shape"),
    [
        (cloud(0), "PointCloud 0"),
        (cloud(1), "PointCloud 1"),
        (cloud(2), "PointCloud 2-3"),
        (cloud(3), "PointCloud 2-3"),
        (cloud(4), "PointCloud 4-7"),
        (cloud(1023), "PointCloud 512-1023"),
        (cloud(1024), "PointCloud 1024-2047"),
        (Detections(), "Detections 0"),
        (Image("jpeg", np.zeros(9, np.uint8)), "Image"),
        (Image("jpeg", np.zeros(9, np.uint8), info=INFO), "Image 1242x375"),
        (Image("rgb8", np.zeros(18, np.uint8), 3, 2, info=INFO), "Image 3x2"),
        ((1, 2, 3), "tuple 2-3"),
        ({"a": 1}, "dict"),
        (7, "int"),
    ],
)
def test_shapes(payload, shape):
    assert shape_of(payload) == shape
