"""The scheduling kernel: pure, events in, commands out."""

from avrt.kernel.kernel import Kernel

__all__ = ["Kernel"]
