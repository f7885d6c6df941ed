"""The report page: one HTML file that answers what happened at any instant of a run.

The way of a run record onto the page:

1. `history` reads the journal into jobs, messages and marks; `density` counts all of them by time,
   `sieve` keeps no more of them than there is room for and knows what it left out.
2. `scene` reads what was seen (`clouds`, `images`) and what was made of it (`tracks`).
3. `rows` writes both as plain data for the scripts, `charts` the distributions.
4. `verdict`, `tables` and `sections` say in HTML what the run showed, with the figures of
   `avrt.report.summary` and no others; no script computes a figure.
5. `assembly` puts text, data, style and scripts into one file; `files` writes it.

`campaign` is the page of a fault campaign: another text, put together in the same way.

The scripts are in `page/script`, one idea a file, in the order that `assembly` names.
"""

from avrt.report.page.files import write_page, write_what_if_page

__all__ = ["write_page", "write_what_if_page"]
