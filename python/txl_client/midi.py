"""MIDI files of music models: written from events, read as token ids.

Writing needs the extra `midi`, reading a server or the program txl-model.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import warnings
from collections.abc import Iterable
from typing import Any, BinaryIO

from txl_client import checks
from txl_client.client import Client
from txl_client.errors import FailedPreconditionError, InvalidArgumentError
from txl_client.events import Generation
from txl_client.music import (TICKS_PER_BEAT, Chord, Music, Note, Tempo,
                              read_events)

__all__ = ["Chord", "Music", "Note", "Tempo", "midi_file", "read_events",
           "read_midi", "write_midi"]

_LEAST_BPM, _MOST_BPM = 4, 60_000_000

# The order of messages at one tick: notes end before others begin.
_META, _OFF, _ON = range(3)


def write_midi(events: Generation | str | Iterable[str],
               file: str | os.PathLike[str] | BinaryIO, *,
               bpm: int = 120) -> Music:
    """Writes a MIDI file from a turn, a text of events, or a list of events.

    `bpm`: the tempo until an event sets one. ValueError if there is no note:
    such events are not music.
    """
    if isinstance(events, Generation):
        events = events.text
    music = read_events(events)
    if not music.notes:
        raise ValueError("there is no note in these events")
    made = midi_file(music, bpm)
    if isinstance(file, (str, os.PathLike)):
        made.save(filename=os.fspath(file))
    else:
        made.save(file=file)
    return music


def read_midi(file: str | os.PathLike[str],
              model: Client | str | os.PathLike[str], *,
              program: str = "txl-model") -> list[int]:
    """The token ids of a MIDI file, as a prompt for a model of music.

    `model`: a client of its server, or its directory. `program`: what reads the
    file for a directory; looked for on PATH, and in the build of a checkout
    that holds this package. A UserWarning counts what the ids leave out of the
    file. ValueError if it is not such a file or the model not one of music;
    RuntimeError if the program fails in another way; with a client also the
    errors of a call.
    """
    path = checks.path("file", file)
    if isinstance(model, Client):
        try:
            tokens = model.tokenize(midi=pathlib.Path(path).read_bytes())
        except (InvalidArgumentError, FailedPreconditionError) as error:
            raise ValueError(f"{path}: {error}") from error
        ids, left_out = list(tokens), tokens.left_out
    else:
        ids, left_out = _read_by_program(checks.path("program", program),
                                         checks.path("model", model), path)
    if left_out:
        counts = ", ".join(f"{what} ({count})"
                           for what, count in left_out.items())
        warnings.warn(f"{path}: left out: {counts}", stacklevel=2)
    return ids


def _read_by_program(program: str, directory: str,
                     path: str) -> tuple[list[int], dict[str, int]]:
    found = _found(program)
    for needed in (path, directory):
        os.stat(needed)  # its error names the path
    done = subprocess.run(
        [found, "midi", directory, path], stdin=subprocess.DEVNULL,
        capture_output=True, text=True)
    if done.returncode:
        kind = ValueError if done.returncode > 0 else RuntimeError
        raise kind(done.stderr.strip().removeprefix("txl-model: ")
                   or f"{program} ended with {done.returncode}")
    music = json.loads(done.stdout)
    return list(music["ids"]), dict(music["left_out"])


def _found(program: str) -> str:
    """Where a program lies; FileNotFoundError if it is not there."""
    built = pathlib.Path(__file__).resolve().parents[2] / "build/bin" / program
    found = shutil.which(program) or shutil.which(built)
    if found is None:
        raise FileNotFoundError(
            f"{program} is not on PATH; install it, or give its path as "
            "`program`")
    return found


def midi_file(music: Music, bpm: int = 120) -> Any:
    """A mido.MidiFile with one track."""
    import mido

    track = mido.MidiTrack()
    now = 0
    for tick, _, message in sorted(_messages(mido, music, bpm),
                                   key=lambda each: each[:2]):
        message.time = tick - now
        now = tick
        track.append(message)
    made = mido.MidiFile(ticks_per_beat=TICKS_PER_BEAT, charset="utf-8")
    made.tracks.append(track)
    return made


def _messages(mido: Any, music: Music,
              bpm: int) -> Iterable[tuple[int, int, Any]]:
    if not any(tempo.start == 0 for tempo in music.tempos):
        yield 0, _META, _set_tempo(mido, bpm)
    for tempo in music.tempos:
        yield tempo.start, _META, _set_tempo(mido, tempo.bpm)
    for chord in music.chords:
        yield chord.start, _META, mido.MetaMessage("marker", text=chord.name)
    for note in music.notes:
        yield note.start, _ON, mido.Message(
            "note_on", note=note.pitch, velocity=note.velocity)
        yield note.start + note.duration, _OFF, mido.Message(
            "note_off", note=note.pitch, velocity=0)


def _set_tempo(mido: Any, bpm: int) -> Any:
    """The message of a tempo; a file holds 24 bits of microseconds per beat."""
    checks.integer("bpm", bpm, _LEAST_BPM, _MOST_BPM)
    return mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(bpm))
