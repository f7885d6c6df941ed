"""Message definitions as logs carry them: parsed, and checked before anything is compiled of them.

A definition is a text of the type and of those it is made of. One that lacks a type, or in which a
type contains itself, cannot be used: no message of it exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rosbags.interfaces import Nodetype
from rosbags.typesys import TypesysError, get_types_from_msg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rosbags.interfaces.typing import Typesdict

NESTING_MAX = 32
UNPARSABLE = (TypesysError, KeyError, RecursionError)


def parse_definition(text: str, type_name: str, known: Typesdict) -> Typesdict:
    """Return the types of a definition; those it only names are taken from the known ones.

    Raises:
        ValueError: it cannot be used.
    """
    try:
        types = get_types_from_msg(text, type_name)
    except UNPARSABLE as error:
        raise ValueError(str(error) or type(error).__name__) from None
    _check_nesting({**known, **types}, type_name)
    return types


def is_other_layout(types: Typesdict, known: Typesdict, type_name: str) -> bool:
    """Whether messages of a definition are laid out in another way than the known type.

    Constants do not count, nor do names, unless the same names stand in another order.
    """
    if type_name not in types or type_name not in known:
        return False
    fields, expected = types[type_name][1], known[type_name][1]
    if [desc for _, desc in fields] != [desc for _, desc in expected]:
        return True
    names, known_names = ([name.lower() for name, _ in item] for item in (fields, expected))
    if names != known_names and sorted(names) == sorted(known_names):
        return True
    return any(is_other_layout(types, known, name) for name in _parts(types, type_name))


def _check_nesting(types: Typesdict, type_name: str) -> None:
    """Raise ValueError where a type is missing, or contains itself."""
    whole: set[str] = set()

    def check(name: str, outer: tuple[str, ...]) -> None:
        if name in outer:
            raise ValueError(f"type {name} contains itself")
        if name not in types:
            raise ValueError(f"type {name} is not defined")
        if len(outer) > NESTING_MAX:
            raise ValueError(f"types are nested more than {NESTING_MAX} deep")
        if name not in whole:
            for part in _parts(types, name):
                check(part, (*outer, name))
            whole.add(name)

    check(type_name, ())


def _parts(types: Typesdict, type_name: str) -> Iterator[str]:
    """Yield the types that a type is made of."""
    for _, desc in types[type_name][1]:
        match desc:
            case (Nodetype.NAME, str(name)):
                yield name
            case (Nodetype.ARRAY | Nodetype.SEQUENCE, ((Nodetype.NAME, str(name)), _)):
                yield name
            case _:
                pass
