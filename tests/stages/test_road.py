"""The road network computes what its parts say, and takes weights as data only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from avrt.errors import DataFault, SpecError
from avrt.payload import Image
from avrt.stages.camera import road
from avrt.stages.camera.road import RoadNetwork
from avrt.stages.camera.twinlite import (
    QUERIES_AT_ONCE,
    ChannelAttention,
    PositionAttention,
    Pyramid,
    TwinLiteNet,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(road, "SIZE", (64, 32))


@pytest.fixture
def weights():
    torch.manual_seed(3)
    return TwinLiteNet().state_dict()


def decided(weights, road_wins, lane_wins):
    """Make the last layers say the same everywhere: the larger bias wins."""
    for name, wins in (("classifier_1", road_wins), ("classifier_2", lane_wins)):
        weights[f"{name}.bn.weight"] = torch.zeros(2)
        weights[f"{name}.bn.bias"] = torch.tensor([0.0, 1.0 if wins else -1.0])
    return weights


def saved(tmp_path, content):
    torch.save(content, tmp_path / "weights.pth")
    return str(tmp_path / "weights.pth")


def picture(width, height):
    return Image("rgb8", np.full(width * height * 3, 90, np.uint8), width, height)


def test_its_weights_are_all_that_the_network_has(tmp_path, weights):
    given = RoadNetwork(model=saved(tmp_path, weights)).weight_arrays()
    assert sum(one.numel() for one in given) == sum(one.numel() for one in weights.values())


def test_the_larger_channel_decides_each_mask(tmp_path, weights, sent):
    stage = RoadNetwork(model=saved(tmp_path, decided(weights, road_wins=True, lane_wins=False)))
    stage.warm()
    found = stage.process(sent(picture(100, 20)))
    assert found.drivable.shape == found.lane.shape == (32, 64)
    assert found.drivable.dtype == np.bool_
    assert found.drivable.all()
    assert not found.lane.any()
    assert (found.width_px, found.height_px) == (100, 20)


def test_weights_trained_on_several_devices_load(tmp_path, weights):
    parallel = {f"module.{name}": value for name, value in weights.items()}
    loaded = RoadNetwork(model=saved(tmp_path, parallel)).network.state_dict()
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], value) for name, value in weights.items())


def test_the_network_has_as_many_parameters_as_the_published_weights():
    assert sum(one.numel() for one in TwinLiteNet().parameters()) == 439_633


def test_the_attention_between_positions_does_not_depend_on_how_it_is_split():
    torch.manual_seed(1)
    attention = PositionAttention(8)
    attention.gamma.data.fill_(0.5)
    features = torch.randn(1, 8, 20, 30)
    assert QUERIES_AT_ONCE < 20 * 30
    with torch.inference_mode():
        query, key, value = (
            one(features).flatten(2)
            for one in (attention.query_conv, attention.key_conv, attention.value_conv)
        )
        weights = torch.softmax(query.transpose(1, 2) @ key, dim=-1)
        expected = features + 0.5 * (value @ weights.transpose(1, 2)).reshape(features.shape)
        np.testing.assert_allclose(attention(features), expected, rtol=0, atol=1e-5)


def test_a_channel_takes_most_from_the_one_least_like_it():
    attention = ChannelAttention()
    attention.gamma.data.fill_(1.0)
    features = torch.tensor([[[[9.0, 0.0]], [[0.0, 9.0]]]])
    with torch.inference_mode():
        taken = attention(features) - features
    np.testing.assert_allclose(taken, features.flip(1), atol=1e-5)


def test_a_pyramid_adds_up_its_dilated_results():
    pyramid = Pyramid(5, 10, kernel=1, stride=1)
    for one in pyramid.parameters():
        one.data.zero_()
    pyramid.c1.conv.weight.data.fill_(1.0)
    for index, name in enumerate(("d1", "d2", "d4", "d8", "d16")):
        getattr(pyramid, name).conv.weight.data[:, 0, 1, 1] = 10.0**index
    with torch.inference_mode():
        fused = pyramid.fused(torch.ones(1, 5, 4, 4))
    assert fused[0, ::2, 0, 0].tolist() == [5, 50, 550, 5550, 55550]


def refused(model):
    with pytest.raises(SpecError) as caught:
        RoadNetwork(model=model)
    assert caught.value.key == ("model",)
    assert len(caught.value.what.splitlines()) == 1
    return caught.value.what


def test_files_that_hold_no_weights_are_refused(tmp_path, weights):
    model = saved(tmp_path, weights)
    assert "did you mean 'weights.pth'?" in refused(model.replace("weights", "weight"))
    (tmp_path / "text.pth").write_text("weights, honestly\n")
    assert "expected weights saved by PyTorch" in refused(str(tmp_path / "text.pth"))
    (tmp_path / "empty.pth").write_bytes(b"")
    assert "expected weights saved by PyTorch" in refused(str(tmp_path / "empty.pth"))
    assert "expected a state dictionary" in refused(saved(tmp_path, [1, 2]))
    assert "no weights of TwinLiteNet" in refused(saved(tmp_path, {"a": torch.zeros(1)}))
    assert "no weights of TwinLiteNet" in refused(saved(tmp_path, {"a": 1}))


def test_code_in_a_weights_file_is_not_run(tmp_path):
    class Malicious:
        def __reduce__(self):
            return (pytest.fail, ("code of a weights file was run",))

    assert "expected weights saved by PyTorch" in refused(saved(tmp_path, {"a": Malicious()}))


def test_a_damaged_image_is_a_fault_of_the_data(tmp_path, weights, sent):
    stage = RoadNetwork(model=saved(tmp_path, weights))
    with pytest.raises(DataFault):
        stage.process(sent(Image("jpeg", np.zeros(9, np.uint8))))
