"""Faults put into a run from outside: into messages, jobs, times and devices.

The kernel, the loop and the stages are what they are without them. A tap sits where a run is put
together anyway: between the log and the sources (`messages`), in front of the stages and around
what jobs take (`jobs`), beside the feed of events (`devices`). `run` puts one run together,
`campaign` the runs of a campaign.
"""
