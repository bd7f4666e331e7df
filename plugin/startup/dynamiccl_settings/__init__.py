# SPDX-License-Identifier: Apache-2.0
"""Applies a settings file (docs/formats/settings.md) to PyTorch in a script that is not edited.

install() is called at Python's start. It reads two variables of the environment and registers functions that run when
torch's modules are imported. A program that does not import torch pays for two look-ups in the environment and one
look at each import's name.
"""
import os

SETTINGS = "DYNAMICCL_FRAMEWORK_SETTINGS"
REPORT = "DYNAMICCL_FRAMEWORK_REPORT"


def install():
    """Installs the hook where a settings file or a report is asked for; otherwise it does nothing."""
    settings_path, report_pattern = os.environ.get(SETTINGS, ""), os.environ.get(REPORT, "")
    if not settings_path and not report_pattern:
        return
    from dynamiccl_settings import after_import
    from dynamiccl_settings.torch_settings import TorchSettings

    after_import.install(TorchSettings(settings_path, report_pattern).actions())
