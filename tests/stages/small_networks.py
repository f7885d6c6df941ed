"""Networks of a few constants: the outputs of each family at 64 x 64 pixels, as ONNX files."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

SIDE = 64
PERSON, BICYCLE, CAR, TRUCK, BOAT = 0, 1, 2, 7, 8
NANODET_CELLS = (64, 16, 4)


def yolox():
    """Return outputs that show nothing: 8 x 8, 4 x 4 and 2 x 2 cells of 85 numbers."""
    return [np.zeros((1, 84, 85), np.float32)]


def nanodet():
    """Return outputs that show nothing: 80 classes, then four distances of 8 numbers each."""
    classes = [np.zeros((1, cells, 80), np.float32) for cells in NANODET_CELLS]
    return classes + [np.zeros((1, cells, 32), np.float32) for cells in NANODET_CELLS]


def fastestdet():
    """Return outputs that show nothing: 4 x 4 cells of 85 channels."""
    return [np.zeros((1, 85, 4, 4), np.float32)]


def centre():
    """Return outputs that show nothing: 16 x 16 cells, four kinds, four distances."""
    return [np.zeros((1, 4, 16, 16), np.float32), np.zeros((1, 4, 16, 16), np.float32)]


def written(path, outputs, *, shape=(1, 3, SIDE, SIDE), kind=TensorProto.FLOAT, open_batch=False):
    """Write a network with these outputs, whatever it is shown; returns the path as text."""
    names = [f"out_{i}" for i in range(len(outputs))]
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))
        for name, value in zip(names, outputs, strict=True)
    ]
    found = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, _shape(value.shape, open_batch))
        for name, value in zip(names, outputs, strict=True)
    ]
    shown = helper.make_tensor_value_info("images", kind, _shape(shape, open_batch))
    graph = helper.make_graph(nodes, "constant", [shown], found)
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return str(path)


def _shape(sides, open_batch):
    return ["batch", *sides[1:]] if open_batch else list(sides)
