"""`python -m avrt`, and the `avrt` command: Ctrl-C ends it well from its first second on."""

import sys


def main() -> int:
    """Import the command, which takes a second, and run it; return its exit code."""
    try:
        from avrt.cli import main as command  # noqa: PLC0415 - may be interrupted
    except KeyboardInterrupt:
        sys.stderr.write("avrt: interrupted\n")
        return 130
    return command()


if __name__ == "__main__":
    sys.exit(main())
