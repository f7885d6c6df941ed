"""Text from elsewhere, such as names of files and topics, made fit to be written and shown."""

from __future__ import annotations


def encodable(text: str, encoding: str = "utf-8") -> str:
    r"""Return text with what an encoding has no bytes for escaped, such as `\udcff`.

    Python keeps bytes of a file's name that are no UTF-8 as surrogates, which UTF-8 refuses.
    """
    return text.encode(encoding, "backslashreplace").decode(encoding)


def escaped(text: str) -> str:
    r"""Return text of one line whose control characters are escaped, such as `\x1b` and `\n`.

    A terminal obeys some of them, and who wrote a log is not who shows it.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
