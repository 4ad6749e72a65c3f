#!/usr/bin/env python3
"""Draws what Prometheus gave for every expression of the dashboard and the
alert rules while the deployment test ran (docs/deploying.md).

  draw_expressions.py RESULTS.json OUT.svg

RESULTS.json: deployment_test.py --results. Needs matplotlib, which
deploy/setup.sh --all puts into .deps/venv."""

import argparse
import json
import math
import pathlib
import textwrap

COLUMNS = 5
COLOURS = ("#1f6f8b", "#d1603d", "#5b8c3e", "#7d5ba6", "#b08900", "#444444")


def plots(results):
    """[(kind, title, curves)]: one of each panel and of each alert; curves of
    a panel's expressions together."""
    merged = {}
    for result in results:
        key = result["kind"], result["origin"]
        merged.setdefault(key, []).extend(result["curves"])
    return [(kind, title, curves) for (kind, title), curves in merged.items()]


def points(curve, start):
    """[(seconds since start, value)] without what is not a number."""
    return [(float(time) - start, float(value))
            for time, value in curve["values"] if math.isfinite(float(value))]


def start_time(results):
    return min(float(curve["values"][0][0]) for result in results
               for curve in result["curves"])


def draw_plot(axes, kind, title, curves, start):
    axes.set_title("\n".join(textwrap.wrap(title, 30)), fontsize=7,
                   color="#8a2f1b" if kind == "alert" else "black")
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.25)
    labels = []
    for number, curve in enumerate(curves):
        series = points(curve, start)
        colour = COLOURS[number % len(COLOURS)]
        axes.plot([p[0] for p in series], [p[1] for p in series], lw=1,
                  marker="." if len(series) < 2 else None, color=colour,
                  label=curve["label"] or None)
        labels.append(curve["label"])
    if 0 < len([label for label in labels if label]) <= 6:
        axes.legend(frameon=False, fontsize=5)
    axes.locator_params(nbins=3)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))


def draw(results, out):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "txl", "svg.fonttype": "none",
         "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot
    all_plots = plots(results)
    start = start_time(results)
    rows = math.ceil(len(all_plots) / COLUMNS)
    figure, grid = pyplot.subplots(rows, COLUMNS, layout="constrained",
                                   figsize=(11, 1.55 * rows))
    for axes, plot in zip(grid.flat, all_plots):
        draw_plot(axes, *plot, start)
    for axes in list(grid.flat)[len(all_plots):]:
        axes.set_axis_off()
    figure.supxlabel("seconds under load; black: panels of the dashboard, "
                     "red: what alert rules compare", fontsize=8)
    # No date: the same numbers give the same file.
    figure.savefig(out, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    draw(json.loads(arguments.results.read_text(encoding="utf-8")),
         arguments.out)


if __name__ == "__main__":
    main()
