# SPDX-License-Identifier: Apache-2.0
"""Marks the training steps in the trace, so that a step with only one call is recognised as a step.

A step ends with step() of the optimizer that stepped first. The mark is written by dynamicclMarkPhase
(src/annotate/phase_marker.h), which exists only in a process with libdynamiccl.so.
"""
import ctypes

_PHASE_OTHER, _STAGE_UNKNOWN = 4, 4


def mark(optimizer_module):
    """Marks every step() of the optimizer that steps first. Does nothing without libdynamiccl.so, or if this torch has
    no hook for optimizer steps."""
    try:
        mark_phase = ctypes.CDLL(None).dynamicclMarkPhase
    except AttributeError:
        return
    mark_phase.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong]
    register = getattr(optimizer_module, "register_optimizer_step_post_hook", None)
    if register is None:
        return
    done = {"steps": 0, "optimizer": None}

    def after_step(optimizer, _args, _kwargs):
        if done["optimizer"] is None:
            done["optimizer"] = id(optimizer)
        if done["optimizer"] != id(optimizer):
            return
        done["steps"] += 1
        mark_phase(_PHASE_OTHER, _STAGE_UNKNOWN, done["steps"])

    register(after_step)
