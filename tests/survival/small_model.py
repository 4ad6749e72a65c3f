"""A model that an emulated device runs quickly, with a vocabulary of texts."""

import json
import shutil
import subprocess

import paths

_SMALL = {"d_embed": 32, "d_model": 32, "d_head": 16, "n_head": 2,
          "d_inner": 64, "n_layer": 2, "mem_len": 31, "window": 32,
          # What the ids of a whole session say beside its state: the symbol
          # behind a space counts.
          "beat_positions": {"separator": 1, "duration0": 10, "mask": 3,
                             "restart": 40, "bar_ticks": 16, "bars": 8}}


def make(program, folder):
    """`folder`, filled by `program`, a txl-model, with random weights of the
    shipped model's kind."""
    spec = json.loads((paths.SHAKESPEARE / "config.json").read_text())
    folder.mkdir(parents=True)
    path = folder.with_suffix(".spec.json")
    path.write_text(json.dumps(spec | _SMALL))
    subprocess.run([program, "random", "--spec", path, "--seed", "3", folder],
                   check=True, stdout=subprocess.DEVNULL)
    for name in ("tokenizer.json", "vocab.json", "generation.json"):
        shutil.copy(paths.SHAKESPEARE / name, folder)
    return folder
