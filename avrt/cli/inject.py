"""`avrt inject CAMPAIGN`: break things one by one, and see what notices and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, progress_words, show, show_json, stdout_kept
from avrt.cli.page import add_page_option, check_page
from avrt.config.schema import campaign_schema
from avrt.errors import SpecError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "inject",
        help="break things on purpose: what notices, and what comes of it?",
        description="Run a fault campaign in virtual time, with stages that really compute: each "
        "row breaks something and is compared with the run without faults. Exit 1 when a row is "
        "not as its campaign expects, a pair does harm, or a clean drive is not quiet. The same "
        "seed gives the same faults and the same runs.",
    )
    parser.add_argument(
        "campaign", type=Path, nargs="?", metavar="CAMPAIGN", help="a campaign file (YAML)"
    )
    parser.add_argument(
        "--row", action="append", default=[], metavar="ID", help="run this row; may be repeated"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="in place of the campaign's own")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run each row N times, seeds in a row"
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=0,
        metavar="N",
        help="run N random pairs of rows instead: none may do harm that nobody is told of",
    )
    parser.add_argument(
        "--clean",
        type=int,
        default=0,
        metavar="N",
        help="run N frames without faults instead: nothing may tell of one",
    )
    add_page_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of campaign files, for editors"
    )
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: Namespace) -> int:
    if options.schema:
        show_json(campaign_schema())
        return 0
    if options.campaign is None:
        options.refuse("give a CAMPAIGN, or --schema")
    from avrt.api.campaign import FaultCampaign  # noqa: PLC0415 - brings torch
    from avrt.report.campaign import campaign_data, render_campaign  # noqa: PLC0415
    from avrt.report.page.campaign import write_campaign_page  # noqa: PLC0415

    if options.pairs and options.clean:
        raise SpecError("give either --pairs or --clean")
    if (options.pairs or options.clean) and (options.row or options.repeat != 1):
        raise SpecError("pairs and clean drives have no rows of their own; drop --row and --repeat")
    campaign = FaultCampaign.load(options.campaign)
    if options.report is not None:
        check_page(options.report, options.campaign, *campaign.files)
    title = options.campaign.name
    with (
        stdout_kept(clean=options.json),
        progress_words(title, wanted=not options.json) as progress,
    ):
        result = campaign.run(
            seed=options.seed,
            only=tuple(options.row),
            repeat=options.repeat,
            pairs=options.pairs,
            frames=options.clean,
            progress=progress,
        )
    if options.report is not None:
        write_campaign_page(options.report, result, campaign.conditions())
    if options.json:
        show_json(campaign_data(result))
    else:
        show(render_campaign(result))
    return 0 if result.is_met else 1
