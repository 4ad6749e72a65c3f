"""Decode speed of Hugging Face's TransfoXL: random weights, full memory.

Runs in the virtual environment that peers.py makes. Prints a JSON line for
each batch size.

  transfoxl.py SHAPE.json SESSIONS SECONDS THREADS
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from transformers import TransfoXLConfig, TransfoXLLMHeadModel  # noqa: E402

MIN_STEPS = 3


def make_model(spec):
    """The same shape as ours; the model's own options where it has them."""
    clamp = spec.get("clamp_len")
    config = TransfoXLConfig(
        vocab_size=spec["vocab_size"], cutoffs=spec.get("cutoffs", []),
        d_model=spec["d_model"], d_embed=spec["d_embed"],
        n_head=spec["n_head"], d_head=spec["d_head"],
        d_inner=spec["d_inner"], n_layer=spec["n_layer"],
        mem_len=spec["mem_len"], clamp_len=-1 if clamp is None else clamp,
        div_val=spec.get("div_val", 1), adaptive=True, same_length=True,
        attn_type=0, untie_r=True, proj_share_all_but_first=True)
    return TransfoXLLMHeadModel(config).eval()


@torch.no_grad()
def tokens_per_second(model, spec, sessions, seconds):
    shape = (spec["mem_len"], sessions, spec["d_model"])
    memory = [torch.randn(shape) for _ in range(spec["n_layer"])]
    token = torch.randint(0, spec["vocab_size"], (sessions, 1))

    def step(token, memory):
        result = model(token, mems=memory)
        scores = result.prediction_scores[:, -1]
        return scores.argmax(-1, keepdim=True), result.mems

    token, memory = step(token, memory)  # not measured
    steps, begin = 0, time.perf_counter()
    while steps < MIN_STEPS or time.perf_counter() - begin < seconds:
        token, memory = step(token, memory)
        steps += 1
    return steps * sessions / (time.perf_counter() - begin)


def main():
    path, sessions, seconds, threads = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(int(threads))
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    model = make_model(spec)
    for count in map(int, sessions.split(",")):
        rate = tokens_per_second(model, spec, count, float(seconds))
        print(json.dumps({"sessions": count, "tokens_per_second": rate}),
              flush=True)


if __name__ == "__main__":
    main()
