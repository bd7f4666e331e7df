#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT by PyTorch's DDP or FSDP2 and prints how long its steps took. It is the unmodified job of the
measurements on GPUs.

  dynamiccl run -n 2 --no-hostccl -- torch_steps.py --wrap ddp --steps 200 --json steps.json

Ranks that share a GPU get an NCCL_HOSTID each, so that NCCL takes them for different hosts. They get none if
NCCL_MULTI_RANK_GPU_ENABLE is set. Without a GPU the job runs on host memory over the backend of --backend, as a
rehearsal. Rank 0 writes the milliseconds of every step. With --read-every N the host waits for the device only in every
Nth step, and the time of a step is the mean over its N steps.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrap", choices=("ddp", "fsdp2"), default="ddp")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--read-every", type=int, default=1, help="steps between two looks at the loss, which wait for the device")
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    if not 1 <= given.read_every <= given.steps:
        parser.error(f"--read-every {given.read_every} is not from 1 to --steps {given.steps}")
    return given


def take_a_device(rank, world, backend):
    """Returns the rank's device. Ranks that share a GPU get different NCCL_HOSTIDs."""
    gpus = torch.cuda.device_count()
    if gpus == 0:
        if backend == "dynamiccl":
            import dynamiccl_torch  # noqa: F401  registers the backend
        return torch.device("cpu")
    if gpus < world and "NCCL_MULTI_RANK_GPU_ENABLE" not in os.environ:
        os.environ.setdefault("NCCL_HOSTID", f"torch_steps_{rank}")
    torch.cuda.set_device(rank % gpus)
    return torch.device("cuda", rank % gpus)


class Gpt(nn.Module):
    def __init__(self, options, vocabulary=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, options.width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(options.width, max(options.width // 64, 1), 4 * options.width, dropout=0.0, batch_first=True,
                                       norm_first=True) for _ in range(options.layers))
        self.head = nn.Linear(options.width, vocabulary)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


def wrapped(model, kind, device):
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    from torch.distributed.fsdp import fully_shard
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


def train(options, model, device, rank):
    """Returns the milliseconds of each step. Each rank draws its own batches, which are the same in every run."""
    generator = torch.Generator().manual_seed(rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    milliseconds, losses = [], []
    began = time.perf_counter()
    for step in range(options.steps):
        tokens = torch.randint(256, (options.batch, options.sequence + 1), generator=generator).to(device)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % options.read_every == 0:
            losses.append(loss.item())  # this waits for the device
            now = time.perf_counter()
            milliseconds += [1000 * (now - began) / options.read_every] * options.read_every
            began = now
    return milliseconds, losses


def main():
    options = arguments()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = take_a_device(rank, world, options.backend)
    dist.init_process_group(options.backend)
    torch.manual_seed(7)
    model = wrapped(Gpt(options).to(device=device, dtype=torch.bfloat16), options.wrap, device)
    milliseconds, losses = train(options, model, device, rank)
    if rank == 0:
        settled = milliseconds[min(20, options.steps // 2):]
        print(f"{options.wrap}, {world} ranks on {device}: {statistics.median(settled):.2f} ms a step (median of {len(settled)}), last 50 "
              f"{statistics.median(milliseconds[-50:]):.2f}, loss {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"milliseconds": milliseconds, "losses": losses}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
