# SPDX-License-Identifier: Apache-2.0
"""Where the parts of DynamICCL lie that pip installed; nothing is loaded or changed by importing this.

    os.environ["LD_PRELOAD"] = dynamiccl.preload()      # for the processes of a job, before they start
"""
import pathlib

_HOME = pathlib.Path(__file__).resolve().parent / "home"


def home():
    """The installation's folder, as DYNAMICCL_HOME takes it."""
    return str(_HOME)


def program():
    """The program `dynamiccl`."""
    return str(_HOME / "bin/dynamiccl")


def preload():
    """The object for LD_PRELOAD, NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN."""
    return str(_HOME / "lib/libdynamiccl.so")


def hostccl():
    """The folder for LD_LIBRARY_PATH with hostccl's libnccl.so.2: for machines without a GPU only."""
    return str(_HOME / "lib/hostccl")
