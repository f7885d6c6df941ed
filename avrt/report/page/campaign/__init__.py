"""The page of a fault campaign: what was broken, what told of it and what came of it.

`verdict` says it in a sentence; `rows` is the table of what was asked and found, each run with its
`course` over time; `shares` has what is counted over many runs. `files` puts them into one file.
Everything is drawn in HTML and SVG here, so it needs no script and prints as it is; the script
shows the runs of one class, and the one that the address names (`#B4`).
"""

from avrt.report.page.campaign.files import write_campaign_page

__all__ = ["write_campaign_page"]
