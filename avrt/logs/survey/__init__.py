"""What is in a log, before anybody runs it: see `survey`."""
