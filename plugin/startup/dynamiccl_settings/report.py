# SPDX-License-Identifier: Apache-2.0
"""The report of one process: what the hook applied, and what the framework then had. tools/tune/hook_report.h
reads it."""
import json
import os
import socket
import sys


def say(text):
    """Writes one line on standard error."""
    sys.stderr.write(f"dynamiccl: {text}\n")


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
        rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID", ""))
        path = self._pattern.replace("%h", socket.gethostname()).replace("%p", str(os.getpid())).replace("%r", rank)
        self.content.update(process_id=os.getpid(), rank=int(rank) if rank.isdigit() else -1)
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(self.content, file, indent=1)
            os.replace(path + ".new", path)
        except OSError as error:
            say(f"the report of the settings cannot be written: {path}: {error.strerror}")
            self._pattern = ""
