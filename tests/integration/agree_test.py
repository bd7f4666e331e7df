#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests dynamiccl.agree in jobs of two ranks over hostccl, which is called by ctypes.

Both ranks must read the same in each step. Without the object, or in mode off, each must read its own numbers.

  agree_test.py PRELOAD HOSTCCL_FOLDER      the test
  agree_test.py --rank RANK FOLDER          one rank of a job
"""
import ctypes
import json
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STEPS = 400


class Index:
    """A number like those of NumPy: it is no int but has __index__."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


def unique_id(nccl, rank, folder):
    """Rank 0 makes the id and publishes it in a file; the other rank waits for the file."""
    made = UniqueId()
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(made)) == 0
        (folder / "id.new").write_bytes(bytes(made.bytes))
        (folder / "id.new").rename(folder / "id")
    while not (folder / "id").exists():
        time.sleep(0.002)
    return UniqueId.from_buffer_copy((folder / "id").read_bytes())


def run_rank(rank, folder):
    import dynamiccl.agree

    ctypes.CDLL("libnccl.so.2", mode=ctypes.RTLD_GLOBAL)
    nccl = ctypes.CDLL(None)
    comm, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert dynamiccl.agree.value("bucket", 4) == 4 and not dynamiccl.agree.propose("bucket", 9), "no communicator yet"
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, unique_id(nccl, rank, folder), rank) == 0
    assert nccl.hostcclStreamCreate(ctypes.byref(stream)) == 0
    read = []
    for step in range(STEPS):
        read.append((dynamiccl.agree.value("bucket", 4), dynamiccl.agree.value("bucket", 4, comm.value)))
        if rank == 1 and step == 20:
            read.append(dynamiccl.agree.propose("bucket", 9))
        if rank == 0 and step == 21:
            dynamiccl.agree.propose("a name with blanks", 1)
            # Cut to 64 bits, this number would be 7.
            assert not dynamiccl.agree.propose("bucket", 2**64 + 7) and not dynamiccl.agree.propose("bucket", 7.5)
        # A number that cannot be sent stays the program's own. A number that counts as an int is read as one.
        assert dynamiccl.agree.value("share", 0.25) == 0.25 and dynamiccl.agree.value("wide", 2**64 + 7) == 2**64 + 7
        assert operator.index(dynamiccl.agree.value("bucket", Index(4))) in (4, 9)
        number = (ctypes.c_float * 1)(1.0)
        assert nccl.ncclAllReduce(number, number, ctypes.c_size_t(1), 7, 0, comm, stream) == 0
        assert nccl.hostcclStreamSynchronize(stream) == 0 and number[0] == 2.0
    assert nccl.ncclCommDestroy(comm) == 0
    (folder / f"read.{rank}").write_text(json.dumps(read))


class Agree(unittest.TestCase):
    def run_job(self, **settings):
        """Returns the pairs that each rank read, and what propose() returned on rank 1."""
        with tempfile.TemporaryDirectory() as folder:
            ranks = []
            for rank in range(2):
                environment = {name: value for name, value in os.environ.items() if not name.startswith(("DYNAMICCL_", "NCCL_"))}
                environment.update(RANK=str(rank), WORLD_SIZE="2", LD_LIBRARY_PATH=HOSTCCL, PYTHONPATH=str(ROOT / "packaging/python"),
                                   DYNAMICCL_CONTROL_ADDRESS="127.0.0.1", DYNAMICCL_ATTEST_TIMEOUT_MS="60000", DYNAMICCL_TIMES="0",
                                   **settings)
                ranks.append(subprocess.Popen([sys.executable, "-B", __file__, "--rank", str(rank), folder], env=environment))
            self.assertEqual([rank.wait(timeout=100) for rank in ranks], [0, 0])
            read = [json.loads((pathlib.Path(folder) / f"read.{rank}").read_text()) for rank in range(2)]
        proposed = read[1].pop(21)
        return read, proposed

    def test_both_ranks_read_the_same(self):
        read, proposed = self.run_job(LD_PRELOAD=PRELOAD, DYNAMICCL_MODE="adaptive")
        self.assertTrue(proposed)
        self.assertEqual(read[0], read[1])
        self.assertEqual({tuple(pair) for pair in read[0]}, {(4, 4), (9, 9)})

    def test_without_the_object_or_the_mode_the_own_number_stays(self):
        for settings in ({}, {"LD_PRELOAD": PRELOAD, "DYNAMICCL_MODE": "off"}):
            read, proposed = self.run_job(**settings)
            self.assertFalse(proposed)
            self.assertEqual(read, [[[4, 4]] * STEPS] * 2)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        run_rank(int(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        PRELOAD, HOSTCCL = sys.argv[1:3]
        unittest.main(argv=sys.argv[:1])
