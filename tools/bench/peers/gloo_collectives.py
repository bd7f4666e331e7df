# SPDX-License-Identifier: Apache-2.0
"""One rank of torch.distributed's Gloo, which `dynamiccl bench --against` times beside hostccl. It does the same as
mpi_collectives.c. Usage: gloo_collectives.py SOCKET core|none, with torchrun's variables for rank and rendezvous."""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

TYPES = {"float": torch.float32, "double": torch.float64, "int8": torch.int8, "uint8": torch.uint8,
         "int32": torch.int32, "int64": torch.int64, "half": torch.float16, "bfloat16": torch.bfloat16}
OPS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}


def parts(tensor, n):
    return list(tensor.chunk(n))


class Rank:
    def __init__(self):
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.issue = None

    def set_up(self, collective, type_name, op_name, count, send_bytes, receive_bytes):
        if type_name not in TYPES:
            raise ValueError("Gloo has no such type")
        if op_name not in OPS:
            raise ValueError("Gloo has no such operator")
        width = torch.empty(0, dtype=TYPES[type_name]).element_size()
        send = torch.ones(int(send_bytes) // width, dtype=TYPES[type_name])
        receive = torch.ones(int(receive_bytes) // width, dtype=TYPES[type_name])
        calls = self.calls(send, receive, OPS[op_name])
        if collective not in calls:
            raise ValueError("Gloo has no such collective")
        self.issue = calls[collective]
        self.issue()

    def calls(self, send, receive, op):
        at_root = self.rank == 0
        calls = {"all_reduce": lambda: dist.all_reduce(receive, op),
                 "all_gather": lambda: dist.all_gather_into_tensor(receive, send),
                 "reduce_scatter": lambda: dist.reduce_scatter_tensor(receive, send, op),
                 "broadcast": lambda: dist.broadcast(receive, 0),
                 "reduce": lambda: dist.reduce(receive, 0, op),
                 "alltoall": lambda: dist.all_to_all_single(receive, send)}
        into = parts(receive, self.n) if at_root else None
        out_of = parts(send, self.n) if at_root else None
        calls["gather"] = lambda: dist.gather(send, into, 0)
        calls["scatter"] = lambda: dist.scatter(receive, out_of, 0)
        return calls

    def time_calls(self, iterations, warmups, singles):
        for _ in range(int(warmups)):
            self.issue()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(int(iterations)):
            self.issue()
        mean = torch.tensor([(time.perf_counter() - begin) * 1e6 / int(iterations)], dtype=torch.float64)
        dist.all_reduce(mean, dist.ReduceOp.MAX)
        times = torch.zeros(max(int(singles), 1), dtype=torch.float64)
        dist.barrier()
        for i in range(int(singles)):
            start = time.perf_counter()
            self.issue()
            times[i] = (time.perf_counter() - start) * 1e6
        dist.all_reduce(times, dist.ReduceOp.MAX)
        ordered = times.sort().values
        last = len(ordered) - 1
        return f"times {mean.item():.4f} {ordered[last // 2].item():.4f} {ordered[int(last * 0.99)].item():.4f}"


def obey(rank, line):
    word, *values = line.split()
    try:
        if word == "setup":
            rank.set_up(*values)
            return "ok"
        if word == "time":
            return rank.time_calls(*values)
        return "error unknown word"
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return "error " + str(error).split("\n")[0]


def main():
    path, binding = sys.argv[1:]
    number = int(os.environ["RANK"])
    if binding == "core":
        os.sched_setaffinity(0, {number % os.cpu_count()})
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    with connection.makefile("rw") as control:
        control.write(f"hello {number}\n")
        control.flush()
        rank = Rank()
        for line in control:
            if line.startswith("quit"):
                break
            control.write(obey(rank, line) + "\n")
            control.flush()
    dist.destroy_process_group()


main()
