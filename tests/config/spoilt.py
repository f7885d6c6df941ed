"""A sound pipeline file to spoil, and what is said of a spoilt one."""

import pytest

from avrt.config.pipeline import parse
from avrt.errors import SpecError

GOOD = """\
pipeline: demo
policy: edf
devices:
  cpu: {type: cpu, slots: 2}
sources:
  cam: {type: camera, topic: /cam, rate: 10 Hz}
  top: {type: lidar, topic: /top}
stages:
  detect:
    run: my.stages:Detector
    device: cpu
    inputs: {image: cam}
    wcet: 5 ms
    deadline: 20 ms
  fuse:
    run: my.stages:Fuser
    device: cpu
    inputs: {objects: detect, cloud: {from: top, optional: true}}
    trigger: objects
    wcet: 5 ms
    deadline: 20 ms
chains:
  see: {path: [cam, detect, fuse], reaction: 100 ms}
"""


def told(text):
    with pytest.raises(SpecError) as caught:
        parse(text, "p.yaml")
    line = str(caught.value)
    assert "\n" not in line
    assert caught.value.exit_code == 2
    return line
