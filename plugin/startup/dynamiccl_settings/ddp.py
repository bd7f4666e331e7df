# SPDX-License-Identifier: Apache-2.0
"""Settings of torch.nn.parallel.DistributedDataParallel."""
import functools
import inspect

# The number of forward passes after which the reducer's buckets are read for the last time. With torch 2.13 the reducer
# reports its rebuilt buckets before the fourth forward pass, with a static graph before the fifth. If it has not
# rebuilt them by then, its first buckets stay.
_LAST_LOOK = 10
# An argument of torch 2.13: a list with the size of each bucket. The last size is that of all further buckets, too.
_LIST = "bucket_cap_mb_list"
# The number of optimizer steps after which the gradients' memory is read for the last time.
_LAST_GRADIENTS = 6
_DEFAULT_CAP_MB = 25
_MB = 2**20


def apply(module, usable, report):
    """Wraps the constructor of DistributedDataParallel, which `module` defines. `usable` is a function that returns the
    settings."""
    parallel = module.DistributedDataParallel
    constructor = parallel.__init__
    signature = inspect.signature(constructor)

    @functools.wraps(constructor)
    def construct(self, *args, **kwargs):
        settings = usable()
        if settings or report.wanted:
            args, kwargs = _changed_arguments(signature, settings, report, (self, *args), kwargs)
            args = args[1:]
        constructor(self, *args, **kwargs)
        _confirm(self, signature.parameters, settings, report)
        if report.wanted:
            _observe(self, signature.parameters, report)
            if "gradient_as_bucket_view" in settings:
                _observe_gradients(self, report)

    parallel.__init__ = construct


def _changed_arguments(signature, settings, report, args, kwargs):
    """Returns the constructor's arguments, with the settings in place of the program's values. Wrong arguments stay
    unchanged, so that the constructor reports them."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.arguments.update(_arguments_of(signature.parameters, settings, bound.arguments, report))
    return bound.args, bound.kwargs


def _arguments_of(known, settings, given, report):
    """Translates the settings to arguments of the constructor. `given` has the program's own arguments. A setting for
    which this torch has no argument is reported."""
    arguments = {}
    for name, value in settings.items():
        if name == "first_bucket_mb" and _LIST in known:
            further = settings.get("bucket_cap_mb") or given.get("bucket_cap_mb") or _DEFAULT_CAP_MB
            arguments[_LIST] = [value, further]
        elif name in known:
            arguments[name] = value
        else:
            report.left_alone("ddp." + name, value, "DistributedDataParallel of this torch has no such argument")
    # If the program gave a list of sizes, torch would ignore the one size that the settings ask for. So the list is
    # removed.
    if "bucket_cap_mb" in arguments and _LIST in known:
        arguments.setdefault(_LIST, None)
    return arguments


def _confirm(parallel, known, settings, report):
    """Reports which values the constructed object has. A subclass may have changed them."""
    for name, value in settings.items():
        if name == "first_bucket_mb" and _LIST in known:
            sizes = getattr(parallel, "bucket_bytes_cap_list", None)
            report.applied("ddp." + name, value, sizes[0] / _MB if sizes else None)
        elif name == "bucket_cap_mb" and name in known:
            report.applied("ddp." + name, value, getattr(parallel, "bucket_bytes_cap", 0) / _MB)
        elif name in known:
            report.applied("ddp." + name, value, getattr(parallel, name, None))


def _observe(parallel, known, report):
    """Notes the reducer's buckets now and once it has rebuilt them. If the program stops before that, its first buckets
    are noted."""
    seen = report.framework("ddp")
    seen["constructed"] = seen.get("constructed", 0) + 1
    trained = [p for p in parallel.parameters() if p.requires_grad]
    seen["parameters"] = [p.numel() * p.element_size() for p in trained]
    seen["gradient_bytes"] = sum(seen["parameters"])
    seen["on_host"] = all(p.device.type == "cpu" for p in trained)
    seen["bucket_cap_mb"] = getattr(parallel, "bucket_bytes_cap", 0) / _MB
    seen["takes_first_bucket"] = _LIST in known
    for flag in ("gradient_as_bucket_view", "static_graph", "find_unused_parameters"):
        seen[flag] = bool(getattr(parallel, flag, False))
    _note_buckets(parallel, seen)
    report.write()
    forwards = 0

    def before_forward(_module, _inputs):
        nonlocal forwards
        forwards += 1
        if _note_buckets(parallel, seen) or forwards == _LAST_LOOK:
            handle.remove()
            report.write()

    handle = parallel.register_forward_pre_hook(before_forward)


def _observe_gradients(parallel, report):
    """Notes the sizes of the pieces of memory in which the gradients are when an optimizer steps: a piece for each
    bucket if gradients are views of buckets, else one for each gradient."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    seen = report.framework("ddp")
    steps = 0

    def before_step(_optimizer, _args, _kwargs):
        nonlocal steps
        steps += 1
        gradients = [p.grad.untyped_storage() for p in parallel.parameters() if p.grad is not None]
        seen["gradient_pieces"] = sorted({piece.data_ptr(): piece.nbytes() for piece in gradients}.values())
        report.write()
        if steps == _LAST_GRADIENTS:
            handle.remove()

    handle = register_optimizer_step_pre_hook(before_step)


def _note_buckets(parallel, seen):
    """Notes the sizes in bytes that the reducer reports for its buckets, if this torch reports them. Returns True if
    the reducer has rebuilt its buckets."""
    try:
        data = parallel._get_ddp_logging_data()
    except Exception:  # noqa: B902, a private function that may change
        return False
    rebuilt = data.get("rebuilt_bucket_sizes")
    sizes = str(rebuilt or data.get("bucket_sizes") or "")
    seen["buckets"] = [int(size) for size in sizes.split(",") if size.strip().isdigit()]
    return bool(rebuilt)
