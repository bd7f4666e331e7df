# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own example of DDP, on CPU. Only its command line may name DynamICCL, as the backend."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="gloo")
backend = parser.parse_args().backend
dist.init_process_group(backend)
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(1 + dist.get_rank())
for step in range(5):
    inputs, labels = torch.randn(32, 256), torch.randint(10, (32,))
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"loss {step} {loss.item():.9f}", flush=True)
dist.destroy_process_group()
