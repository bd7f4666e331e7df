# SPDX-License-Identifier: Apache-2.0
"""Connects the settings with the modules of torch that they belong to."""
from dynamiccl_settings import ddp, deepspeed, fsdp2, settings_file, steps
from dynamiccl_settings.agreement import Agreement
from dynamiccl_settings.report import Report, say


class TorchSettings:
    """The settings and the report of this process. If the settings file cannot be used, a line on standard error names
    the file when torch is imported, and no setting is applied."""

    def __init__(self, settings_path, report_pattern):
        self._path = settings_path
        self._agreement = None
        self.report = Report(report_pattern)

    def actions(self):
        """Returns the functions for after_import.install. FSDP2 has two module names here: the first is that of torch
        2.4 and 2.5."""
        named = {"torch.nn.parallel.distributed": lambda module: ddp.apply(module, self.usable("ddp"), self.report),
                 "deepspeed": lambda module: deepspeed.apply(module, self.usable("deepspeed"), self.report),
                 # torch.compile must not trace and compile the hook's own functions.
                 "torch._dynamo.trace_rules": lambda module: module.add("dynamiccl_settings"),
                 "torch.distributed._composable.fsdp.fully_shard": self._fsdp2,
                 "torch.distributed.fsdp._fully_shard._fully_shard": self._fsdp2}
        if self.report.wanted:
            named["torch.optim.optimizer"] = steps.mark
        return {name: self._guarded(action) for name, action in named.items()}

    def usable(self, framework):
        """Returns a function that returns the framework's settings. It is called when the program first constructs an
        object, because ranks can agree only then. The file is read now, so that a bad file is reported when torch is
        imported."""
        if not self._path:
            return dict
        if self._agreement is None:
            self._agreement = Agreement(self._read())
            self.report.write()
        return lambda: self._agreement.usable(framework, self.report)

    def _fsdp2(self, module):
        fsdp2.apply(module, self.usable("fsdp2"), self.report)

    def _read(self):
        """Returns the settings; None if the file cannot be used."""
        try:
            return settings_file.read(self._path)
        except settings_file.SettingsError as error:
            say(f"no setting is applied: {error}")
            self.report.content["error"] = str(error)
            return None

    @staticmethod
    def _guarded(action):
        """Returns `action` with its errors turned into a line on standard error, so that the program's import of torch
        succeeds."""

        def run(module):
            try:
                action(module)
            except Exception as error:  # noqa: B902
                say(f"{module.__name__} is left alone: {type(error).__name__}: {error}")

        return run
