"""Recorded sensor logs and the run record.

The way of a message, and where to look:

1. `reader.open_log` asks the `formats` whose path it is: `mcap`, `bag`, `rosbag2`, `comma`,
   `kitti`, `nuscenes`, or one of an installed package. All of them are a `reader.LogFile` of `raw`
   messages; those made of chunks share `extents`, those made of arrays or of a file for each
   message share `series`. `testing` has the rules for all.
2. `ros` knows the message types, and makes ROS 2 messages of ROS 1's.
3. `decode` makes payloads of messages, one module for each kind of sensor.
4. `merge` gives the pipeline one stream of them; `log_time` and `clock_map` say what their times
   mean, `transforms` and `cameras` where the sensors are and how they see.
5. `record` writes what happened in a run, and reads it back.

`writer` makes an ordinary log (`messages` of payloads), for the demonstration and for tests.
"""

from avrt.logs.formats import LogFormat
from avrt.logs.raw import Anomaly, Channel, RawMessage, TopicInfo
from avrt.logs.reader import LogFile, LogReader, open_log
from avrt.logs.series import Series, SeriesReader

__all__ = [
    "Anomaly",
    "Channel",
    "LogFile",
    "LogFormat",
    "LogReader",
    "RawMessage",
    "Series",
    "SeriesReader",
    "TopicInfo",
    "open_log",
]
