# SPDX-License-Identifier: Apache-2.0
"""All ranks use a settings file, or none does: buckets or gathers that differ between ranks make a job stand still.

The ranks agree when the program first constructs an object that settings could change. Each rank has a token, the hash
of the settings and of torch's version, and counts itself under it in the store of the default process group. The rank
that completes the count writes the verdict "yes". A rank with another token, or one that has waited long enough, writes
"no". The store's compare_set keeps only the first verdict, and every rank uses that one.
"""
import datetime
import hashlib
import json
import os

_KEY = "dynamiccl/settings/"
# Seconds that a rank waits for the others. They load their models first, and one rank may need minutes more than
# another.
LIMIT_S = 120


def token_of(settings, torch_version):
    """Returns a text that is equal on ranks that would apply equal settings. `settings` is None where the file could
    not be used."""
    return hashlib.sha256(json.dumps([settings, torch_version], sort_keys=True).encode()).hexdigest()


def verdict(store, world, token, limit_s=LIMIT_S):
    """Returns True if all `world` ranks have come with this token. All ranks that ask get the same answer."""
    decided = _KEY + "verdict"
    if store.compare_set(_KEY + "token", "", token).decode() != token:
        return store.compare_set(decided, "", "no") == b"yes"
    if store.add(_KEY + "count", 1) == world:
        return store.compare_set(decided, "", "yes") == b"yes"
    try:
        store.wait([decided], datetime.timedelta(seconds=limit_s))
    except Exception:  # noqa: B902, stores raise different classes when time is over
        return store.compare_set(decided, "", "no") == b"yes"
    return store.get(decided) == b"yes"


class Agreement:
    """Holds what the ranks have agreed about the settings. This process asks the other ranks only once."""

    def __init__(self, settings):
        self._settings = settings
        self._reason = None

    def usable(self, framework, report):
        """Returns the framework's settings if all ranks use them; else no settings, and the report then says why."""
        settings = (self._settings or {}).get(framework, {})
        # A rank whose file cannot be used (None) asks the other ranks too, so that they need not wait for it.
        if self._settings is not None and not settings:
            return settings
        if self._reason is None:
            try:
                self._reason = self._ask()
            except Exception as error:  # noqa: B902, a private function or a store that this torch lacks
                self._reason = f"ranks could not agree: {type(error).__name__}: {error}"
        if not self._reason:
            return settings
        for name, value in settings.items():
            report.left_alone(f"{framework}.{name}", value, self._reason)
        return {}

    def _ask(self):
        """Returns why the settings cannot be used; empty if they can."""
        try:
            import torch
            import torch.distributed as distributed
        except ImportError:
            distributed = None
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return "" if os.environ.get("WORLD_SIZE", "1") == "1" else "ranks cannot agree before their process group exists"
        world = distributed.get_world_size()
        if world == 1:
            return ""
        token = token_of(self._settings, torch.__version__)
        agreed = verdict(distributed.distributed_c10d._get_default_store(), world, token)
        return "" if agreed else "not all ranks have the same settings and the same torch"
