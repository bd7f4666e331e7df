# SPDX-License-Identifier: Apache-2.0
"""Live values: numbers that a program reads at the start of a step and that somebody may change while it runs, on all
ranks before the same step (docs/agree.md). It uses the object that is already loaded into the process and never loads
it; without it the program's own numbers stay.

    bucket_mb = dynamiccl.agree.value("bucket_mb", 25)   # every rank, at the start of a step
    dynamiccl.agree.propose("bucket_mb", 5)              # any rank, any time

`comm` is the handle of a communicator as a number; 0 is the process's first communicator of all WORLD_SIZE ranks.
"""
import ctypes
import operator
import sys

_LEAST, _MOST = -2**63, 2**63 - 1
# The functions of the loaded object that read and propose; None: not looked for yet; an empty tuple: not there.
_functions = None
# The names whose numbers were refused, each with one line.
_refused = set()


def _find():
    """Returns the two functions of the loaded object. It is there from the start of the process (LD_PRELOAD) or never.
    Threads that look at the same time find the same."""
    global _functions
    if _functions is None:
        try:
            process = ctypes.CDLL(None)
            read, propose_value = process.dynamicclAgreedValue, process.dynamicclProposeValue
        except (AttributeError, OSError):
            _functions = ()
            return _functions
        read.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
        propose_value.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
        read.restype = propose_value.restype = ctypes.c_int
        _functions = (read, propose_value)
    return _functions


def _whole(name, number):
    """Returns the number as an int; None if it is no whole number of 64 bits, and one line then says so."""
    try:
        whole = operator.index(number)
    except TypeError:
        whole = None
    if whole is not None and _LEAST <= whole <= _MOST:
        return whole
    if name not in _refused:
        _refused.add(name)
        sys.stderr.write(f"dynamiccl: the live value {name} stays as it is: {number!r} is no whole number of 64 bits\n")
    return None


def value(name, fallback, comm=0):
    """The number that all ranks have for the communicator's next call, or `fallback` where none was agreed. All ranks
    read it at the same place among their calls and with the same fallback. A fallback that is no whole number of 64
    bits is returned as it is."""
    functions = _find()
    whole = _whole(name, fallback) if functions else None
    if whole is None:
        return fallback
    number = ctypes.c_int64(whole)
    agreed = functions[0](comm, name.encode(), whole, ctypes.byref(number))
    return number.value if agreed else fallback


def propose(name, number, comm=0):
    """Proposes a number to all ranks and returns at once: True if it was sent, False where values do not change or the
    number is no whole number of 64 bits."""
    functions = _find()
    whole = _whole(name, number) if functions else None
    return whole is not None and bool(functions[1](comm, name.encode(), whole))
