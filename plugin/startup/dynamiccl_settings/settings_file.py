# SPDX-License-Identifier: Apache-2.0
"""Reads a settings file, docs/formats/settings.md. tools/tune/framework_settings.cc reads and writes the same
format."""
import hashlib
import json
import re

VERSION = 1
_CHECKSUM = re.compile(rb'("checksum"\s*:\s*")([0-9a-f]{64})(")')
_NUMBER, _FLAG, _DEPTH, _COUNT = "a number above 0", "true or false", "a number from 0 to 8", "a whole number above 0"
_ELEMENTS = "a whole number of elements, 0 or more"
# Members that this process does not use: `dynamiccl run` reads some, people read the others.
_OTHERS = {"format", "version", "checksum", "origin", "rules", "megatron", "zero"}
# The settings of each framework, and which values a setting may have.
KNOWN = {
    "ddp": {"bucket_cap_mb": _NUMBER, "first_bucket_mb": _NUMBER, "gradient_as_bucket_view": _FLAG, "static_graph": _FLAG},
    "fsdp2": {"reshard_after_forward": _FLAG, "forward_prefetch": _DEPTH, "backward_prefetch": _DEPTH,
              "modules_per_unit": _COUNT, "shard_ranks": _COUNT},
    "deepspeed": {"reduce_bucket_size": _COUNT, "allgather_bucket_size": _COUNT, "overlap_comm": _FLAG,
                  "stage3_prefetch_bucket_size": _ELEMENTS, "stage3_param_persistence_threshold": _ELEMENTS},
}


class SettingsError(Exception):
    """The file cannot be used; the text says where and why."""


def _fits(value, kind):
    if kind == _FLAG:
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if kind in (_COUNT, _ELEMENTS):
        return isinstance(value, int) and value >= (1 if kind == _COUNT else 0)
    return value in range(9) if kind == _DEPTH else value > 0


def _checked_group(path, name, group):
    if not isinstance(group, dict):
        raise SettingsError(f"{path}: {name} is no object")
    for member, value in group.items():
        kind = KNOWN[name].get(member)
        if kind is None:
            raise SettingsError(f"{path}: {name}.{member} is not known")
        if not _fits(value, kind):
            raise SettingsError(f"{path}: {name}.{member} is not {kind}")
    return group


def _checksum_fits(data):
    """Compares the checksum with the hash of the file in which 64 zeros replace the checksum."""
    match = _CHECKSUM.search(data)
    if match is None:
        return False
    blank = data[:match.start(2)] + b"0" * 64 + data[match.end(2):]
    return hashlib.sha256(blank).hexdigest().encode() == match[2]


def parse(path, data):
    """Returns the settings of those frameworks in KNOWN that the file names. A file written by hand may lack the
    checksum."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise SettingsError(f"{path}: no JSON, or cut: {error}") from None
    if not isinstance(document, dict) or document.get("format") != "dynamiccl-settings":
        raise SettingsError(f"{path}: no settings file")
    if document.get("version") != VERSION:
        raise SettingsError(f"{path}: version {document.get('version')}, this build reads {VERSION}")
    if "checksum" in document and not _checksum_fits(data):
        raise SettingsError(f"{path}: the checksum does not fit: the file is damaged or was edited")
    unknown = sorted(set(document) - _OTHERS - set(KNOWN))
    if unknown:
        raise SettingsError(f"{path}: the member {unknown[0]} is not known")
    return {name: _checked_group(path, name, document[name]) for name in KNOWN if name in document}


def read(path):
    try:
        with open(path, "rb") as file:
            return parse(path, file.read())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
