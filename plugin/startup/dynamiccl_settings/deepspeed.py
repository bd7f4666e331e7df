# SPDX-License-Identifier: Apache-2.0
"""Settings of DeepSpeed's ZeRO stages 1 to 3. deepspeed.initialize gets a copy of the program's configuration with the
settings in it. Neither the program's dictionary nor its file is changed."""
import copy
import functools
import inspect
import json
import os

from dynamiccl_settings import steps
from dynamiccl_settings.report import quietly

# For each setting, a member of "zero_optimization": the stages that use it, and the optimizer's attribute that has its
# value in effect. Without such an attribute the value is read from the engine's own configuration.
_SETTINGS = {
    "reduce_bucket_size": ((1, 2, 3), "reduce_bucket_size"),
    "allgather_bucket_size": ((1, 2), "allgather_bucket_size"),
    "overlap_comm": ((1, 2, 3), "overlap_comm"),
    "stage3_prefetch_bucket_size": ((3,), "prefetch_elements"),
    "stage3_param_persistence_threshold": ((3,), None),
}
_PREFIX = "stage3_"


def apply(module, usable, report):
    """Wraps deepspeed.initialize. `usable` is a function that returns the settings."""
    original = module.initialize
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(*args, **kwargs):
        # The process group must exist before ranks can agree. initialize would make it too, with the same arguments.
        if _has_process_group():
            settings = usable()
        else:
            settings = quietly("the process group of DeepSpeed", _after_process_group, module, signature, args, kwargs, usable) or {}
        if settings:
            changed = quietly("the change of DeepSpeed's configuration", _changed_arguments, signature, settings, report, args, kwargs)
            if changed is None:
                _leave_all(settings, report, "this DeepSpeed is built otherwise than the hook expects")
            args, kwargs = changed or (args, kwargs)
        returned = original(*args, **kwargs)
        quietly("the report of DeepSpeed", _report_on, module, returned[0], settings, report)
        return returned

    module.initialize = initialize


def _report_on(module, engine, settings, report):
    for name, value in settings.items():
        if f"deepspeed.{name}" not in report.content["settings"]:
            report.applied("deepspeed." + name, value, _in_effect(engine, name))
    if report.wanted:
        _observe(module, engine, report)


def _has_process_group():
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def _after_process_group(module, signature, args, kwargs, usable):
    given = signature.bind_partial(*args, **kwargs).arguments
    known = {name: given[name] for name in ("distributed_port", "dist_init_required") if name in given}
    module.init_distributed(dist_backend=module.get_accelerator().communication_backend_name(), **known)
    return usable()


def _changed_arguments(signature, settings, report, args, kwargs):
    """Returns the arguments of initialize, with the settings in a copy of the configuration. A configuration that cannot
    be read stays as it is, so that DeepSpeed reports it."""
    bound = signature.bind(*args, **kwargs)
    found = _configuration(bound.arguments)
    if not isinstance(found, dict):
        _leave_all(settings, report, "the configuration is neither a dictionary nor a file with JSON")
        return args, kwargs
    config = copy.deepcopy(found)
    zero = config.get("zero_optimization")
    stage = zero.get("stage", 0) if isinstance(zero, dict) else 0
    if stage not in (1, 2, 3):
        _leave_all(settings, report, "the job uses no stage of ZeRO that has buckets")
        return args, kwargs
    for name, value in settings.items():
        if stage not in _SETTINGS[name][0]:
            report.left_alone("deepspeed." + name, value, f"stage {stage} has no such setting")
        elif not _is_known(name):
            report.left_alone("deepspeed." + name, value, "this DeepSpeed has no such setting")
        else:
            zero.pop(_short(name), None)
            zero[name] = value
    bound.arguments["config"] = config
    bound.arguments.pop("config_params", None)
    bound.arguments["args"] = _without_path(bound.arguments.get("args"))
    return bound.args, bound.kwargs


def _leave_all(settings, report, reason):
    for name, value in settings.items():
        report.left_alone("deepspeed." + name, value, reason)


def _configuration(arguments):
    """Returns the program's configuration as DeepSpeed finds it, in a dictionary or a file; None if there is neither."""
    config = arguments.get("config") or arguments.get("config_params")
    config = config or getattr(arguments.get("args"), "deepspeed_config", None)
    if isinstance(config, dict):
        return config
    if not isinstance(config, (str, os.PathLike)) or not os.path.exists(config):
        return None
    try:
        with open(config, encoding="utf-8") as file:
            return json.load(file)
    except ValueError:
        return None


def _without_path(arguments):
    """Returns a copy of the program's arguments without the path of a configuration, because DeepSpeed accepts only
    one."""
    if getattr(arguments, "deepspeed_config", None) is None:
        return arguments
    arguments = copy.copy(arguments)
    arguments.deepspeed_config = None
    return arguments


def _is_known(name):
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    fields = DeepSpeedZeroConfig.model_fields
    return name in fields or _short(name) in fields


def _short(name):
    """Returns the name without "stage3_": DeepSpeed keeps some settings under this shorter name."""
    return name[len(_PREFIX):] if name.startswith(_PREFIX) else name


def _in_effect(engine, name):
    attribute = _SETTINGS[name][1]
    if attribute is not None and hasattr(engine.optimizer, attribute):
        return getattr(engine.optimizer, attribute)
    return getattr(engine._config.zero_config, _short(name), None)


def _observe(module, engine, report):
    """Reports the job, and marks steps where the engine steps. With several sub-groups the optimizer steps several times in
    one step of the engine."""
    seen = report.framework("deepspeed")
    seen["version"] = str(getattr(module, "__version__", ""))
    seen["constructed"] = seen.get("constructed", 0) + 1
    seen["stage"] = int(engine.zero_optimization_stage())
    trained = [(name, p) for name, p in engine.module.named_parameters() if p.requires_grad]
    seen["names"] = [name for name, _ in trained]
    seen["parameters"] = [_elements(p) for _, p in trained]
    seen["largest_module"] = max(sum(_elements(p) for p in part.parameters(recurse=False))
                                 for part in engine.module.modules())
    seen["on_host"] = all(p.device.type == "cpu" for _, p in trained)
    seen["micro_steps"] = int(engine.gradient_accumulation_steps())
    seen["values"] = {name: _in_effect(engine, name) for name in _SETTINGS if seen["stage"] in _SETTINGS[name][0]}
    report.write()
    _mark_steps(engine)


def _elements(parameter):
    """Elements of the whole parameter, of which stage 3 keeps only a part in memory."""
    return int(getattr(parameter, "ds_numel", parameter.numel()))


def _mark_steps(engine):
    step = engine.step
    steps.leave_optimizers()

    @functools.wraps(step)
    def marked(*args, **kwargs):
        ends = quietly("the mark of DeepSpeed's step", engine.is_gradient_accumulation_boundary)
        result = step(*args, **kwargs)
        if ends:
            steps.end_step()
        return result

    engine.step = marked
