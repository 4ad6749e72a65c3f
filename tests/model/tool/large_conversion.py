#!/usr/bin/env python3
"""Converting takes memory for the largest tensor, not for the checkpoint.

Usage: large_conversion.py TXL_MODEL FOLDER [LAYERS]   (needs Python's torch)

Writes a random checkpoint of kimiyoung's names with LAYERS layers of 218 MB (20:
4.4 GB) into FOLDER, converts it, and compares the program's peak memory with
what it takes before it looks at a file, plus the largest tensor.
"""

import json
import os
import pathlib
import sys

import torch

D, HEADS, INNER, VOCABULARY = 2048, 16, 8192, 1000
# Beside the largest tensor: its transposed or joined copy, buffers, tables.
SLACK_BYTES = 100 << 20


def state_dict(layers):
    def random(*shape):
        return torch.randn(*shape) * 0.02

    state = {"word_emb.emb_layers.0.weight": random(VOCABULARY, D),
             "crit.out_layers.0.bias": random(VOCABULARY),
             "pos_emb.inv_freq":
                 1 / (10000 ** (torch.arange(0.0, D, 2.0) / D))}
    state["crit.out_layers.0.weight"] = state["word_emb.emb_layers.0.weight"]
    for name in ("r_w_bias", "r_r_bias"):
        state[name] = random(HEADS, D // HEADS)
    for layer in range(layers):
        attention = f"layers.{layer}.dec_attn."
        feed = f"layers.{layer}.pos_ff."
        state[attention + "qkv_net.weight"] = random(3 * D, D)
        state[attention + "r_net.weight"] = random(D, D)
        state[attention + "o_net.weight"] = random(D, D)
        state[feed + "CoreNet.0.weight"] = random(INNER, D)
        state[feed + "CoreNet.0.bias"] = random(INNER)
        state[feed + "CoreNet.3.weight"] = random(D, INNER)
        state[feed + "CoreNet.3.bias"] = random(D)
        for norm in (attention, feed):
            state[norm + "layer_norm.weight"] = torch.ones(D)
            state[norm + "layer_norm.bias"] = torch.zeros(D)
    return state


def peak(arguments):
    """Peak bytes of a run that must go well."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(arguments[0], arguments)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return usage.ru_maxrss * 1024


def main():
    tool, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "state_dict.pt"
    if not source.exists():
        torch.save(state_dict(layers), source)
    idle = peak([tool, "--help"])
    used = peak([tool, "convert", str(source), str(folder / "model")])
    bound = idle + 4 * INNER * D + SLACK_BYTES
    print(json.dumps({"checkpoint_bytes": source.stat().st_size,
                      "peak_bytes": used, "idle_bytes": idle,
                      "largest_tensor_bytes": 4 * INNER * D,
                      "bound_bytes": bound}))
    return 0 if used <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
