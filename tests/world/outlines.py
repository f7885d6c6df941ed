"""What lies in a box, and which outlines overlap."""

import numpy as np


def inside(points, places, half, growth=0.0):
    """Tell which points, (N, 3) metres in the world, lie in any of the boxes grown by metres."""
    found = np.zeros(len(points), np.bool_)
    for middle, yaw, side in zip(places.middle, places.yaw, half + growth, strict=True):
        near = np.abs(points - middle) <= np.linalg.norm(side)
        rows = np.nonzero(near.all(axis=1) & ~found)[0]
        x, y, z = (points[rows] - middle).T
        cos, sin = np.cos(yaw), np.sin(yaw)
        along, across = cos * x + sin * y, cos * y - sin * x
        found[rows] = (np.abs(np.stack([along, across, z], axis=-1)) <= side).all(axis=1)
    return found


def footprint_overlap(first, second):
    """Tell whether two rectangles on the ground overlap: x, y, yaw, length, width of each.

    By separating axes (Gottschalk, Lin and Manocha, "OBBTree", SIGGRAPH 1996).
    """
    shapes = []
    for x, y, yaw, length, width in (first, second):
        axes = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        shapes.append((np.array([x, y]), axes, np.array([length, width]) / 2))
    between = shapes[1][0] - shapes[0][0]
    for axis in (*shapes[0][1], *shapes[1][1]):
        reach = sum(float(np.abs(axes @ axis) @ half) for _, axes, half in shapes)
        if abs(float(between @ axis)) >= reach:
            return False
    return True
