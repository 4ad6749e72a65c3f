"""Golden losses of training on and of dynamic evaluation, from original code.

Trains and evaluates golden checkpoints (tests/golden) with the PyTorch classes
that made them and torch.optim.Adam, and writes losses.json beside this file.
Dynamic evaluation follows tf/dynamic_eval_opt.py and tf/dynamiceval_tf.py of
https://github.com/benkrause/dynamiceval-transformer, for these classes.

Needs torch, transformers 4.35.2, and a checkout of
https://github.com/kimiyoung/transformer-xl (44781ed), whose pytorch folder is
the argument:

  python make_golden.py transformer-xl/pytorch ../../../golden
"""

import json
import math
import pathlib
import sys

import torch

STEPS, STREAMS, SEGMENT = 50, 2, 16
PEAK, WARMUP, FINAL_SHARE = 2e-3, 10, 0.1
CLIP, BETAS, EPSILON = 0.25, (0.9, 0.999), 1e-8
DYNAMIC = {  # larger steps than the authors' defaults, so that they show
    "sgd": dict(lr=1e-2),
    "rms": dict(lr=4e-4, decay=2e-2, epsilon=1e-3),
}


class Kimi:
    """The original code's model; time first, no memory at first."""

    def __init__(self, folder, config):
        self.model = torch.load(folder / "native/model.pt", weights_only=False)
        self.model.eval()  # no dropout
        self.model.mem_len = config["mem_len"]
        self.model.ext_len = 0
        self.model.same_length = config["window"] is not None
        self.model.clamp_len = config["clamp_len"]

    def tables(self):
        return list(self.model.word_emb.emb_layers.parameters())

    def memory(self, streams):
        return ()

    def losses(self, inputs, targets, memory):
        out = self.model(inputs.t().contiguous(),
                         targets.t().contiguous(), *memory)
        return out[0].t(), tuple(out[1:])


class HuggingFace:
    """TransfoXLLMHeadModel; batch first, memory of zeros at first."""

    def __init__(self, folder, config):
        from transformers import TransfoXLConfig, TransfoXLLMHeadModel

        settings = json.loads((folder / "native/config.json").read_text())
        self.model = TransfoXLLMHeadModel(TransfoXLConfig(**settings))
        state = torch.load(folder / "native/pytorch_model.bin")
        self.model.load_state_dict(state, strict=False)
        self.model.tie_weights()
        self.model.eval()

    def tables(self):
        return list(self.model.transformer.word_emb.emb_layers.parameters())

    def memory(self, streams):
        return None

    def losses(self, inputs, targets, memory):
        out = self.model.transformer(inputs, mems=memory)
        # Its criterion drops the last hidden state and the first label.
        hidden = torch.cat([out.last_hidden_state,
                            out.last_hidden_state[:, -1:]], 1)
        labels = torch.cat([targets[:, :1], targets], 1)
        losses = self.model.crit(hidden, labels)
        return losses.view(targets.shape), out.mems


CASES = {
    "kimi-adaptive-div1": Kimi,
    "kimi-adaptive-div2": Kimi,
    "kimi-prelnorm": Kimi,
    "kimi-samelength-clamp": Kimi,
    "kimi-shaw": Kimi,
    "hf-adaptive": HuggingFace,
}


def text(vocab_size):
    """Ids with some structure, all clusters in every segment."""
    generator = torch.Generator().manual_seed(vocab_size)
    count = STREAMS * STEPS * SEGMENT + 1
    noise = torch.randint(vocab_size, (count,), generator=generator)
    ids = [0]
    for t in range(1, count):
        guessable = int(noise[t]) % 3 == 0
        ids.append((ids[-1] * 7 + 3) % vocab_size if guessable
                   else int(noise[t]))
    return ids


def batches(ids, streams, segment):
    """As the original iterator: equal streams, the rest dropped."""
    length = len(ids) // streams
    rows = torch.tensor(ids[:streams * length]).view(streams, length)
    for at in range(0, length - 1, segment):
        end = min(at + segment, length - 1)
        yield rows[:, at:end], rows[:, at + 1:end + 1]


def learning_rate(step):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    progress = (step - WARMUP) / (STEPS - WARMUP)
    return PEAK * (FINAL_SHARE + (1 - FINAL_SHARE) *
                   (1 + math.cos(math.pi * progress)) / 2)


def train(net, ids):
    parameters = list(net.model.parameters())
    adam = torch.optim.Adam(parameters, betas=BETAS, eps=EPSILON)
    # Streams of training share their border tokens.
    length = (len(ids) - 1) // STREAMS
    whole = torch.tensor(ids)
    curve, memory = [], net.memory(STREAMS)
    for step in range(STEPS):
        begin = [s * length + step * SEGMENT for s in range(STREAMS)]
        inputs = torch.stack([whole[b:b + SEGMENT] for b in begin])
        targets = torch.stack([whole[b + 1:b + SEGMENT + 1] for b in begin])
        net.model.zero_grad(set_to_none=False)
        losses, memory = net.losses(inputs, targets, memory)
        loss = losses.mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        for group in adam.param_groups:
            group["lr"] = learning_rate(step)
        adam.step()
        curve.append(loss.item())
    return curve


def gradients(net, inputs, targets, memory):
    net.model.zero_grad(set_to_none=False)
    losses, memory = net.losses(inputs, targets, memory)
    losses.mean().backward()
    return losses, memory


def dynamic(net, kind, ids, statistics, lr, decay=0.0, epsilon=0.0):
    """Mean nats per token. TensorFlow's gradient of a table that is looked up
    is sparse, and _apply_sparse_duplicate_indices makes plain steps of it."""
    parameters = list(net.model.parameters())
    tables = {id(table) for table in net.tables()}
    squares = {id(p): torch.zeros_like(p) for p in parameters}
    moved = {id(p): torch.zeros_like(p) for p in parameters}
    if kind == "rms":
        memory = net.memory(STREAMS)
        for inputs, targets in batches(statistics, STREAMS, SEGMENT):
            _, memory = gradients(net, inputs, targets, memory)
            for p in parameters:
                if p.grad is not None:
                    squares[id(p)] += p.grad * p.grad
    total, count, memory = 0.0, 0, net.memory(STREAMS)
    for inputs, targets in batches(ids, STREAMS, SEGMENT):
        losses, memory = gradients(net, inputs, targets, memory)
        total += losses.sum().item()
        count += targets.numel()
        with torch.no_grad():
            for p in parameters:
                if p.grad is None:
                    continue
                update = lr * p.grad
                if kind == "rms" and id(p) not in tables:
                    rms = squares[id(p)].sqrt()
                    update = (lr / (rms + epsilon) * p.grad +
                              decay * rms * moved[id(p)])
                p -= update
                moved[id(p)] -= update
    return total / count


def main():
    sys.path += [sys.argv[1], sys.argv[1] + "/utils"]
    golden = pathlib.Path(sys.argv[2])
    # The code is of PyTorch 1: masks of bytes, and a version of CUDA.
    torch.Tensor.byte = torch.Tensor.bool
    torch.version.cuda = torch.version.cuda or "10.0"
    result = {
        "streams": STREAMS, "segment": SEGMENT, "peak": PEAK, "warmup": WARMUP,
        "final_share": FINAL_SHARE, "clip": CLIP, "beta2": BETAS[1],
        "dynamic": DYNAMIC, "cases": {},
    }
    for name, make in CASES.items():
        folder = golden / name
        config = json.loads((folder / "config.json").read_text())
        ids = text(config["vocab_size"])
        # The second half has other transitions than the statistics' half.
        half = len(ids) // 2
        evaluated = ids[half:half + 500]
        case = {"ids": ids, "losses": train(make(folder, config), ids),
                "static": dynamic(make(folder, config), "sgd", evaluated,
                                  [], lr=0)}
        for kind, settings in DYNAMIC.items():
            case[kind] = dynamic(make(folder, config), kind, evaluated,
                                 ids[:half], **settings)
        result["cases"][name] = case
        print(name, case["losses"][0], case["losses"][-1], case["static"],
              case["sgd"], case["rms"])
    out = pathlib.Path(__file__).with_name("losses.json")
    out.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
