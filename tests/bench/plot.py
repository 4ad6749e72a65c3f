#!/usr/bin/env python3
"""Draws pictures of what benchmarks and load tests wrote. Needs matplotlib
(deploy/setup.sh --all puts it into .deps/venv).

Of txl-bench-engine --json and txl-bench-window --json:
  plot.py sessions OUT.svg RUN.json...   tokens/s over sessions, with roofline
  plot.py roofline OUT.svg RUN.json...   FLOP/s over FLOP per byte
  plot.py memory   OUT.svg RUN.json...   step time over memory length, of runs
                                         of models with different memories
  plot.py window   OUT.svg RUN.json...   recomputing against memory (Table 9)

A run is labelled by its formats, or by NAME in NAME=RUN.json.

Of txl bench --out; of several runs the main one, but for rates:
  plot.py latency    OUT.svg RESULT.json   how long which share took
  plot.py throughput OUT.svg RESULT.json   tokens/s over time, with stalls
  plot.py requests   OUT.svg RESULT.json   requests over time, with stalls
  plot.py rates      OUT.svg RESULT.json   latencies over the rate, with limits
"""

import json
import math
import pathlib
import sys

COLOURS = ("#1f6f8b", "#d1603d", "#5b8c3e", "#7d5ba6", "#b08900")


def label_of(document):
    """Model and what differs from all-f32."""
    runner = document.get("options", {}).get("runner", {})
    formats = [f"{name} {runner[name]}"
               for name in ("weights", "memory", "derived")
               if runner.get(name, "f32") != "f32"]
    return " ".join([document.get("model", "run"), *(formats or ["f32"])])


def load(argument):
    """(label, document) of RUN.json or NAME=RUN.json."""
    name, separator, path = argument.rpartition("=")
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        sys.exit(f"plot.py: {error}")
    except ValueError as error:
        sys.exit(f"plot.py: {path}: is not JSON: {error}")
    if not isinstance(document, dict):
        sys.exit(f"plot.py: {path}: is not a JSON object")
    return (name if separator else label_of(document)), document


def lines_of(document, kind):
    return [line for line in document["lines"] if line["kind"] == kind]


def session_series(document):
    """[(sessions, tokens/s, what the machine allows or None)], ascending."""
    return sorted((line["sessions"], line["tokens_per_second"],
                   line.get("roofline_tokens_per_second"))
                  for line in lines_of(document, "decode"))


def roofline_points(document):
    """[(FLOP per byte, GFLOP/s, sessions)] of the formula's bytes."""
    return [(line["flops_per_step"] / line["bytes_per_step"],
             line["flops_per_step"] / line["step_milliseconds"] / 1e6,
             line["sessions"])
            for line in lines_of(document, "decode")]


def roof(machine, intensity):
    """GFLOP/s that the machine allows at FLOP per byte."""
    return min(machine["fma_gigaflops"],
               intensity * machine["read_gigabytes_per_second"])


def memory_series(documents):
    """{sessions: [(memory length, step milliseconds p50)]}, ascending."""
    series = {}
    for document in documents:
        for line in lines_of(document, "decode"):
            series.setdefault(line["sessions"], []).append(
                (line["mem_len"], line["step_milliseconds_p50"]))
    return {sessions: sorted(points)
            for sessions, points in sorted(series.items())}


def window_series(document):
    """[(attention length, ratio, the paper's or None)], ascending."""
    return sorted((line["attention_length"], line["ratio"],
                   line.get("paper_ratio"))
                  for line in lines_of(document, "window"))


def main_run(document):
    """The run that a load test's result is about."""
    return (document["runs"][document["main_run"]]
            if document["kind"] == "sweep" else document)


def nines(share):
    """Where the slowest begin, on a scale of nines: 0.9 is at 1, 0.99 at 2."""
    return -math.log10(1 - share)


def latency_points(buckets):
    """[(nines of the share that took no longer, milliseconds)], ascending. The
    last bucket is where its middle is: no share of turns is slower."""
    total = sum(count for _, count in buckets)
    points, seen = [], 0
    for seconds, count in buckets:
        seen += count
        share = seen / total if seen < total else 1 - 0.5 / total
        points.append((nines(share), 1e3 * seconds))
    return points


def time_points(run, field):
    """[(middle of an interval, `field` a second)], in seconds since the
    start."""
    return [(part["start"] + part["seconds"] / 2, part[field] / part["seconds"])
            for part in run["series"] if part["seconds"] > 0]


def rate_points(sweep, field, figure):
    """[(requests due per second, milliseconds)], ascending."""
    return sorted((run["rate"], 1e3 * run[field][figure])
                  for run in sweep["runs"] if run[field][figure] > 0)


def draw_sessions(axes, runs):
    for colour, (label, document) in zip(COLOURS, runs):
        series = session_series(document)
        counts = [point[0] for point in series]
        axes.plot(counts, [point[1] for point in series], "o-", ms=3,
                  color=colour, label=label)
        if all(point[2] is not None for point in series):
            axes.plot(counts, [point[2] for point in series], "--", lw=1,
                      color=colour, label="what the machine allows")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("sessions")
    axes.set_ylabel("tokens/s over all sessions")
    axes.set_ylim(bottom=0)


def draw_roofline(axes, runs):
    machine = runs[0][1]["machine"]
    all_points = [point for _, document in runs
                  for point in roofline_points(document)]
    ridge = machine["fma_gigaflops"] / machine["read_gigabytes_per_second"]
    low = min(point[0] for point in all_points) / 2
    high = 2 * max([ridge, *(point[0] for point in all_points)])
    corners = [low, ridge, high]
    axes.plot(corners, [roof(machine, x) for x in corners], color="#444444",
              label=f"{machine['read_gigabytes_per_second']:.0f} GB/s, "
                    f"{machine['fma_gigaflops']:.0f} GFLOP/s")
    for colour, (label, document) in zip(COLOURS, runs):
        points = roofline_points(document)
        axes.plot([point[0] for point in points],
                  [point[1] for point in points], "o", color=colour,
                  label=label)
        for intensity, rate, sessions in points:
            axes.annotate(str(sessions), (intensity, rate), fontsize=7,
                          xytext=(3, -9), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte of a step (numbers: sessions)")
    axes.set_ylabel("GFLOP/s")


def draw_memory(axes, runs):
    series = memory_series([document for _, document in runs])
    for colour, (sessions, points) in zip(COLOURS, series.items()):
        axes.plot([point[0] for point in points],
                  [point[1] for point in points], "o-", color=colour,
                  label=f"{sessions} session{'s' * (sessions > 1)}")
    axes.set_xlabel("memory length")
    axes.set_ylabel("median step, ms")
    axes.set_ylim(bottom=0)


def draw_window(axes, runs):
    for colour, (label, document) in zip(COLOURS, runs):
        series = window_series(document)
        axes.plot([point[0] for point in series],
                  [point[1] for point in series], "o-", color=colour,
                  label=label)
    paper = [(point[0], point[2]) for point in window_series(runs[0][1])
             if point[2] is not None]
    if paper:
        axes.plot(*zip(*paper), "s--", color="#444444",
                  label="Table 9 of the paper")
    axes.set_xlabel("attention length")
    axes.set_ylabel("time of recomputing ÷ time with memory")
    axes.set_ylim(bottom=0)


def draw_latency(axes, runs):
    run = main_run(runs[0][1])
    for colour, name in zip(COLOURS, ("end_to_end", "time_to_first_token",
                                      "inter_token")):
        if run["histograms"][name]:
            axes.plot(*zip(*latency_points(run["histograms"][name])),
                      color=colour, label=name.replace("_", " "))
    shares = (0, .5, .9, .99, .999, .9999)
    axes.set_xticks([nines(share) for share in shares],
                    [f"{100 * share:g} %" for share in shares])
    axes.set_yscale("log")
    axes.set_xlabel("share that took no longer")
    axes.set_ylabel("ms")


def draw_time(axes, run, series):
    """`series`: {label: points}."""
    for colour, (label, points) in zip(COLOURS, series.items()):
        axes.plot(*zip(*points), color=colour, label=label)
    for stall in run["stalls"]:
        axes.axvspan(stall["start"], stall["start"] + stall["seconds"],
                     color="#f2c9cd",
                     label=f"stall of {stall['seconds']:.2f} s")
    if run["warmup_seconds"] > 0:
        axes.axvline(run["warmup_seconds"], color="#888888", ls="--",
                     label="end of the warm-up")
    axes.set_xlabel("seconds since the start")
    axes.set_ylim(bottom=0)


def draw_throughput(axes, runs):
    run = main_run(runs[0][1])
    draw_time(axes, run, {"tokens/s": time_points(run, "tokens")})


def draw_requests(axes, runs):
    run = main_run(runs[0][1])
    running = [(part["start"] + part["seconds"], part["running"])
               for part in run["series"]]
    draw_time(axes, run, {"waiting or running": running,
                          "failed/s": time_points(run, "failed"),
                          "ended well/s": time_points(run, "ended"),
                          "due/s": time_points(run, "due")})


def draw_rates(axes, runs):
    sweep = runs[0][1]
    for colour, (field, figure) in zip(COLOURS, (
            ("time_to_first_token", "p50"), ("time_to_first_token", "p99"),
            ("inter_token", "p99"), ("end_to_end", "p99"))):
        axes.plot(*zip(*rate_points(sweep, f"{field}_seconds", figure)), "o-",
                  ms=3, color=colour,
                  label=f"{field.replace('_', ' ')} {figure}")
    limits = sweep["runs"][0].get("goodput", {}).get("limits_seconds", {})
    for name, limit in limits.items():
        axes.axhline(1e3 * limit, color="#888888", ls=":",
                     label=f"limit of {name}")
    capacity = sweep.get("capacity", {}).get("rate", 0)
    if capacity > 0:
        axes.axvline(capacity, color="#888888", ls="--", label="capacity")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("requests due per second")
    axes.set_ylabel("ms")


DRAW = {"sessions": draw_sessions, "roofline": draw_roofline,
        "memory": draw_memory, "window": draw_window,
        "latency": draw_latency, "throughput": draw_throughput,
        "requests": draw_requests, "rates": draw_rates}


def draw(kind, out, runs):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "txl", "svg.fonttype": "none", "font.size": 9,
         "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    DRAW[kind](axes, runs)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    # No date: the same numbers give the same file.
    figure.savefig(out, format="svg", metadata={"Date": None})


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in DRAW:
        print(__doc__, file=sys.stderr)
        return 2
    kind, out, *paths = sys.argv[1:]
    runs = [load(path) for path in paths]
    try:
        draw(kind, out, runs)
    except KeyError as lacking:
        print(f"plot.py: {', '.join(paths)}: no result to draw {kind} of: "
              f"{lacking} is not there", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
