# SPDX-License-Identifier: Apache-2.0
"""Settings of torch.nn.parallel.DistributedDataParallel."""
import functools
import inspect
import weakref

from dynamiccl_settings.report import quietly

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
# Maps each object that is alive to its part of the report, in the order of construction.
_objects = weakref.WeakKeyDictionary()


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
        quietly("the report of DDP", _report_on, self, signature.parameters, settings, report)

    parallel.__init__ = construct


def _report_on(parallel, known, settings, report):
    _confirm(parallel, known, settings, report)
    if not report.wanted:
        return
    _observe(parallel, known, report)
    if "gradient_as_bucket_view" in settings:
        _observe_gradients(parallel, report)


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
            arguments[_LIST] = [value, *_further_buckets(settings, given)]
        elif name in known:
            arguments[name] = value
        else:
            report.left_alone("ddp." + name, value, "DistributedDataParallel of this torch has no such argument")
    # If the program gave a list of sizes, torch would ignore the one size that the settings ask for. So the list is
    # removed.
    if "bucket_cap_mb" in arguments and _LIST in known:
        arguments.setdefault(_LIST, None)
    return arguments


def _further_buckets(settings, given):
    """Returns the sizes of the buckets after the first one. A list of the program keeps its other sizes."""
    if "bucket_cap_mb" in settings:
        return [settings["bucket_cap_mb"]]
    own = list(given.get(_LIST) or ())
    return own[1:] or own or [given.get("bucket_cap_mb") or _DEFAULT_CAP_MB]


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
    of_object = _objects[parallel] = {"parameters": [p.numel() * p.element_size() for p in trained]}
    seen["on_host"] = all(p.device.type == "cpu" for p in trained)
    seen["bucket_cap_mb"] = getattr(parallel, "bucket_bytes_cap", 0) / _MB
    seen["takes_first_bucket"] = _LIST in known
    for flag in ("gradient_as_bucket_view", "static_graph", "find_unused_parameters"):
        seen[flag] = bool(getattr(parallel, flag, False))
    _note_buckets(parallel, of_object)
    _write(report)
    forwards = 0

    def before_forward(module, _inputs):
        nonlocal forwards
        forwards += 1
        if _note_buckets(module, of_object) or forwards == _LAST_LOOK:
            handle.remove()
            _write(report)

    handle = parallel.register_forward_pre_hook(
        lambda module, inputs: quietly("the report of DDP", before_forward, module, inputs))


def _write(report):
    """Writes the report with the lists of all objects that are alive, one after the other."""
    seen = report.framework("ddp")
    for name in ("parameters", "buckets", "gradient_pieces"):
        lists = [of_object[name] for of_object in _objects.values() if name in of_object]
        if lists:
            seen[name] = [size for one in lists for size in one]
    seen["gradient_bytes"] = sum(seen["parameters"])
    report.write()


def _observe_gradients(parallel, report):
    """Notes the sizes of the pieces of memory in which the gradients are when an optimizer steps: a piece for each
    bucket if gradients are views of buckets, else one for each gradient."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    of_object = _objects[parallel]
    alive = weakref.ref(parallel)
    steps = 0

    def before_step():
        nonlocal steps
        steps += 1
        if steps == _LAST_GRADIENTS or alive() is None:
            handle.remove()
        if alive() is None:
            return
        gradients = [p.grad.untyped_storage() for p in alive().parameters() if p.grad is not None]
        of_object["gradient_pieces"] = sorted({piece.data_ptr(): piece.nbytes() for piece in gradients}.values())
        _write(report)

    handle = register_optimizer_step_pre_hook(lambda *_: quietly("the report of DDP", before_step))


def _note_buckets(parallel, of_object):
    """Notes the sizes in bytes that the reducer reports for its buckets, if this torch reports them. Returns True if
    the reducer has rebuilt its buckets."""
    try:
        data = parallel._get_ddp_logging_data()
    except Exception:  # noqa: B902, a private function that may change
        return False
    rebuilt = data.get("rebuilt_bucket_sizes")
    sizes = str(rebuilt or data.get("bucket_sizes") or "")
    of_object["buckets"] = [int(size) for size in sizes.split(",") if size.strip().isdigit()]
    return bool(rebuilt)
