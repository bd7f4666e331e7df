# SPDX-License-Identifier: Apache-2.0
"""Python runs this module at its start where its folder is on PYTHONPATH: `dynamiccl run --settings` puts it there.

It runs the sitecustomize that Python would have found without it, then installs the hook of dynamiccl_settings. No error
leaves this module, because the user's program must start as it would without it.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_next_sitecustomize():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    others = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _install_hook():
    try:
        import dynamiccl_settings

        dynamiccl_settings.install()
    except Exception as error:  # noqa: B902, the program must start whatever happens here
        sys.stderr.write(f"dynamiccl: the settings are left alone: {error}\n")


try:
    _run_next_sitecustomize()
finally:
    _install_hook()
