"""What every device must do, as plain functions: `run(make_device)` gives one verdict a test.

    from avrt.device import CpuDevice, conformance
    print(conformance.table(conformance.run(CpuDevice)))

Each test gets an executor of its own. No test framework is needed, so they run wherever the device
is.
"""

from avrt.device.conformance.rig import NotRun, Rig
from avrt.device.conformance.run import CHECKS, Check, Verdict, failed, run, run_check, table

__all__ = ["CHECKS", "Check", "NotRun", "Rig", "Verdict", "failed", "run", "run_check", "table"]
