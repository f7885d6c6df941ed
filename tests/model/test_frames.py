"""Transforms between frames: along any path, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from avrt.errors import DataFault
from avrt.model.frames import IDENTITY, Frames, TransformSpec, composed, inverted


def matrix(seed):
    random = np.random.default_rng(seed)
    turn = Rotation.random(rng=random).as_matrix()
    return tuple(np.hstack([turn, random.normal(size=(3, 1))]).ravel().tolist())


def as_array(numbers):
    return np.vstack([np.reshape(numbers, (3, 4)), [0, 0, 0, 1]])


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_composition_and_inverse_are_those_of_matrices(a, b):
    first, second = matrix(a), matrix(b)
    assert np.allclose(as_array(composed(first, second)), as_array(first) @ as_array(second))
    assert np.allclose(as_array(inverted(first)), np.linalg.inv(as_array(first)))


@given(st.permutations(range(4)), st.integers(0, 100))
def test_a_path_gives_the_product_of_its_transforms_in_any_order_of_the_list(order, seed):
    links = [("base", "roof"), ("roof", "lidar"), ("base", "front"), ("front", "camera")]
    made = [
        TransformSpec(parent=parent, child=child, matrix=matrix(seed + i))
        for i, (parent, child) in enumerate(links)
    ]
    frames = Frames(made[i] for i in order)
    roof, lidar, front, camera = (as_array(one.matrix) for one in made)
    expected = np.linalg.inv(front @ camera) @ roof @ lidar
    assert np.allclose(as_array(frames.between("lidar", "camera")), expected)
    assert np.allclose(as_array(frames.between("camera", "lidar")), np.linalg.inv(expected))


def test_a_frame_is_itself_even_where_nothing_is_known():
    assert Frames().between("lidar", "lidar") == IDENTITY


def test_where_nothing_is_declared_the_remedy_is_said():
    with pytest.raises(DataFault, match=r"none is declared; say where .* calibration.frames"):
        Frames().between("lidar", "camera")


def test_a_missing_transform_names_both_frames_and_what_is_known():
    frames = Frames([TransformSpec(parent="base", child="lidar", matrix=IDENTITY)])
    with pytest.raises(DataFault, match=r"'lidr' to 'base'.*did you mean 'lidar'"):
        frames.between("lidr", "base")
    other = TransformSpec(parent="map", child="odom", matrix=IDENTITY)
    frames = Frames([TransformSpec(parent="base", child="lidar", matrix=IDENTITY), other])
    with pytest.raises(DataFault, match=r"'lidar' leads to base only$"):
        frames.between("lidar", "map")


@pytest.mark.parametrize(
    ("origins", "end"),
    [
        (["field.yaml:3"], "did you mean 'lidar'[?]"),
        (["/tf", "/tf_static"], "did you mean 'lidar'[?]"),
        (["/car/tf"], "; told by /car/tf, none by /tf_static: say where .* calibration.frames"),
        (["/tf", "a.yaml:1"], "; told by /tf, a.yaml:1, none by /tf_static: say .*frames"),
    ],
)
def test_where_a_log_tells_no_mountings_that_is_said(origins, end):
    told = [
        TransformSpec(parent=f"base{k}", child="lidar", matrix=IDENTITY, origin=origin)
        for k, origin in enumerate(origins)
    ]
    with pytest.raises(DataFault, match=rf"no transform has 'lidr'; .*{end}$"):
        Frames(told).between("lidr", "base0")
