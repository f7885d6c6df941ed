"""ROS 1 messages, handed on as ROS 2 messages so that everything behind is one path.

Each type is described by its own definition in the log, custom ones too. Messages become CDR by it,
with ROS 2's Header (the counter `seq` is gone), and channels get the ROS 2 name of their type
(`tf/tfMessage` is `tf2_msgs/msg/TFMessage`). The definition goes with the channel: the decoder, the
run record and Foxglove read it as they read any type of ROS 2. A channel without a definition that
can be used keeps encoding "ros1": it is listed and not decoded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_typestore
from rosbags.typesys.msg import normalize_msgtype

from avrt.logs.raw import Anomalies, Channel, RawMessage
from avrt.logs.ros.definitions import parse_definition
from avrt.logs.ros.types import TRANSFORMS, known_types, schema_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rosbags.typesys.store import Typestore

ROS1 = "ros1"
RENAMED: Mapping[str, str] = {"tf/msg/tfMessage": TRANSFORMS}
BASIC = (
    "std_msgs/msg/Header",
    "builtin_interfaces/msg/Time",
    "builtin_interfaces/msg/Duration",
)


class Ros1Converter:
    """Converts the messages of one log's ROS 1 channels."""

    def __init__(self) -> None:
        self._stores: dict[int, Typestore] = {}

    def channel(self, id_: int, topic: str, type_name: str, definition: bytes) -> Channel:
        """Return a channel as it is handed on; its type is named and defined as in ROS 1."""
        given = normalize_msgtype(type_name)
        name = RENAMED.get(given, given)
        store, schema = _converter(name, definition.decode("utf-8", "replace"))
        if store is None:
            return Channel(id_, topic, name, ROS1)
        self._stores[id_] = store
        return Channel(id_, topic, name, "cdr", "ros2msg", schema)

    def convert(self, message: RawMessage, anomalies: Anomalies) -> None:
        """Make a message CDR, if it is one of these channels'; one that is no such is emptied."""
        store = self._stores.get(message.channel.id)
        if store is None:
            return
        try:
            message.data = store.ros1_to_cdr(bytes(message.data), message.type)
        except (SerdeError, IndexError, OverflowError, MemoryError) as error:
            what = f"expected a {message.type}, found {len(message.data)} bytes: {error}"
            anomalies.add("unconvertible", message.topic, message.log_ns, what)
            message.data = b""


@lru_cache(maxsize=256)
def _converter(type_name: str, text: str) -> tuple[Typestore | None, bytes]:
    """Return a store that converts a type, and its ROS 2 definition; None where there is none."""
    known = known_types().fielddefs
    try:
        types = parse_definition(text, type_name, known)
        types.update({name: known[name] for name in BASIC})
        store = get_typestore(Stores.EMPTY)
        store.register(types)
        if types[type_name][1]:
            return store, schema_text(store, type_name)
    except (TypesysError, KeyError, ValueError):
        pass
    return None, b""
