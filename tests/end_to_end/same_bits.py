#!/usr/bin/env python3
"""Whether two builds answer with the same bits.

Usage: same_bits.py OLD_BIN NEW_BIN [MODEL_DIRECTORY...]

OLD_BIN and NEW_BIN are folders with a txl-server each. Every model (without
arguments: all of tests/golden and models/shakespeare) is served by both in each
arithmetic of VARIANTS. Four sampled sessions at once, each of two turns, and a
score are compared field by field: ids, texts, log-probabilities as they are on
the wire, alternatives, reasons. Prints one line per model and exits 1 when one
differs.
"""

import concurrent.futures
import contextlib
import pathlib
import subprocess
import sys

import grpc

from reflection_client import Api

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANTS = {
    "f32": [],
    "absorbed": ["--form", "absorbed"],
    "int8": ["--weights", "int8", "--derived", "f16"],
    "torch": ["--step", "torch"],
}
# LibTorch's step promises the same ids, not the same bits, in any company.
ALONE = {"torch"}
SAMPLINGS = [
    {"temperature": 0},
    {"temperature": 1.0, "seed": "7"},
    {"temperature": 0.9, "seed": "8", "topK": 40, "topP": 0.95},
    {"temperature": 1.2, "seed": "9", "repetitionPenalty": 1.1, "minP": 0.01},
]


@contextlib.contextmanager
def serving(folder, model, flags):
    """The Api of a server of that folder's build."""
    process = subprocess.Popen(
        [str(pathlib.Path(folder) / "txl-server"), "--model", str(model),
         "--listen", "127.0.0.1:0", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), f"{folder} {model}: {line!r}"
        yield Api(line.removeprefix("listening on ").strip())
    finally:
        process.terminate()
        process.wait(timeout=60)


def turn(api, session, prompt, sampling):
    """The turn's events without what differs by time or by machine."""
    request = {"sessionId": session, "sampling": sampling,
               "stop": {"maxTokens": 40, "ignoreEndToken": True},
               "output": {"logprobs": 3}}
    if prompt:
        request["tokens"] = {"ids": prompt}
    events = api.call("txl.v1.GenerationService/Generate", request)
    said = [event["token"] for event in events if "token" in event]
    finished = events[-1]["finished"]
    return said, finished.get("reason"), finished.get("text")


def conversation(api, index, sampling, prompt):
    """Two turns of a session of its own; the second goes on unprompted."""
    session = f"bits-{index}"
    api.call("txl.v1.SessionService/CreateSession", {"sessionId": session})
    return [turn(api, session, prompt, sampling),
            turn(api, session, None, sampling)]


def answers(folder, model, variant):
    """What a build says; the message of its refusal where it refuses."""
    with serving(folder, model, VARIANTS[variant]) as api:
        limits = api.call("txl.v1.ModelService/GetModel", {})
        size = int(limits["vocabularySize"])
        prompts = [[(3 * i * i + 7 * i + k) % size for i in range(5 + 29 * k)]
                   for k in range(len(SAMPLINGS))]
        workers = 1 if variant in ALONE else len(SAMPLINGS)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            turns = list(pool.map(
                lambda k: conversation(api, k, SAMPLINGS[k], prompts[k]),
                range(len(SAMPLINGS))))
        try:
            score = api.call("txl.v1.GenerationService/Score",
                             {"tokens": {"ids": prompts[-1]}, "logprobs": 2})
        except grpc.RpcError as error:
            score = error.code().name
    return turns, score


def main():
    old, new = sys.argv[1:3]
    models = [pathlib.Path(p) for p in sys.argv[3:]] or [
        *sorted(p.parent for p in ROOT.glob("tests/golden/*/config.json")),
        ROOT / "models/shakespeare"]
    different = 0
    for model in models:
        said = []
        for variant in VARIANTS:
            same = answers(old, model, variant) == answers(new, model, variant)
            different += not same
            said.append(f"{variant} {'same' if same else 'DIFFERENT'}")
        print(f"{model.name:24} {', '.join(said)}", flush=True)
    print(f"{len(models)} models, {different} differences")
    return 1 if different or not models else 0


if __name__ == "__main__":
    sys.exit(main())
