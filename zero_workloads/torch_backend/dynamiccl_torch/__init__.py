# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over NCCL's C API on host memory: init_process_group("dynamiccl").

With this package's folder on PYTHONPATH, PyTorch 2.5 and later load it by themselves (entry point torch.backends);
`import dynamiccl_torch` does the same where this loading is turned off (TORCH_DEVICE_BACKEND_AUTOLOAD=0).
"""
from dynamiccl_torch.registration import NAME, register

__all__ = ["NAME", "register"]

register()
