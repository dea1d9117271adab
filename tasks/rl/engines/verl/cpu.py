"""verl without a GPU: a platform for its registry. It must be there before verl's engines are imported.

It exists to prove the engine: small models, one process, gloo. Ray sees one logical GPU.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

SILENT = (
    "empty_cache synchronize set_device ipc_collect manual_seed manual_seed_all reset_peak_memory_stats "
    "reset_accumulated_memory_stats"
).split()
ZERO = "memory_allocated memory_reserved max_memory_allocated max_memory_reserved".split()


def device_module() -> ModuleType:
    """`torch.cpu` with the calls that verl makes on any accelerator: no memory of its own, nothing to wait for."""
    module = ModuleType("posttrain_cpu_device")
    module.__dict__.update({name: value for name, value in vars(torch.cpu).items() if not name.startswith("__")})
    module.__dict__.update({name: lambda *_, **__: None for name in SILENT})
    module.__dict__.update({name: lambda *_, **__: 0 for name in ZERO})
    module.__dict__.update(
        is_available=lambda: False,  # "no accelerator": verl then skips what only CUDA can
        get_rng_state=torch.get_rng_state,
        set_rng_state=torch.set_rng_state,
        mem_get_info=lambda *_, **__: (1, 1),
        get_device_name=lambda *_, **__: "CPU",
    )
    return module


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """Chosen by VERL_PLATFORM=cpu, never found by itself."""

    device_name = "cpu"
    vendor_name = "generic"
    device_module = device_module()

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        del use_smi_check
        return False

    def current_device(self) -> torch.device:
        return torch.device("cpu")  # goes to `.to()`, where a number would mean a CUDA device

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        pass

    def synchronize(self, device_index: int | None = None) -> None:
        pass

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        del device_index
        return None, None

    def communication_backend_name(self) -> str:
        """verl asks torch for "cpu:gloo,cpu:gloo", which torch refuses: in a training process gloo comes first."""
        import torch.distributed as dist

        if {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= set(os.environ) and not dist.is_initialized():
            dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        del msg
        yield

    def profiler_start(self) -> None:
        pass

    def profiler_stop(self) -> None:
        pass

    def ray_resource_name(self) -> str:
        return "GPU"  # a logical one: Ray is started with num_gpus=1

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None
