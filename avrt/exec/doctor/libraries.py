"""Checks of numerical libraries and GPUs. Torch is imported here, when it is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from avrt.exec.doctor.check import Check, Host, judged
from avrt.exec.rights import COSTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.exec.rights import Right


def check_libraries(host: Host, openmp: Right) -> Iterator[Check]:
    """Yield every check of libraries; `openmp` was asked for before torch was there."""
    yield openmp_policy(openmp)
    yield torch_threads(host)
    yield from gpu(host)


def openmp_policy(right: Right) -> Check:
    remedy = "export OMP_WAIT_POLICY=PASSIVE before the start"
    if right.granted:
        return Check("OpenMP waiting", right.told, "passive", "ok", cost=right.cost)
    return Check("OpenMP waiting", right.told, "passive", "advice", remedy, COSTS["openmp"])


def torch_threads(host: Host) -> Check:
    import torch  # noqa: PLC0415 - 1.4 s

    count = torch.get_num_threads()
    variables = [
        f"{name}={host.environment[name]}"
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        if name in host.environment
    ]
    found = f"torch {torch.__version__}, {count} an operation by default"
    return judged(
        "threads an operation", ", ".join((found, *variables)),
        "'threads:' of the device in the pipeline file", good=not variables,
        remedy="leave the variables out: avrt sets the count of every library from the file",
        cost="results differ in the last digits with the count: with counts that differed between "
        "stages six runs had six digests",
    )  # fmt: skip


def gpu(host: Host) -> Iterator[Check]:
    """Yield what there is of NVIDIA's driver, NVML and CUDA in torch."""
    import torch  # noqa: PLC0415 - 1.4 s

    text = host.file("proc/driver/nvidia/version")
    driver = text.partition("\n")[0].partition(":")[2].strip()
    cost = "stages for a GPU run on their fallback, or not at all"
    if not driver:
        yield Check("GPU", "no NVIDIA driver", "one, for stages on a GPU", "ok", cost=cost)
        return
    yield Check("GPU", driver, "one, for stages on a GPU", "ok", cost=cost)
    built, works = torch.version.cuda, torch.cuda.is_available()
    found = f"CUDA {built}, {torch.cuda.device_count()} devices" if works else "none usable"
    yield judged(
        "torch.cuda", found if built else "this torch is built without CUDA", "usable", good=works,
        remedy="install the torch for this driver: pytorch.org/get-started/locally"
        if not built
        else "compare nvidia-smi with what torch wants; pass --gpus all to docker",
        cost=cost,
    )  # fmt: skip
    yield judged(
        "NVML", "pynvml" if find_spec("pynvml") else "pynvml is not installed", "pynvml",
        good=find_spec("pynvml") is not None,
        remedy="pip install nvidia-ml-py",
        cost="use, memory and heat of GPUs are not sampled",
    )  # fmt: skip
