"""Text that may hold the name of a file, which is any bytes, made fit to be written."""

from __future__ import annotations


def encodable(text: str, encoding: str = "utf-8") -> str:
    r"""Return text with what an encoding has no bytes for escaped, such as `\udcff`.

    Python keeps bytes of a file's name that are no UTF-8 as surrogates, which UTF-8 refuses.
    """
    return text.encode(encoding, "backslashreplace").decode(encoding)
