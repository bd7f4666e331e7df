# SPDX-License-Identifier: Apache-2.0
"""The report of one process: what the hook applied, and what the framework then had. tools/tune/hook_report.h
reads it."""
import json
import os
import socket
import sys


# These variables of launchers hold the rank. src/base/launch_variables.h has the same ones in the same order.
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
# The parts of the hook that failed. The failure of a part is reported only once.
_failed = set()


def say(text):
    """Writes one line on standard error."""
    sys.stderr.write(f"dynamiccl: {text}\n")


def quietly(part, action, *arguments):
    """Returns what the action returns. If it fails, returns None and says so once for each part of the hook: the user's
    program continues as it would without the hook."""
    try:
        return action(*arguments)
    except Exception as error:  # noqa: B902, nothing of the hook may end the user's program
        if part not in _failed:
            _failed.add(part)
            say(f"{part} failed and is left out: {type(error).__name__}: {error}")
        return None


def _rank():
    """Returns the rank that the launcher gave this process; -1: none."""
    given = next((os.environ[name] for name in _RANK_VARIABLES if os.environ.get(name)), "")
    return int(given) if given.isdigit() else -1


class Report:
    """Holds the report and writes it anew after each change. Without a pattern nothing is written."""

    def __init__(self, pattern):
        self._pattern = pattern
        self.content = {"schema": 1, "error": "", "frameworks": {}, "settings": {}}

    @property
    def wanted(self):
        return bool(self._pattern)

    def framework(self, name):
        """Returns the dictionary for what is known about a framework that the program used. The caller adds to it."""
        return self.content["frameworks"].setdefault(name, {})

    def applied(self, setting, asked, in_effect):
        self._row(setting, asked, in_effect=in_effect, reason="")

    def left_alone(self, setting, asked, reason):
        """Says once on standard error that a setting is not applied, and adds the reason to the report."""
        if self.content["settings"].get(setting, {}).get("reason") != reason:
            say(f"{setting} is left alone: {reason}")
        self._row(setting, asked, in_effect=None, reason=reason)

    def _row(self, setting, asked, **rest):
        self.content["settings"][setting] = {"asked": asked, **rest}
        self.write()

    def write(self):
        """Replaces the whole file at once, so that a reader never sees half a report. A forked process writes its own
        report if the pattern contains %p."""
        if not self._pattern:
            return
        rank = _rank()
        path = self._pattern.replace("%h", socket.gethostname()).replace("%p", str(os.getpid()))
        path = path.replace("%r", str(rank) if rank >= 0 else "")
        self.content.update(process_id=os.getpid(), rank=rank)
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                # A value that JSON does not know, such as an object of the framework, is reported by its text.
                json.dump(self.content, file, indent=1, default=str)
            os.replace(path + ".new", path)
        except (OSError, TypeError, ValueError) as error:
            say(f"the report of the settings cannot be written: {path}: {getattr(error, 'strerror', None) or error}")
            self._pattern = ""
