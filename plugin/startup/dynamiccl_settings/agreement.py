# SPDX-License-Identifier: Apache-2.0
"""All ranks use a settings file, or none does: buckets or gathers that differ between ranks make a job stand still.

The first construction that settings could change asks. Each rank counts itself under its token, which is the hash of the
settings and of torch's version, in the store of the default process group. The rank that completes the count writes the
verdict "yes". A rank with another token, or one that has waited long enough, writes "no". The store's compare_set lets only
the first verdict stand, and every rank uses that one.
"""
import datetime
import hashlib
import json
import os

_KEY = "dynamiccl/settings/"
# Ranks load their models before they construct, which may take minutes less on one than on another.
LIMIT_S = 120


def token_of(settings, torch_version):
    """The same text on ranks that would apply the same. `settings` is None where the file could not be used."""
    return hashlib.sha256(json.dumps([settings, torch_version], sort_keys=True).encode()).hexdigest()


def verdict(store, world, token, limit_s=LIMIT_S):
    """True where all `world` ranks have come with this token. Equal on all ranks that ask."""
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
    """The agreement of this process, asked for once."""

    def __init__(self, settings):
        self._settings = settings
        self._reason = None

    def usable(self, framework, report):
        """The framework's settings where all ranks use them, else none; the report then says why."""
        settings = (self._settings or {}).get(framework, {})
        # A rank whose file cannot be used asks too, so that the others need not wait for it.
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
        """Why the settings cannot be used; empty: they can."""
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
