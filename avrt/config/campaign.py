"""The campaign file: a pipeline, what feeds it, and row by row what is broken and must come of it.

    campaign: planner
    pipeline: planner.yaml
    world: {scene: cut_in, duration: 8 s}
    rows:
      B4:
        about: one copy answers with NaN
        faults: [{where: stage.assess.1, what: nan, frame: 40}]
        expect: {outcome: [masked], detect: {by: [vote], within: 50 ms}, levels: []}

Read as strictly as a pipeline file and with the same errors; paths count from its folder.
`config.injections` reads the faults, `config.expected` what must come of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.expected import EXPECT_KEYS, read_expected
from avrt.config.injections import FAULT_KEYS, read_injections
from avrt.config.pipeline import load_named
from avrt.config.reader import Key, build, later, name, named, section, text
from avrt.config.shape import LASTING, NAME, NONE_OR_MORE, TEXT, by_name, list_of, object_of
from avrt.config.shares import above_zero, whole
from avrt.config.yaml_text import read_text, read_yaml
from avrt.model.campaign import CampaignSpec, DriveSpec, Expected, Row
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec

ROWS_MAX = 1000


class LoadedCampaign:
    """A campaign as it was loaded.

    Attributes:
        pipeline: its pipeline file.
    """

    def __init__(self, path: Path) -> None:
        """Read and check a campaign file; SpecError says in one line where and what is wrong."""
        root = read_yaml(read_text(path, "campaign"), str(path), "campaign")
        if isinstance(root.value, dict) and "stages" in root.value:
            raise root.fail("this is a pipeline, not a campaign; write a campaign that names it")
        if isinstance(root.value, dict) and "scenario" in root.value:
            raise root.fail("this is a scenario, not a campaign; give it to avrt simulate")
        values = section(root, CAMPAIGN_KEYS)
        self.pipeline = load_named(root, path)
        self.spec = _campaign(root, values, self.pipeline.spec, path.parent)


def _campaign(
    root: Node, values: dict[str, object], pipeline: PipelineSpec, folder: Path
) -> CampaignSpec:
    given = root.mapping()
    if ("world" in given) == ("log" in given):
        raise root.fail("say what feeds the sources: either 'world', a scene, or 'log', a file")
    drive = values.get("world") or DriveSpec(log=str(folder / str(values.get("log"))))
    assert isinstance(drive, DriveSpec)
    members = named(given["rows"], "rows by id")
    if not 1 <= len(members) <= ROWS_MAX:
        raise given["rows"].fail(f"expected 1 to {ROWS_MAX} rows, found {len(members)}")
    rows = {key: _row(key, node, pipeline) for key, node in members.items()}
    seed = values.get("seed", 0)
    assert isinstance(seed, int)
    title = str(values["name"])
    return CampaignSpec(name=title, pipeline=pipeline, drive=drive, seed=seed, rows=rows)


def _row(key: str, node: Node, pipeline: PipelineSpec) -> Row:
    values = section(node, ROW_KEYS)
    given = node.mapping()
    faults = read_injections(given["faults"], pipeline)
    expect = read_expected(given["expect"], pipeline) if "expect" in given else Expected()
    about, gap = str(values["about"]), str(values.get("gap", ""))
    return Row(id=key, about=about, faults=faults, expect=expect, gap=gap)


def _drive(node: Node) -> DriveSpec:
    values = section(node, WORLD_KEYS)
    lasts_ns = values.pop("lasts_ns")
    assert isinstance(lasts_ns, int)
    return build(DriveSpec, {**values, "seconds": lasts_ns / NS_PER_S})


ROW_KEYS = (
    Key("about", "about", text, example="one copy answers with NaN", about="what it is"),
    Key(
        "faults",
        "faults",
        later,
        example="[{where: source.radar, what: drop, frame: 40}]",
        about="what goes wrong",
        shape=list_of(object_of(FAULT_KEYS), least=1),
    ),
    Key(
        "expect",
        "expect",
        later,
        about="what must come of it",
        shape={k: v for k, v in object_of(EXPECT_KEYS).items() if k != "required"},
    ),
    Key(
        "gap",
        "gap",
        text,
        about="what is missing, of a row that is known not to come out as expected",
    ),
)
WORLD_KEYS = (
    Key("scene", "scene", name, example="cut_in", about="of the built-in world"),
    Key("duration", "lasts_ns", above_zero, example="8 s", about="of the drive", shape=LASTING),
    Key("seed", "seed", whole, about="of the scene, 0 unless given", shape=NONE_OR_MORE),
)
CAMPAIGN_KEYS = (
    Key("campaign", "name", name, example="planner", about="its name"),
    Key("pipeline", "pipeline", text, example="planner.yaml", about="the pipeline file"),
    Key(
        "world",
        "world",
        _drive,
        about="a drive through the built-in world feeds the sources",
        shape=object_of(WORLD_KEYS),
    ),
    Key("log", "log", text, about="a log that feeds them instead", shape=TEXT),
    Key(
        "seed",
        "seed",
        whole,
        about="of whatever is drawn for a fault, 0 unless given",
        shape=NONE_OR_MORE,
    ),
    Key(
        "rows",
        "rows",
        later,
        example='{S1: {about: "...", faults: [...]}}',
        about="the experiments by id",
        shape=by_name(object_of(ROW_KEYS), NAME),
    ),
)
