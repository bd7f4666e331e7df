# SPDX-License-Identifier: Apache-2.0
"""Runs functions right after modules are imported for the first time, before their importer sees them."""
import sys

from dynamiccl_settings.report import say


class _Finder:
    """Finds a module with the other finders of sys.meta_path. Makes its loader run an action after the module is
    loaded."""

    def __init__(self, actions):
        self._actions = actions

    def find_spec(self, name, path=None, target=None):
        action = self._actions.get(name)
        if action is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                self._add_action(spec.loader, action)
                return spec
        return None

    @staticmethod
    def _add_action(loader, action):
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            execute(module)
            action(module)

        try:
            loader.exec_module = exec_module
        except AttributeError as error:
            say(f"a module is left alone, because its loader cannot be watched: {error}")


def install(actions):
    """`actions` maps a module's name to a function, which is called with the new module. The function must not raise.
    If a module was imported before, for example by a sitecustomize of the user, its function is called at once."""
    sys.meta_path.insert(0, _Finder(actions))
    for name, action in actions.items():
        if name in sys.modules:
            action(sys.modules[name])
