"""TwinLiteNet, which tells road and lane lines in an image: its structure as torch modules.

Che et al., "TwinLiteNet: An Efficient and Lightweight Model for Driveable Area and Lane
Segmentation in Self-Driving Cars", arXiv 2307.10705: one encoder, two decoders of the same form.

* The encoder is that of ESPNet (Mehta et al., ECCV 2018, arXiv 1803.06815, section 3): a
  convolution that reduces, five dilated ones side by side on its result, and the running sums of
  the dilated results as output ("hierarchical feature fusion"). The image, averaged down, joins in
  at each scale.
* Two attentions follow, between positions and between channels (Fu et al., "Dual Attention
  Network", CVPR 2019, sections 3.2 and 3.3); the sum of the two goes on.
* A decoder doubles the size three times by transposed convolutions and ends with two channels: what
  is not the class, and what is.

Modules bear the names that the published weights use, so that these load as they are.

Shape letters: B images, C channels, H and W of a map, P = H * W positions.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

DILATIONS = (1, 2, 4, 8, 16)
NORM_EPSILON = 1e-3
QUERIES_AT_ONCE = 360  # their weights stay in the cache: 131 ms an image instead of 200, one thread


class TwinLiteNet(nn.Module):
    """Images, (B, 3, H, W) float32 RGB from 0 to 1, to two maps (B, 2, H, W): road and lane lines.

    H and W are multiples of 8.
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.up_1_1, self.up_1_2 = doubled(32, 16), doubled(32, 16)
        self.up_2_1, self.up_2_2 = doubled(16, 8), doubled(16, 8)
        self.classifier_1, self.classifier_2 = doubled(8, 2), doubled(8, 2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        shared = self.encoder(images)
        road = self.classifier_1(self.up_2_1(self.up_1_1(shared)))
        lane = self.classifier_2(self.up_2_2(self.up_1_2(shared)))
        return road, lane


class Encoder(nn.Module):
    """Images to features of an eighth of their size, (B, 32, H / 8, W / 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.level1 = convolved(3, 16, 3, stride=2)
        self.b1 = convolved(16 + 3, 16 + 3, 3)
        self.level2_0 = Reduction(16 + 3, 64)
        self.level2 = nn.Sequential(*(Residual(64) for _ in range(2)))
        self.b2 = convolved(64 + 64 + 3, 64 + 64 + 3, 3)
        self.level3_0 = Reduction(64 + 64 + 3, 128)
        self.level3 = nn.Sequential(*(Residual(128) for _ in range(3)))
        self.b3 = convolved(128 + 128, 32, 3)
        self.sa = PositionAttention(32)
        self.sc = ChannelAttention()
        self.conv_sa = convolved(32, 32, 3)
        self.conv_sc = convolved(32, 32, 3)
        self.classifier = convolved(32, 32, 1)

    def forward(self, images: Tensor) -> Tensor:
        half = halved(images)
        quarter = halved(half)
        first = self.b1(torch.cat([self.level1(images), half], 1))
        second = self.level2_0(first)
        second = self.b2(torch.cat([self.level2(second), second, quarter], 1))
        third = self.level3_0(second)
        third = self.b3(torch.cat([third, self.level3(third)], 1))
        attended = self.conv_sa(self.sa(third)) + self.conv_sc(self.sc(third))
        return torch.as_tensor(self.classifier(attended))


class Pyramid(nn.Module):
    """A convolution to a fifth of the channels, and five dilated ones of it side by side."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        part = outputs // 5
        first = outputs - 4 * part
        self.c1 = bare(inputs, part, kernel, stride=stride)
        self.d1, self.d2, self.d4, self.d8, self.d16 = (
            bare(part, first if dilation == 1 else part, 3, dilation=dilation)
            for dilation in DILATIONS
        )

    def fused(self, features: Tensor) -> Tensor:
        """Return the least dilated result, and the running sums of the others beside it."""
        reduced = self.c1(features)
        total = self.d2(reduced)
        results = [self.d1(reduced), total]
        for dilated in (self.d4, self.d8, self.d16):
            total = total + dilated(reduced)
            results.append(total)
        return torch.cat(results, 1)


class Reduction(Pyramid):
    """A pyramid that halves the size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, kernel=3, stride=2)
        self.bn = nn.BatchNorm2d(outputs, eps=NORM_EPSILON)
        self.act = nn.PReLU(outputs)

    def forward(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.act(self.bn(self.fused(features))))


class Residual(Pyramid):
    """A pyramid whose result is added to what it was given."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, kernel=1, stride=1)
        self.bn = nn.Sequential(activation(channels))

    def forward(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.bn(features + self.fused(features)))


class PositionAttention(nn.Module):
    """Each position takes from all others what resembles its query."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.query_conv = nn.Conv2d(channels, channels // 8, 1)
        self.key_conv = nn.Conv2d(channels, channels // 8, 1)
        self.value_conv = nn.Conv2d(channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, features: Tensor) -> Tensor:
        queries = self.query_conv(features).flatten(2).transpose(1, 2)  # (B, P, C / 8)
        keys = self.key_conv(features).flatten(2)  # (B, C / 8, P)
        values = self.value_conv(features).flatten(2).transpose(1, 2)  # (B, P, C)
        some = queries.split(QUERIES_AT_ONCE, dim=1)
        taken = torch.cat([torch.softmax(part @ keys, dim=-1) @ values for part in some], 1)
        return features + self.gamma * taken.transpose(1, 2).reshape(features.shape)


class ChannelAttention(nn.Module):
    """Each channel takes from the others, most from those that resemble it least."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, features: Tensor) -> Tensor:
        rows = features.flatten(2)  # (B, C, P)
        weights = torch.softmax(-(rows @ rows.transpose(1, 2)), dim=-1)
        return features + self.gamma * (weights @ rows).reshape(features.shape)


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """Return a convolution that keeps the size, but for its stride."""
    padding = (kernel - 1) // 2 * dilation
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False)


def bare(inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1) -> nn.Module:
    """Return a convolution and nothing more."""
    conv = convolution(inputs, outputs, kernel, stride, dilation)
    return nn.Sequential(OrderedDict(conv=conv))


def convolved(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Module:
    """Return a convolution, normalised and activated."""
    conv = convolution(inputs, outputs, kernel, stride)
    return nn.Sequential(OrderedDict(conv=conv, **activation(outputs)))


def doubled(inputs: int, outputs: int) -> nn.Module:
    """Return a transposed convolution that doubles the size, normalised and activated."""
    deconv = nn.ConvTranspose2d(inputs, outputs, 2, stride=2, bias=False)
    return nn.Sequential(OrderedDict(deconv=deconv, **activation(outputs)))


def activation(channels: int) -> OrderedDict[str, nn.Module]:
    """Return what follows a convolution, by name."""
    norm = nn.BatchNorm2d(channels, eps=NORM_EPSILON)
    return OrderedDict(bn=norm, act=nn.PReLU(channels))


def halved(images: Tensor) -> Tensor:
    """Return an image averaged down to half its size."""
    return functional.avg_pool2d(images, 3, stride=2, padding=1)
