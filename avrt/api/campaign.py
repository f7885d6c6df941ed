"""A fault campaign, from its file to what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api.drive import add_mountings, add_reading
from avrt.api.pipeline import Pipeline
from avrt.api.preparation import built, calibrated
from avrt.api.raw_messages import RawMessages
from avrt.config.campaign import LoadedCampaign
from avrt.drivers.conditions import read_conditions
from avrt.drivers.hosts import fit_to_host
from avrt.drivers.inject.campaign import Campaign, clean
from avrt.drivers.inject.held import HeldLog, held
from avrt.drivers.inject.rules import critical_of
from avrt.drivers.inject.run import Bench
from avrt.drivers.replay import check_drivable
from avrt.errors import SpecError, did_you_mean
from avrt.exec.process import frozen_garbage, set_threads
from avrt.logs.merge import MergedLog
from avrt.logs.raw import TopicInfo
from avrt.logs.reader import open_log
from avrt.metrics.campaign import CampaignResult
from avrt.world import World, make_scene, readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from avrt.logs.raw import RawMessage
    from avrt.metrics.campaign import PairResult
    from avrt.model.campaign import DriveSpec
    from avrt.model.spec import PipelineSpec

    Progress = Callable[[str], None]

SEED_MAX = 2**62
RUNS_MAX = 100_000


class FaultCampaign:
    """A campaign from a file."""

    def __init__(self, loaded: LoadedCampaign) -> None:
        self.spec = loaded.spec
        self._file = Path(loaded.pipeline.path)
        self._pipeline = Pipeline.of(loaded.pipeline)

    @classmethod
    def load(cls, path: str | Path) -> FaultCampaign:
        """Read a campaign file and its pipeline.

        Raises:
            SpecError: says in one line where and what is wrong.
        """
        return cls(LoadedCampaign(Path(path)))

    @property
    def files(self) -> tuple[Path, ...]:
        """What its runs read, besides the campaign's own file."""
        log = self.spec.drive.log
        return (self._file, *([Path(log)] if log else []))

    def conditions(self) -> dict[str, str]:
        """Return what it runs on and with, as text."""
        spec, drive = self.spec, self.spec.drive
        fed = drive.log or f"{drive.scene}, {drive.seconds:g} s, seed {drive.seed}"
        what = f"{spec.pipeline.name} ({self._file.name})"
        return read_conditions(campaign=spec.name, pipeline=what, drive=fed)

    def run(
        self,
        *,
        seed: int | None = None,
        only: tuple[str, ...] = (),
        repeat: int = 1,
        pairs: int = 0,
        frames: int = 0,
        progress: Progress | None = None,
    ) -> CampaignResult:
        """Run the rows, or in their place pairs of them, or drives without faults.

        Args:
            seed: of whatever is drawn for a fault, in place of the campaign's own.
            only: the ids of the rows to run; all unless given.
            repeat: runs of each row, with seeds in a row.
            pairs: so many random pairs of rows instead.
            frames: so many frames without faults instead.
            progress: is told what runs.

        Raises:
            SpecError: an argument, the pipeline or a topic is wrong, or the run without faults is
                not quiet.
            InputError: the log cannot be used.
        """
        spec = self.spec
        seed = spec.seed if seed is None else seed
        for what, value, most in (("a seed", seed, SEED_MAX), ("pairs", pairs, RUNS_MAX)):
            if not 0 <= value <= most:
                raise SpecError(f"expected {what} from 0 to {most}, found {value}")
        if not 1 <= repeat <= RUNS_MAX:
            raise SpecError(f"expected 1 to {RUNS_MAX} runs of a row, found {repeat}")
        tell = progress or (lambda _what: None)
        result = CampaignResult(spec.name, seed)
        with frozen_garbage():
            if frames:
                return replace(result, clean=clean(self._drives(tell), frames))
            campaign = Campaign(self._bench(spec.drive), spec.rows.values())
            if pairs:
                made = campaign.pairs(spec.rows, pairs, seed)
                return replace(result, pairs=_told(made, pairs, tell))
            rows = [
                campaign.row(spec.rows[name], number)
                for name in self._chosen(only)
                for number in range(seed, seed + repeat)
                if tell(name) is None
            ]
        return replace(result, rows=rows)

    def _chosen(self, only: tuple[str, ...]) -> tuple[str, ...]:
        for name in only:
            if name not in self.spec.rows:
                raise SpecError(f"no row {name!r}; {did_you_mean(name, self.spec.rows)}", ("rows",))
        return only or tuple(self.spec.rows)

    def _drives(self, tell: Progress) -> Iterator[tuple[int, Bench]]:
        """Yield drives, each with the next seed of the scene; a log is one drive."""
        drive = self.spec.drive
        for number in range(1 if drive.log else RUNS_MAX):
            made = replace(drive, seed=drive.seed + number)
            tell(f"drive {number + 1}")
            yield made.seed, self._bench(made)

    def _bench(self, drive: DriveSpec) -> Bench:
        pipeline = self._pipeline
        spec, _ = fit_to_host(pipeline.check_stages())
        spec = pipeline.planned(spec)
        check_drivable(spec, None)
        set_threads(max(device.threads for device in spec.devices))
        log = _held(drive, spec)
        spec, _ = pipeline.placed(partial(calibrated, spec, log))
        zero_ns = pipeline.placed(partial(MergedLog, log, spec.sources)).zero_ns
        end_ns = max((raw.log_ns for raw in log.raws), default=zero_ns) - zero_ns
        stages = partial(built, pipeline, spec)
        return Bench(spec, stages, log, critical_of(spec), zero_ns, end_ns)


def _held(drive: DriveSpec, spec: PipelineSpec) -> HeldLog:
    topics = [topic for source in spec.sources for topic in (source.topic, source.info_topic)]
    wanted = {topic for topic in (*topics, *spec.tf_topics) if topic is not None}
    if not drive.log:
        return _driven(drive, wanted)
    with open_log(drive.log) as reader:
        infos = reader.topics()
        return held(infos, reader.messages(wanted & set(infos)), reader.anomalies)


def _driven(drive: DriveSpec, wanted: set[str]) -> HeldLog:
    """Return a drive through the built-in world: of its sensors those that are wanted."""
    made: list[RawMessage] = []
    encoder = RawMessages(made.append)
    add_mountings(encoder)
    world = World(make_scene(drive.scene, drive.seed), drive.seconds)
    world.advance()
    for reading in readings(world, wanted):
        add_reading(encoder, reading)
    counts = Counter(raw.topic for raw in made)
    channels = {raw.topic: raw.channel for raw in made}
    infos = {
        topic: TopicInfo(c.type, counts[topic], c.encoding, c.schema_encoding, c.schema.decode())
        for topic, c in channels.items()
    }
    return held(infos, made)


def _told(pairs: Iterator[PairResult], count: int, tell: Progress) -> list[PairResult]:
    found = []
    for number in range(count):
        tell(f"pair {number + 1} of {count}")
        found.append(next(pairs))
    return found
