# SPDX-License-Identifier: Apache-2.0
"""Connects the settings with the modules of torch that they belong to."""
from dynamiccl_settings import ddp, fsdp2, settings_file, steps
from dynamiccl_settings.report import Report, say


class TorchSettings:
    """The settings and the report of this process. A file that cannot be used is named on standard error when torch is
    imported, and nothing is applied."""

    def __init__(self, settings_path, report_pattern):
        self._path = settings_path
        self._settings = None
        self.report = Report(report_pattern)

    def actions(self):
        """Functions for after_import.install. FSDP2 has moved once: the first name is of torch 2.4 and 2.5."""
        named = {"torch.nn.parallel.distributed": lambda module: ddp.apply(module, self.of("ddp"), self.report),
                 "torch.distributed._composable.fsdp.fully_shard": self._fsdp2,
                 "torch.distributed.fsdp._fully_shard._fully_shard": self._fsdp2}
        if self.report.wanted:
            named["torch.optim.optimizer"] = steps.mark
        return {name: self._guarded(action) for name, action in named.items()}

    def of(self, framework):
        if self._settings is None:
            self._settings = self._read()
            self.report.write()
        return self._settings.get(framework, {})

    def _fsdp2(self, module):
        fsdp2.apply(module, self.of("fsdp2"), self.report)

    def _read(self):
        if not self._path:
            return {}
        try:
            return settings_file.read(self._path)
        except settings_file.SettingsError as error:
            say(f"no setting is applied: {error}")
            self.report.content["error"] = str(error)
            return {}

    @staticmethod
    def _guarded(action):
        """The import of the program's own framework must not fail because of us."""

        def run(module):
            try:
                action(module)
            except Exception as error:  # noqa: B902
                say(f"{module.__name__} is left alone: {type(error).__name__}: {error}")

        return run
