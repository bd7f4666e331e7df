# SPDX-License-Identifier: Apache-2.0
"""Connects the settings with the modules of torch that they belong to."""
from dynamiccl_settings import ddp, fsdp2, settings_file, steps
from dynamiccl_settings.agreement import Agreement
from dynamiccl_settings.report import Report, say


class TorchSettings:
    """The settings and the report of this process. A file that cannot be used is named on standard error when torch is
    imported, and nothing is applied."""

    def __init__(self, settings_path, report_pattern):
        self._path = settings_path
        self._agreement = None
        self.report = Report(report_pattern)

    def actions(self):
        """Functions for after_import.install. FSDP2 has moved once: the first name is of torch 2.4 and 2.5."""
        named = {"torch.nn.parallel.distributed": lambda module: ddp.apply(module, self.usable("ddp"), self.report),
                 "torch.distributed._composable.fsdp.fully_shard": self._fsdp2,
                 "torch.distributed.fsdp._fully_shard._fully_shard": self._fsdp2}
        if self.report.wanted:
            named["torch.optim.optimizer"] = steps.mark
        return {name: self._guarded(action) for name, action in named.items()}

    def usable(self, framework):
        """A function that returns the framework's settings, to be called when the program first constructs something: only
        then can ranks agree. Reads the file now, so that a bad one is named at the import."""
        if not self._path:
            return dict
        if self._agreement is None:
            self._agreement = Agreement(self._read())
            self.report.write()
        return lambda: self._agreement.usable(framework, self.report)

    def _fsdp2(self, module):
        fsdp2.apply(module, self.usable("fsdp2"), self.report)

    def _read(self):
        """The settings; None where the file cannot be used."""
        try:
            return settings_file.read(self._path)
        except settings_file.SettingsError as error:
            say(f"no setting is applied: {error}")
            self.report.content["error"] = str(error)
            return None

    @staticmethod
    def _guarded(action):
        """The import of the program's own framework must not fail because of us."""

        def run(module):
            try:
                action(module)
            except Exception as error:  # noqa: B902
                say(f"{module.__name__} is left alone: {type(error).__name__}: {error}")

        return run
