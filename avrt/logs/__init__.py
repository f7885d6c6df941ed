"""Recorded sensor logs and the run record."""

from avrt.logs.raw import Anomaly, Channel, RawMessage, TopicInfo
from avrt.logs.reader import LogReader, open_log

__all__ = ["Anomaly", "Channel", "LogReader", "RawMessage", "TopicInfo", "open_log"]
