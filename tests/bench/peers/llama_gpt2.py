"""Decode speed of llama.cpp on a GPT-2 as wide and deep as a given shape:
random weights, a context as long as the shape's memory.

Runs in the virtual environment that peers.py makes. The vocabulary is so long
that the output layer holds as many numbers as the shape's adaptive softmax.
Prints a JSON line for each batch size.

FORMAT, of the matrices: f32, f16, q8_0 or q4_0. CACHE: f16 or q8_0.

  llama_gpt2.py SHAPE.json FORMAT CACHE SESSIONS SECONDS THREADS DIRECTORY
"""

import json
import os
import sys
import time

import gguf
import llama_cpp as llama
import numpy

PROMPT_ROWS = 512
MIN_STEPS, MAX_STEPS = 3, 200
CACHE_TYPES = {"f16": llama.GGML_TYPE_F16, "q8_0": llama.GGML_TYPE_Q8_0}


def words_of(spec):
    """Rows of an output layer that holds as many numbers as the adaptive
    softmax: words and clusters of each bin in the bin's width, and the
    projections."""
    width, divisor = spec["d_model"], spec.get("div_val", 1)
    ends = spec.get("cutoffs", []) + [spec["vocab_size"]]
    numbers = 0
    for index, end in enumerate(ends):
        bin_width = spec["d_embed"] // divisor ** index
        first = ends[index - 1] if index else 0
        clusters = 0 if index else len(ends) - 1
        projected = (bin_width != width
                     or spec.get("emb_proj_bin0") == "present")
        numbers += bin_width * (end - first + clusters
                                + (width if projected else 0))
    return -(-numbers // width)


class ModelFile:
    """A GPT-2 with random numbers in the format of its matrices."""

    def __init__(self, path, spec, number_format):
        self.random = numpy.random.default_rng(0)
        self.format = number_format
        self.writer = gguf.GGUFWriter(path, "gpt2")
        self.write(spec)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def vector(self, name, *shape):
        self.writer.add_tensor(name, self.numbers(shape))

    def matrix(self, name, *shape):
        numbers = self.numbers(shape)
        if self.format == "f32":
            self.writer.add_tensor(name, numbers)
        elif self.format == "f16":
            self.writer.add_tensor(name, numbers.astype(numpy.float16))
        else:
            kind = gguf.GGMLQuantizationType[self.format.upper()]
            self.writer.add_tensor(name, gguf.quants.quantize(numbers, kind),
                                   raw_dtype=kind)

    def numbers(self, shape):
        return 0.02 * self.random.standard_normal(shape, dtype=numpy.float32)

    def write(self, spec):
        width, inner, words = spec["d_model"], spec["d_inner"], words_of(spec)
        positions = spec["mem_len"] + MAX_STEPS + 1
        self.writer.add_context_length(positions)
        self.writer.add_embedding_length(width)
        self.writer.add_feed_forward_length(inner)
        self.writer.add_block_count(spec["n_layer"])
        self.writer.add_head_count(spec["n_head"])
        self.writer.add_layer_norm_eps(1e-5)
        self.writer.add_vocab_size(words)
        self.writer.add_tokenizer_model("no_vocab")
        self.matrix("token_embd.weight", words, width)
        self.vector("position_embd.weight", positions, width)
        self.norm("output_norm", width)
        self.matrix("output.weight", words, width)
        for layer in range(spec["n_layer"]):
            block = f"blk.{layer}."
            self.norm(block + "attn_norm", width)
            self.norm(block + "ffn_norm", width)
            self.linear(block + "attn_qkv", 3 * width, width)
            self.linear(block + "attn_output", width, width)
            self.linear(block + "ffn_up", inner, width)
            self.linear(block + "ffn_down", width, inner)

    def norm(self, name, width):
        self.vector(name + ".weight", width)
        self.vector(name + ".bias", width)

    def linear(self, name, outputs, inputs):
        self.matrix(name + ".weight", outputs, inputs)
        self.vector(name + ".bias", outputs)


class Context:
    """Sessions of one llama.cpp context."""

    def __init__(self, model, cache, sessions, positions, threads):
        vocabulary = llama.llama_model_get_vocab(model)
        self.words = llama.llama_vocab_n_tokens(vocabulary)
        self.sessions = sessions
        options = llama.llama_context_default_params()
        options.type_k = options.type_v = CACHE_TYPES[cache]
        options.n_ctx = positions * sessions
        options.n_seq_max = sessions
        options.n_batch = max(PROMPT_ROWS, sessions)
        options.n_threads = options.n_threads_batch = threads
        self.context = llama.llama_init_from_model(model, options)
        if not self.context:
            raise SystemExit("llama.cpp: no context")
        self.batch = llama.llama_batch_init(options.n_batch, 0, 1)

    def close(self):
        llama.llama_batch_free(self.batch)
        llama.llama_free(self.context)

    def feed(self, rows):
        """rows: (token, position, session, whether its output is wanted)."""
        self.batch.n_tokens = len(rows)
        for i, (token, position, session, wanted) in enumerate(rows):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = session
            self.batch.logits[i] = wanted
        if llama.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama.cpp: a step failed")

    def fill(self, length):
        for session in range(self.sessions):
            for begin in range(0, length, PROMPT_ROWS):
                end = min(length, begin + PROMPT_ROWS)
                self.feed([((7 * t + session) % self.words, t, session, False)
                           for t in range(begin, end)])

    def decode(self, position, tokens):
        self.feed([(token, position, session, True)
                   for session, token in enumerate(tokens)])
        best = []
        for i in range(self.sessions):
            logits = llama.llama_get_logits_ith(self.context, i)
            best.append(int(numpy.ctypeslib.as_array(
                logits, shape=(self.words,)).argmax()))
        return best


def tokens_per_second(context, length, seconds):
    context.fill(length)
    tokens = context.decode(length, list(range(context.sessions)))
    steps, begin = 0, time.perf_counter()
    while steps < MAX_STEPS and (
            steps < MIN_STEPS or time.perf_counter() - begin < seconds):
        steps += 1
        tokens = context.decode(length + steps, tokens)
    return steps * context.sessions / (time.perf_counter() - begin)


def main():
    path, number_format, cache, sessions, seconds, threads, folder = (
        sys.argv[1:])
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    name = os.path.splitext(os.path.basename(path))[0]
    model_path = os.path.join(folder, f"{name}-{number_format}.gguf")
    if not os.path.exists(model_path):
        ModelFile(model_path + ".part", spec, number_format)
        os.rename(model_path + ".part", model_path)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it logs every tensor
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(
        model_path.encode(), llama.llama_model_default_params())
    positions = spec["mem_len"] + MAX_STEPS + 1
    for count in map(int, sessions.split(",")):
        context = Context(model, cache, count, positions, int(threads))
        rate = tokens_per_second(context, spec["mem_len"], float(seconds))
        context.close()
        print(json.dumps({"sessions": count, "tokens_per_second": rate}),
              flush=True)


if __name__ == "__main__":
    main()
