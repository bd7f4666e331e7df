# SPDX-License-Identifier: Apache-2.0
"""Marks the training steps in the trace, so that a step with only one call is recognised as a step.

A step ends with step() of the optimizer that stepped first. If that optimizer is gone, or another one has stepped several
times without it, the other one ends steps from then on. This happens after a warm-up with an optimizer of its own. Where
forward prefetching is asked for, the calls of the forward pass before the second module computes are marked too. A mark
is written by dynamicclMarkPhase (src/annotate/phase_marker.h), which exists only in a process with libdynamiccl.so.
"""
import ctypes
import weakref

from dynamiccl_settings.report import quietly

# The number of steps of another optimizer after which the one that ends steps is taken to be out of use. A program that
# trains two models in turns steps one of them less often between two steps of the other.
_OUT_OF_USE = 8

_PHASE_FORWARD, _PHASE_OTHER, _STAGE_UNKNOWN = 1, 4, 4
# The step that is marked, the function that marks (None: no step is marked), and whether optimizers end steps.
_now = {"step": 0, "mark_phase": None, "by_optimizer": True}


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
    _now["mark_phase"] = mark_phase
    ends, others = {"optimizer": lambda: None}, weakref.WeakKeyDictionary()

    def after_step(optimizer):
        if ends["optimizer"]() is not optimizer:
            others[optimizer] = others.get(optimizer, 0) + 1
            if ends["optimizer"]() is not None and others[optimizer] < _OUT_OF_USE:
                return
            ends["optimizer"] = weakref.ref(optimizer)
        others.clear()
        if _now["by_optimizer"]:
            end_step()

    register(lambda optimizer, _args, _kwargs: quietly("the mark of a step", after_step, optimizer))


def leave_optimizers():
    """Lets steps end with end_step() only, no longer with an optimizer's step()."""
    _now["by_optimizer"] = False


def end_step():
    """Marks the end of a step."""
    if _now["mark_phase"] is None:
        return
    _now["step"] += 1
    _now["mark_phase"](_PHASE_OTHER, _STAGE_UNKNOWN, _now["step"])


def mark_forward(begins):
    """Marks that the calls from here on belong to the forward pass (`begins`), or no longer to its beginning. Does
    nothing before the first optimizer step, because no step is marked until then."""
    if _now["mark_phase"] is not None and _now["step"] > 0:
        _now["mark_phase"](_PHASE_FORWARD if begins else _PHASE_OTHER, _STAGE_UNKNOWN, _now["step"])
