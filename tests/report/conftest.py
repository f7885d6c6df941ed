"""Lets tests of reports import what they share (`reading_pages`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
