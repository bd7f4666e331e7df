#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a pickled dump of PyTorch's flight recorder into the JSON that `dynamiccl trace import` reads.

usage: flight_recorder_to_json.py nccl_trace_rank_3 > trace_rank_3.json

Needs no PyTorch: such dumps hold plain values only. Anything else in the file is refused, since unpickling it would run
code.
"""
import json
import pickle
import sys


class PlainValues(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}: a dump holds plain values only")


if __name__ == "__main__":
    try:
        with open(sys.argv[1], "rb") as file:
            json.dump(PlainValues(file).load(), sys.stdout)
    except (IndexError, OSError, EOFError, ValueError, TypeError, KeyError, pickle.UnpicklingError) as error:
        sys.exit(f"{' '.join(sys.argv)}: {type(error).__name__}: {error}")
