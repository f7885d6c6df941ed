"""The JSON Schemas of pipeline and campaign files, for editors: from the tables that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.campaign import CAMPAIGN_KEYS
from avrt.config.pipeline import PIPELINE_KEYS
from avrt.config.shape import object_of

if TYPE_CHECKING:
    from avrt.config.reader import Shape

DIALECT = "http://json-schema.org/draft-07/schema#"  # what YAML language servers take for granted


def pipeline_schema() -> Shape:
    """Return the schema; what holds between parts of a file, `avrt check` tells."""
    return {
        "$schema": DIALECT,
        "title": "avrt pipeline",
        "description": "A pipeline file of avrt. Quantities are NUMBER UNIT, such as 25 ms.",
        **object_of(PIPELINE_KEYS),
    }


def campaign_schema() -> Shape:
    """Return the schema; what holds between parts of a file, `avrt inject` tells."""
    return {
        "$schema": DIALECT,
        "title": "avrt campaign",
        "description": "A fault campaign of avrt. Quantities are NUMBER UNIT, such as 25 ms.",
        **object_of(CAMPAIGN_KEYS),
    }
