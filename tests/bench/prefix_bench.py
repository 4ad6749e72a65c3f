#!/usr/bin/env python3
"""What the prefix cache brings to clients without sessions: a server with it
beside one with --prefix-cache 0, over HTTP, in turns.

  prefix_bench.py --model DIR [--mode few-shot|preamble|together|miss|harness]
                  [--documents 40] [--choices 4] [--shots 5]
                  [--shot-tokens 120] [--question-tokens 60]
                  [--choice-tokens 8] [--preamble 2048] [--clients 8]
                  [--rounds 5] [--bin build/bin] [--json FILE]
                  [-- FLAGS OF BOTH]

few-shot  the requests of lm-evaluation-harness for a task with several choices:
          each prompt is the same shots, a question and a choice, echoed with
          log-probabilities. Documents/s, and whether all figures are the same
preamble  seconds to the first token of a second prompt behind a preamble, beside
          a turn on a fork of a session that holds the preamble
together  seconds until all of several clients with one preamble have their first
          token, beside one client alone
miss      prompts that share nothing: tokens/s and seconds to the first token of
          `txl bench`, what the cache costs
harness   lm-evaluation-harness itself, its own time included, where it is
          installed (lm-eval[api]), with a task of the form of few-shot; DIR
          needs a vocabulary of text

Every round has shots and preambles of its own, so that none is known from the
round before. Each line of the output has the medians over the rounds.
"""

import concurrent.futures
import contextlib
import copy
import http.client
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import bench_script
import front_bench

MODES = ("few-shot", "preamble", "together", "miss", "harness")
PATIENCE = 600


def parse_options(arguments):
    parser = bench_script.new_parser(__doc__)
    parser.add_argument("--mode", choices=MODES, default="few-shot")
    for name, default in (("documents", 40), ("choices", 4), ("shots", 5),
                          ("shot-tokens", 120), ("question-tokens", 60),
                          ("choice-tokens", 8), ("preamble", 2048),
                          ("clients", 8), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return bench_script.parse(parser, arguments)


class Side:
    """A server, and how it is asked."""

    def __init__(self, address, port):
        self.address = address
        self.port = port

    @contextlib.contextmanager
    def _answer(self, path, body):
        """Of a connection of its own, as the harness asks."""
        line = http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=PATIENCE)
        with contextlib.closing(line):
            line.request("POST", path, json.dumps(body),
                         {"Content-Type": "application/json"})
            answer = line.getresponse()
            if answer.status != 200:
                raise SystemExit(
                    f"{path}: {answer.status} {answer.read()[:200]}")
            yield answer

    def ask(self, path, body):
        """The JSON of the answer."""
        with self._answer(path, body) as answer:
            return json.load(answer)

    def first_token(self, **body):
        """Seconds until the first token of a stream, which is read whole."""
        request = {"max_tokens": 1, "temperature": 0, "stream": True, **body}
        begin = time.monotonic()
        with self._answer("/v1/completions", request) as answer:
            first = answer.readline()
            took = time.monotonic() - begin
            answer.read()
        if not first.startswith(b"data: {"):
            raise SystemExit(f"no token came first: {first[:200]}")
        return took


@contextlib.contextmanager
def side(options, name, flags):
    """A Side, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        port = bench_script.free_port()
        chosen = copy.copy(options)
        chosen.flags = [*options.flags, *flags, "--http-listen",
                        f"127.0.0.1:{port}"]
        address = f"unix:{folder}/{name}.sock"
        server = front_bench.start_server(chosen, address)
        try:
            yield Side(address, port)
        finally:
            server.terminate()
            server.wait()


class Ids:
    """Token ids at random, the same for the same seed."""

    def __init__(self, model, seed):
        config = pathlib.Path(model, "config.json")
        self._size = json.loads(config.read_text("utf-8"))["vocab_size"]
        self._random = random.Random(seed)

    def draw(self, count):
        return [self._random.randrange(self._size) for _ in range(count)]


def few_shot_prompts(options, ids):
    """A list of prompts for each document."""
    shots = ids.draw(options.shots * options.shot_tokens)
    return [[shots + question + ids.draw(options.choice_tokens)
             for _ in range(options.choices)]
            for question in [ids.draw(options.question_tokens)
                             for _ in range(options.documents)]]


def harness_request(prompt):
    """As local-completions asks for a loglikelihood."""
    return {"prompt": [prompt], "temperature": 0, "max_tokens": 1,
            "logprobs": 1, "seed": 1234, "echo": True}


def figures_of(answer):
    """What an answer says of the model: the same whatever was cached."""
    return [{key: choice[key] for key in ("text", "logprobs", "finish_reason")}
            for choice in answer["choices"]]


def score_documents(who, documents):
    """(documents/s, the figures of all answers, share of cached tokens)"""
    begin = time.monotonic()
    answers = [who.ask("/v1/completions", harness_request(prompt))
               for prompts in documents for prompt in prompts]
    seconds = time.monotonic() - begin
    usages = [answer["usage"] for answer in answers]
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"]
                 for usage in usages)
    return (len(documents) / seconds, [figures_of(each) for each in answers],
            cached / sum(usage["prompt_tokens"] for usage in usages))


def in_turns(rounds, off, on, measure):
    """What measure(side, round) gives of the first and of the second, for every
    round; who goes first takes turns."""
    pairs = []
    for number in range(rounds):
        order = (off, on) if number % 2 == 0 else (on, off)
        pair = [measure(who, number) for who in order]
        pairs.append(pair if number % 2 == 0 else pair[::-1])
    return pairs


def medians(pairs, name):
    """Of pairs of numbers, and of their ratios: the second over the first."""
    return {f"{name}_off": statistics.median(off for off, _ in pairs),
            f"{name}_on": statistics.median(on for _, on in pairs),
            f"{name}_ratio": statistics.median(on / off for off, on in pairs)}


def few_shot(options, off, on):
    def measure(who, number):
        return score_documents(
            who, few_shot_prompts(options, Ids(options.model, number)))

    pairs = in_turns(options.rounds, off, on, measure)
    yield {"mode": options.mode, "documents": options.documents,
           **medians([(one[0], other[0]) for one, other in pairs],
                     "documents_per_second"),
           "cached_share": statistics.median(on[2] for _, on in pairs),
           "same_figures": all(one[1] == other[1] for one, other in pairs)}


def behind_preamble(options, who, number):
    """Seconds to the first token of a first and a second prompt behind a
    preamble, on a fork of a session that holds it, and of that fork."""
    ids = Ids(options.model, number)
    known = ids.draw(options.preamble)
    asked = [ids.draw(options.question_tokens) for _ in range(3)]
    first, second = (who.first_token(prompt=known + question)
                     for question in asked[:2])
    held, fork = f"held-{number}", f"fork-{number}"
    who.ask("/v1/sessions", {"session_id": held})
    other = ids.draw(options.preamble)  # that the cache cannot have
    who.ask(f"/v1/sessions/{held}/append", {"tokens": other})
    begin = time.monotonic()
    who.ask(f"/v1/sessions/{held}/fork", {"new_session_id": fork})
    forking = time.monotonic() - begin
    on_fork = who.first_token(prompt=asked[2], session_id=fork)
    return {"first": first, "second": second, "on_fork": on_fork,
            "forking": forking}


def preamble(options, off, on):
    pairs = in_turns(options.rounds, off, on,
                     lambda who, number: behind_preamble(options, who, number))
    line = {"mode": options.mode, "preamble_tokens": options.preamble}
    for name in pairs[0][0]:
        line |= medians([(one[name], other[name]) for one, other in pairs],
                        f"{name}_seconds")
    line["second_over_fork"] = statistics.median(
        other["second"] / other["on_fork"] for _, other in pairs)
    yield line


def together_and_alone(options, who, number):
    """(seconds until all clients have their first token, until one has)"""
    ids = Ids(options.model, number)

    def prompts(count):
        known = ids.draw(options.preamble)
        return [known + ids.draw(options.question_tokens)
                for _ in range(count)]

    alone = who.first_token(prompt=prompts(1)[0])
    with concurrent.futures.ThreadPoolExecutor(options.clients) as clients:
        took = list(clients.map(lambda prompt: who.first_token(prompt=prompt),
                                prompts(options.clients)))
    return max(took), alone


def together(options, off, on):
    pairs = in_turns(
        options.rounds, off, on,
        lambda who, number: together_and_alone(options, who, number))
    yield {"mode": options.mode, "clients": options.clients,
           "preamble_tokens": options.preamble,
           **medians([(one[0], other[0]) for one, other in pairs],
                     "all_seconds"),
           **medians([(one[1], other[1]) for one, other in pairs],
                     "alone_seconds"),
           "all_over_alone_off":
               statistics.median(all_ / one for (all_, one), _ in pairs),
           "all_over_alone_on":
               statistics.median(all_ / one for _, (all_, one) in pairs)}


def load(options, who, streams, number):
    """(tokens/s, median seconds to the first token) of a load of new prompts"""
    result = subprocess.run(
        [options.bin / "txl", "bench", "--server", who.address, "--streams",
         str(streams), "--prompt-tokens", str(options.preamble // 8),
         "--max-tokens", "64", "--requests", str(8 * streams), "--seed",
         str(1000 * streams + number), "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(result.stdout.splitlines()[-1])
    return (report["tokens_per_second"],
            report["time_to_first_token_seconds"]["p50"])


def miss(options, off, on):
    for streams in (1, 8):
        pairs = in_turns(
            options.rounds, off, on,
            lambda who, number: load(options, who, streams, number))
        yield {"mode": options.mode, "streams": streams,
               **medians([(one[0], other[0]) for one, other in pairs],
                         "tokens_per_second"),
               **medians([(one[1], other[1]) for one, other in pairs],
                         "first_token_seconds")}


HARNESS_TASK = """
task: few_shot
output_type: multiple_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/test.jsonl,
                                train: {folder}/train.jsonl}}}}
test_split: test
fewshot_split: train
fewshot_config: {{sampler: first_n}}
num_fewshot: {shots}
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: 0
metric_list: [{{metric: acc}}]
"""


def write_task(options, folder, seed):
    """The task's files. Words of letters that every vocabulary of text has."""
    words = random.Random(seed)

    def text(tokens):
        return "".join(words.choice("abcdefghijklm nopqrstuvwxyz ")
                       for _ in range(tokens)).strip() or "a"

    def document(tokens):
        return json.dumps({"question": text(tokens), "choices": [
            text(options.choice_tokens) for _ in range(options.choices)]})

    for name, count, tokens in (
            ("test", options.documents, options.question_tokens),
            ("train", options.shots, options.shot_tokens)):
        pathlib.Path(folder, f"{name}.jsonl").write_text(
            "".join(document(tokens) + "\n" for _ in range(count)), "utf-8")
    pathlib.Path(folder, "few_shot.yaml").write_text(
        HARNESS_TASK.format(folder=folder, shots=options.shots), "utf-8")


def run_harness(options, who, number):
    """(documents/s, [(log-probability, whether it is greedy)])"""
    # pylint: disable=import-outside-toplevel
    import lm_eval
    import lm_eval.tasks
    with tempfile.TemporaryDirectory() as folder:
        write_task(options, folder, number)
        tasks = lm_eval.tasks.TaskManager(include_path=folder,
                                          include_defaults=False)
        begin = time.monotonic()
        samples = lm_eval.simple_evaluate(
            model="local-completions", model_args={
                "model": pathlib.Path(options.model).name, "num_concurrent": 1,
                "base_url": f"http://127.0.0.1:{who.port}/v1/completions"},
            tasks=["few_shot"], bootstrap_iters=0, task_manager=tasks,
        )["samples"]["few_shot"]
        seconds = time.monotonic() - begin
    return (options.documents / seconds,
            [sample["resps"] for sample in samples])


def harness(options, off, on):
    pairs = in_turns(options.rounds, off, on,
                     lambda who, number: run_harness(options, who, number))
    yield {"mode": options.mode, "documents": options.documents,
           **medians([(one[0], other[0]) for one, other in pairs],
                     "documents_per_second"),
           "same_figures": all(one[1] == other[1] for one, other in pairs)}


def main():
    options = parse_options(sys.argv[1:])
    run = {"few-shot": few_shot, "preamble": preamble, "together": together,
           "miss": miss, "harness": harness}[options.mode]
    with side(options, "off", ["--prefix-cache", "0"]) as off, \
            side(options, "on", []) as on:
        bench_script.report(run(options, off, on), options.json)


if __name__ == "__main__":
    main()
