"""`python -m avrt` is the `avrt` command."""

import sys

from avrt.cli import main

sys.exit(main())
