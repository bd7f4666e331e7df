# SPDX-License-Identifier: Apache-2.0
"""Live values: numbers that a program reads at the start of a step and that somebody may change while it runs, on all
ranks before the same step (docs/agree.md). It uses the object that is already loaded into the process and never loads
it; without it the program's own numbers stay.

    bucket_mb = dynamiccl.agree.value("bucket_mb", 25)   # every rank, at the start of a step
    dynamiccl.agree.propose("bucket_mb", 5)              # any rank, any time

`comm` is the handle of a communicator as a number; 0 is the process's first communicator of all WORLD_SIZE ranks.
"""
import ctypes

_READ, _PROPOSE = None, None


def _find():
    """The two functions of the loaded object. It is there from the start of the process (LD_PRELOAD) or never."""
    global _READ, _PROPOSE
    if _READ is not None:
        return
    _READ = _PROPOSE = False
    try:
        process = ctypes.CDLL(None)
        read, propose_value = process.dynamicclAgreedValue, process.dynamicclProposeValue
    except (AttributeError, OSError):
        return
    read.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
    propose_value.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
    read.restype = propose_value.restype = ctypes.c_int
    _READ, _PROPOSE = read, propose_value


def value(name, fallback, comm=0):
    """The number that all ranks have for the communicator's next call, or `fallback` where none was agreed. All ranks
    read it at the same place among their calls and with the same fallback."""
    _find()
    if not _READ:
        return fallback
    number = ctypes.c_int64(fallback)
    agreed = _READ(comm, name.encode(), fallback, ctypes.byref(number))
    return number.value if agreed else fallback


def propose(name, number, comm=0):
    """Proposes a number to all ranks and returns at once: True if it was sent, False where values do not change."""
    _find()
    return bool(_PROPOSE) and bool(_PROPOSE(comm, name.encode(), number))
