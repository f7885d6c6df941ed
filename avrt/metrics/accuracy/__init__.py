"""How right perception is: what was found, against what was there."""
