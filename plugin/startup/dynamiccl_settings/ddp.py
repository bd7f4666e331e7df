# SPDX-License-Identifier: Apache-2.0
"""Settings of torch.nn.parallel.DistributedDataParallel."""
import functools
import inspect

# The reducer rebuilds its buckets once, and its account shows that before the fourth forward pass, with a static graph before
# the fifth (seen with torch 2.13). Where it does not rebuild, its first buckets stay.
_LAST_LOOK = 10
# The argument of torch 2.13 with a size for each bucket, of which the last stands for all that follow.
_LIST = "bucket_cap_mb_list"
_DEFAULT_CAP_MB = 25
_MB = 2**20


def apply(module, usable, report):
    """Wraps the constructor of the class in the module torch.nn.parallel.distributed. `usable` returns the settings."""
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
            _observe(self, report)

    parallel.__init__ = construct


def _changed_arguments(signature, settings, report, args, kwargs):
    """The arguments with the settings in place of what the program gave. Wrong arguments are left to the constructor."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.arguments.update(_arguments_of(signature.parameters, settings, report))
    return bound.args, bound.kwargs


def _arguments_of(known, settings, report):
    """The constructor's arguments that stand for the settings. A setting that this torch does not know is left alone."""
    arguments = {}
    for name, value in settings.items():
        if name == "first_bucket_mb" and _LIST in known:
            arguments[_LIST] = [value, settings.get("bucket_cap_mb", _DEFAULT_CAP_MB)]
        elif name in known:
            arguments[name] = value
        else:
            report.left_alone("ddp." + name, value, "DistributedDataParallel of this torch has no such argument")
    # A list that the program gave would win over the one size that is asked for.
    if "bucket_cap_mb" in arguments and _LIST in known:
        arguments.setdefault(_LIST, None)
    return arguments


def _confirm(parallel, known, settings, report):
    """Reports what the constructed object has, which a subclass may have changed."""
    for name, value in settings.items():
        if name == "first_bucket_mb" and _LIST in known:
            sizes = getattr(parallel, "bucket_bytes_cap_list", None)
            report.applied("ddp." + name, value, sizes[0] / _MB if sizes else None)
        elif name == "bucket_cap_mb" and name in known:
            report.applied("ddp." + name, value, getattr(parallel, "bucket_bytes_cap", 0) / _MB)
        elif name in known:
            report.applied("ddp." + name, value, getattr(parallel, name, None))


def _observe(parallel, report):
    """Notes what the reducer has when it has settled. A program that stops earlier leaves its first buckets."""
    seen = report.framework("ddp")
    seen["constructed"] = seen.get("constructed", 0) + 1
    trained = [p for p in parallel.parameters() if p.requires_grad]
    seen["parameters"] = [p.numel() * p.element_size() for p in trained]
    seen["gradient_bytes"] = sum(seen["parameters"])
    seen["on_host"] = all(p.device.type == "cpu" for p in trained)
    seen["bucket_cap_mb"] = getattr(parallel, "bucket_bytes_cap", 0) / _MB
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


def _note_buckets(parallel, seen):
    """Notes the buckets' bytes by the reducer's own account, where this torch keeps one. True: they have been rebuilt."""
    try:
        data = parallel._get_ddp_logging_data()
    except Exception:  # noqa: B902, a private function that may change
        return False
    rebuilt = data.get("rebuilt_bucket_sizes")
    sizes = str(rebuilt or data.get("bucket_sizes") or "")
    seen["buckets"] = [int(size) for size in sizes.split(",") if size.strip().isdigit()]
    return bool(rebuilt)
