# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT with PyTorch's own DDP or FSDP2 on CPU. Except for the backend's name, it is an ordinary PyTorch script.

    PYTHONPATH=build/release/lib/python torchrun --nproc-per-node 2 train_gpt.py --parallel fsdp2 --backend dynamiccl
"""
import argparse
import json
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.fc_out = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        shape = (batch, length, self.heads, hidden // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.ln_1(x)).split(hidden, dim=2))
        attention = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(attention.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.fc_out(functional.gelu(self.fc(self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, sequence):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden)
        self.wpe = nn.Embedding(sequence, hidden)
        self.h = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="dynamiccl")
    parser.add_argument("--parallel", choices=["ddp", "fsdp2"], default="ddp")
    parser.add_argument("--bucket-mb", type=float, help="DDP's bucket_cap_mb (default: DDP's own)")
    for name, value in dict(layers=4, hidden=256, heads=4, vocabulary=8192, sequence=64, batch=2, steps=4).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradients; 0: no clipping")
    parser.add_argument("--json", help="write each rank's losses and step times here; {rank} stands for the rank")
    return parser.parse_args(arguments)


def distributed(options):
    """Makes the model and wraps it in DDP or FSDP2."""
    torch.manual_seed(0)
    model = Gpt(options.layers, options.hidden, options.heads, options.vocabulary, options.sequence)
    if options.parallel == "ddp":
        return DistributedDataParallel(model, bucket_cap_mb=options.bucket_mb)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.h:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def batch_of(options, step):
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    rows = torch.randint(options.vocabulary, (options.batch, options.sequence + 1), generator=generator)
    return rows[:, :-1], rows[:, 1:]


def train_step(model, optimizer, options, step):
    inputs, targets = batch_of(options, step)
    loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    if options.clip:
        nn.utils.clip_grad_norm_(model.parameters(), options.clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def train(options):
    """Trains and returns the loss and the seconds of each step on this rank. The process group must exist."""
    model = distributed(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    losses, seconds = [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        losses.append(train_step(model, optimizer, options, step))
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def main():
    options = parse()
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    rank = dist.get_rank()
    losses, seconds = train(options)
    if rank == 0:
        for step, (loss, second) in enumerate(zip(losses, seconds)):
            print(f"step {step}  loss {loss:.6f}  {second * 1000:.0f} ms", flush=True)
    if options.json:
        with open(options.json.format(rank=rank), "w") as file:
            json.dump({"losses": [loss.hex() for loss in losses], "seconds": seconds}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
