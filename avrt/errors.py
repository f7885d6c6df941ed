"""Every exception avrt raises, split by whose fault it is.

* AvrtError
  x SpecError        the user's file or call is wrong; the user can mend it
  x InputError       a log or a message is damaged or unusable
    - DamagedInputError  a log is damaged, and its good part was delivered
  x FaultError       the world failed while running; the kernel decides what follows
    - HardwareFault  a device, its memory or a link
    - SoftwareFault  a stage raised, hung, found no memory or returned what is no payload; its
                     weights have changed
    - DataFault      a message's content is impossible
  x KernelError      a bug in avrt

`exit_code` is the process exit code of each class, as the command line documents it. `raised_by`
is the package's only handler of everything that may be raised.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


OUT_OF_MEMORY = "out_of_memory"
"""The kind of a fault for want of memory: of the software, and no reason to give a device up."""
CORRUPTED = "corrupted"
"""The kind of a fault of a message that is not what was published: none of whoever reads it."""

WEIGHTS = "weights"
"""The kind of a fault of weights that have changed: whoever did that, a device is not given up."""


class AvrtError(Exception):
    """Base class of all errors raised by avrt."""

    exit_code: ClassVar[int] = 70


class SpecError(AvrtError):
    """A pipeline file or a call is wrong: says where, what was found and what to do instead.

    Attributes:
        what: the problem and its remedy, one sentence.
        key: path of keys from the top of the file to the value, for instance
            `("stages", "fuse", "inputs", "lidar")`.
        place: `file:line` when the value came from a file.
    """

    exit_code = 2

    def __init__(self, what: str, key: tuple[str, ...] = (), place: str | None = None) -> None:
        super().__init__(what, key, place)
        self.what = what
        self.key = key
        self.place = place

    def at(self, place: str) -> SpecError:
        """Return the same error with its place in the file."""
        return type(self)(self.what, self.key, place)

    def __str__(self) -> str:
        parts = (self.place, ".".join(self.key), self.what)
        return ": ".join(part for part in parts if part)


class InputError(AvrtError):
    """A log or a message is damaged: says what, where, and how much was still good.

    Attributes:
        what: what was expected and what was found.
        place: file, and topic or byte offset within it.
        good_messages: how many messages before the damage were delivered.
        others: what is wrong elsewhere in the same log.
    """

    exit_code = 4

    def __init__(
        self, what: str, place: str, good_messages: int = 0, others: Sequence[InputError] = ()
    ) -> None:
        super().__init__(what, place, good_messages, others)
        self.what = what
        self.place = place
        self.good_messages = good_messages
        self.others = others

    @property
    def lines(self) -> list[str]:
        """This error, and a line for each of the others."""
        return [str(self), *map(str, self.others)]

    def __str__(self) -> str:
        good = f" ({self.good_messages} messages before it are good)" if self.good_messages else ""
        return f"{self.place}: {self.what}{good}"


class DamagedInputError(InputError):
    """A log is damaged; everything in it that is good was delivered before this was raised."""

    exit_code = 3

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.good_messages} good messages were delivered)"


class FaultError(AvrtError):
    """Something failed while running; `kind` is the short name the journal keeps."""

    exit_code = 1

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


class HardwareFault(FaultError):  # noqa: N818 - the design names them
    """A device, its memory or a link failed."""


class SoftwareFault(FaultError):  # noqa: N818 - the design names them
    """A stage raised, hung, or returned what is no payload, or its weights have changed."""


class DataFault(FaultError):  # noqa: N818 - the design names them
    """The content of a message is impossible."""


class KernelError(AvrtError):
    """The kernel's protocol was broken; a bug in avrt."""

    exit_code = 70

    def __str__(self) -> str:
        return f"{super().__str__()} (a bug in avrt: please report it with the run record)"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the nearest known one, or the list of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}" if names else "none is defined"


def raised_by(call: Callable[[], object]) -> BaseException | None:
    """Return what a call raises; on another thread, for whoever waits for it to raise again."""
    try:
        call()
    except BaseException as raised:  # noqa: BLE001 - even sys.exit() in a stage is a fault of it
        return raised
    return None
