"""A folder in which recipes run: their ingredients, small, and the programs.

The programs are those of a build. Servers get their own addresses, and training
is small.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import mido

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/client/package"))
import unpacked_package

_PLAY = "ROMEO:\nBut, soft! what light through yonder window breaks?\n"
_WORDS = ["<unk>", "<eos>", "the", "cat", "sat", "on", "mat"]
_TRAINING = "--streams 2 --segment 16 --mem-len 16"
_SHAPE = "--layers 1 --d-model 16 --heads 2 --d-head 8 --d-inner 16"
_WAIT = """
set -euo pipefail
server_is_up() {
  until txl status > status.txt 2>&1 &&
      { [ -z "$HTTP" ] || (: > "/dev/tcp/${HTTP%:*}/${HTTP#*:}") 2> http.txt; }
  do
    kill -0 $!
    sleep 0.2
  done
}
"""


class Kitchen:
    """run() as often as it takes, then close()."""

    def __init__(self, folder, programs):
        self._folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        for program in programs:
            self._write(program)
        # Not a link: by the folder of its own an environment is found.
        self._write(pathlib.Path(sys.executable), "python")
        unpacked_package.unpack(folder / "packages")

    def _write(self, program, name=""):
        """A program's stand-in, which adds flags to it."""
        added = ""
        if program.name == "txl-server":
            added = 'set -- "$@" --listen "$TXL_SERVER" --log-level error'
        elif program.name == "txl-model":
            added = (f'if [ "$1" = train ]; then set -- "$@" {_TRAINING}\n'
                     f'case "$*" in *--from*) ;; *) set -- "$@" {_SHAPE};;'
                     "esac fi")
        path = self._bin / (name or program.name)
        path.write_text(f'#!/bin/sh\n{added}\nexec {program} "$@"\n')
        path.chmod(0o755)

    def run(self, recipe, name):
        """The folder in which a recipe has run, and its standard output."""
        place = self._folder / name
        place.mkdir()
        lay_out(place)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            http = f"127.0.0.1:{free.getsockname()[1]}"
        rpc = f"unix:{place}/socket"
        script = recipe.script.replace("127.0.0.1:8080", http).replace(
            "127.0.0.1:50051", rpc)
        script = re.sub(r"--steps \d+", "--steps 2", script)
        process = subprocess.Popen(
            ["bash", "-c", _WAIT + script], cwd=place, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, env={
                **os.environ, "TXL_SERVER": rpc,
                "HTTP": http if http in script else "",
                "PATH": f"{self._bin}:{os.environ['PATH']}",
                "PYTHONPATH": str(self._folder / "packages"),
                "PYTHONDONTWRITEBYTECODE": "1"})
        try:
            # Its servers have the pipes too, so this is not communicate().
            status = process.wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):  # no server is left
                os.killpg(process.pid, signal.SIGKILL)
            said, complaints = process.communicate()
        if status:
            raise AssertionError(f"{recipe.title}: status {status}:\n{said}\n"
                                 f"{complaints}")
        return place, said


def lay_out(place):
    """The files that recipes are about."""
    (place / "models").symlink_to(ROOT / "models")
    shutil.copy(ROOT / "tests/golden/kimi-char/native/model.pt", place)
    filler = [f"word{n}" for n in range(61 - len(_WORDS))]
    (place / "vocab.txt").write_text("\n".join(_WORDS + filler) + "\n")
    (place / "play.txt").write_text(_PLAY)
    (place / "my.txt").write_text(_PLAY * 10)
    shutil.copytree(ROOT / "tests/golden/cpw/native", place / "remi-xl")
    (place / "songs").mkdir()
    for file in ("song.mid", "songs/1.mid", "songs/2.mid"):
        _melody().save(place / file)
    (place / "songs/broken.mid").write_bytes(b"no music")
    _lay_out_n_best(place)


def _melody():
    track = mido.MidiTrack()
    for pitch in (60, 64, 67, 72) * 2:
        track.append(mido.Message("note_on", note=pitch, velocity=80))
        track.append(mido.Message("note_off", note=pitch, time=480))
    return mido.MidiFile(tracks=[track])


def _lay_out_n_best(place):
    """One utterance with four hypotheses, of which the last one is unlikely."""
    texts = ["two bee oar knot", "to be or not", "to be oar not", "to be"]
    heard = [-1.5, -2.5, -2, -900]
    archives, job = place / "archives.1", place / "logdir/output.1"
    archives.mkdir()
    for name, values in (("words_text", texts),
                         ("acwt", [-each for each in heard]),
                         ("lmwt.nolm", [1.5, 2.5, 2, 1])):
        (archives / name).write_text("".join(
            f"utt-{n} {value}\n" for n, value in enumerate(values, 1)))
    for rank, (text, score) in enumerate(zip(texts, heard), 1):
        folder = job / f"{rank}best_recog"
        folder.mkdir(parents=True)
        (folder / "text").write_text(f"utt {text}\n")
        (folder / "token").write_text(f"utt {' '.join(text)}\n")
        (folder / "score").write_text(f"utt tensor({score})\n")
    (place / "beams.tsv").write_text("".join(
        f"{text}\t{score}\n" for text, score in zip(texts, heard)))
