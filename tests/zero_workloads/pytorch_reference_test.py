# SPDX-License-Identifier: Apache-2.0
"""Compares runs of dynamiccl-zero with the same run in Python's PyTorch, in one process.

PyTorch begins with the weights of a dynamiccl-zero checkpoint and uses the same batches, but its own layers, AdamW and
clipping. The losses of all steps and the last weights must agree."""
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

import torch
from torch.nn import functional

ZERO = os.environ["TEST_ZERO_PROGRAM"]
DYNAMICCL = os.environ["TEST_DYNAMICCL"]
TEXT = pathlib.Path(os.environ["TEST_TEXT"])

LAYERS, HIDDEN, HEADS, SEQUENCE, BATCH, STEPS = 2, 64, 4, 32, 8, 20
LEARNING_RATE, WARMUP, SEED = 3e-3, 5, 11
MODEL = [f"--layers={LAYERS}", f"--hidden={HIDDEN}", f"--heads={HEADS}", f"--sequence={SEQUENCE}", f"--batch={BATCH}",
         f"--seed={SEED}", f"--data={TEXT}"]


def philox(seed, subsequence, offset):
    """Returns the first two numbers of Philox4x32-10 (Salmon et al., SC 2011), with the counter of at::Philox4_32."""
    mask = 0xFFFFFFFF
    counter = [offset & mask, offset >> 32, subsequence & mask, subsequence >> 32]
    key = [seed & mask, seed >> 32]
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & mask, (first >> 32) ^ counter[3] ^ key[1], first & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter[0], counter[1]


def training_batch(text, number):
    """Returns tokens and targets in the order of docs/zero_trainer.md: Philox number i decides where row i begins."""
    rows = []
    for sample in range(number * BATCH, (number + 1) * BATCH):
        high, low = philox(SEED, 0, sample)
        begin = ((high << 32) | low) % (len(text) - SEQUENCE)
        rows.append(list(text[begin:begin + SEQUENCE + 1]))
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:]


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + length + begin:8 + length + end]), dtype=torch.float32)
        tensors[name] = flat.view(entry["shape"]).clone()
    return tensors


def gpt_loss(w, tokens, targets):
    def linear(x, name):
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x, name):
        return functional.layer_norm(x, (HIDDEN,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    x = w["root.token_embedding.weight"][tokens] + w["root.position_embedding.weight"][:SEQUENCE]
    for layer in range(LAYERS):
        block = f"block.{layer}"
        qkv = linear(norm(x, f"{block}.attention_norm"), f"{block}.attention.query_key_value")
        q, k, v = (part.view(BATCH, SEQUENCE, HEADS, HIDDEN // HEADS).transpose(1, 2) for part in qkv.split(HIDDEN, dim=2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + linear(mixed, f"{block}.attention.project")
        expanded = functional.gelu(linear(norm(x, f"{block}.feed_forward_norm"), f"{block}.feed_forward.expand"),
                                   approximate="tanh")
        x = x + linear(expanded, f"{block}.feed_forward.contract")
    logits = linear(norm(x, "root.last_norm"), "root.head")
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def learning_rate(step):
    """Linear warm-up, then half a cosine down to a tenth."""
    if step < WARMUP:
        return LEARNING_RATE * (step + 1) / WARMUP
    progress = (step - WARMUP) / (STEPS - WARMUP)
    return LEARNING_RATE * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * progress)))


def train_in_pytorch(weights, text):
    torch.set_num_threads(1)
    parameters = {name: tensor.requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.AdamW(parameters.values(), betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    losses = []
    for step in range(STEPS):
        loss = gpt_loss(parameters, *training_batch(text, step))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        optimizer.param_groups[0]["lr"] = learning_rate(step)
        optimizer.step()
        losses.append(loss.item())
    return losses, parameters


class PytorchReference(unittest.TestCase):
    def run_zero(self, folder, ranks, *arguments):
        """Returns the losses, and the weights after the last step."""
        states = folder / f"states.{ranks}.{len(list(folder.iterdir()))}"
        report, export = states.with_suffix(".json"), states.with_suffix(".safetensors")
        subprocess.run([DYNAMICCL, "run", "-n", str(ranks), "--", ZERO, "train", *MODEL, *arguments, f"--json={report}",
                        f"--checkpoint-dir={states}"], check=True, stdout=subprocess.DEVNULL, timeout=300)
        subprocess.run([ZERO, "checkpoint", "export", str(states), str(export)], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line], read_safetensors(export)

    def test_losses_and_weights_agree(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            # A step with learning rate 0 changes nothing, so the weights are the first ones.
            _, first = self.run_zero(folder, 1, "--steps=1", "--learning-rate=0")
            # The last 5 % of the text are held out.
            text = TEXT.read_bytes()
            text = text[:len(text) - len(text) // 20]
            losses, weights = train_in_pytorch(first, text)
            for ranks, stage in ((1, 0), (2, 1), (2, 3), (4, 2)):
                ours, ours_last = self.run_zero(folder, ranks, f"--stage={stage}", f"--steps={STEPS}", f"--warmup={WARMUP}",
                                                f"--learning-rate={LEARNING_RATE}")
                worst = max(abs(one - other) for one, other in zip(losses, ours, strict=True))
                apart = max((weights[name] - ours_last[name]).abs().max().item() for name in weights)
                print(f"{ranks} rank(s), stage {stage}: losses at most {worst:.1e} apart, weights {apart:.1e}", flush=True)
                self.assertLess(worst, 1e-5)
                # For comparison: after 30 steps, PyTorch's DDP on 4 ranks and on 1 rank differ by 1.2e-5.
                self.assertLess(apart, 5e-5)


if __name__ == "__main__":
    unittest.main()
