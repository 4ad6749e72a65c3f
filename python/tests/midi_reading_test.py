"""MIDI files as token ids, and back."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import mido
import pytest
from server_process import ROOT, ServerProcess, model, program

from txl_client import Client
from txl_client.midi import read_midi, write_midi
from txl_client.music import read_events

DATA = ROOT / "tests/model/music/data"
FAMILIES = ("remi", "remi_chords", "compound_word", "musicautobot")
TOOL = str(pathlib.Path(program()).with_name("txl-model"))


def vocabulary(family):
    return (DATA / f"{family}.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model directories of music; nothing reads their weights."""
    config = json.loads((ROOT / "tests/golden/cpw/config.json").read_text())
    made = {}
    for family in FAMILIES:
        made[family] = tmp_path_factory.mktemp(family)
        events = vocabulary(family)
        for name, content in (
                ("config.json",
                 json.dumps({**config, "vocab_size": len(events)})),
                ("tokenizer.json", '{"kind": "events", "file": "events.txt"}'),
                ("events.txt", "\n".join(events)), ("model.safetensors", "")):
            (made[family] / name).write_text(content)
    return made


def left_out(warned):
    """The counts of the warnings, each 'FILE: left out: WHAT (COUNT), ...'."""
    counts = collections.Counter()
    for warning in warned:
        for each in str(warning.message).split(": left out: ")[1].split(", "):
            what, count = each[:-1].rsplit(" (", 1)
            counts[what] += int(count)
    return counts


def song(path, notes, ticks_per_beat=480):
    """Writes (start, end, pitch), in beats."""
    file = mido.MidiFile(ticks_per_beat=ticks_per_beat)
    file.tracks.append(mido.MidiTrack())
    moments = sorted([(end, 0, pitch) for _, end, pitch in notes]
                     + [(start, 1, pitch) for start, _, pitch in notes])
    now = 0
    for beat, on, pitch in moments:
        tick = round(beat * ticks_per_beat)
        file.tracks[0].append(mido.Message(
            "note_on" if on else "note_off", note=pitch, time=tick - now))
        now = tick
    file.save(path)
    return path


def notes_of(path):
    """(start, end, pitch) of a file that write_midi made, in beats."""
    now, begun, notes = 0, {}, []
    for message in mido.MidiFile(path).tracks[0]:
        now += message.time
        if message.type == "note_on":
            begun[message.note] = now / 480
        elif message.type == "note_off":
            notes.append((begun.pop(message.note), now / 480, message.note))
    return sorted(notes)


@pytest.mark.parametrize("ticks_per_beat", [96, 480, 1024])
@pytest.mark.parametrize("family", FAMILIES)
def test_music_on_the_grid_comes_back_as_it_was(models, tmp_path, family,
                                                ticks_per_beat):
    notes = sorted([(0, 1, 60), (0, 1, 64), (0, 2, 67), (1.5, 1.75, 62),
                    (3.75, 5, 60), (4, 8, 48), (6.25, 7, 71), (9, 9.5, 65)])
    ids = read_midi(song(tmp_path / "song.mid", notes, ticks_per_beat),
                    models[family], program=TOOL)
    events = vocabulary(family)
    write_midi([events[i].replace(" ", "%20") for i in ids],
               tmp_path / "back.mid")
    if family.startswith("remi"):
        # Its grid ends before the last note, which moves there.
        notes[-1] = (8.75, 9.25, 65)
    assert notes_of(tmp_path / "back.mid") == notes


@pytest.mark.parametrize("family", FAMILIES)
def test_each_note_of_a_file_is_among_the_ids_or_counted(models, family):
    events = vocabulary(family)
    expected = json.loads((DATA / "expected.json").read_text())
    for name, ids_of in list(expected.items())[::3]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            ids = read_midi(DATA / name, models[family], program=TOOL)
        # A prompt goes on, so it has no event that ends the piece.
        whole = ids_of[family]
        assert ids == [i for i in whole if events[i] != "EOS_None"]
        begun = sum(message.type == "note_on" and message.velocity > 0
                    for track in mido.MidiFile(DATA / name).tracks
                    for message in track)
        lost = sum(count for what, count in left_out(warned).items()
                   if what.startswith(("note ", "n")))
        music = read_events([events[i].replace(" ", "%20") for i in ids])
        assert len(music.notes) + lost == begun, (name, left_out(warned))
        assert music.ignored == ()


def test_what_is_left_out_is_told_once_with_its_counts(models, tmp_path):
    path = song(tmp_path / "song.mid", [(0, 1, 20), (1, 2, 60), (2, 3, 20)])
    with pytest.warns(UserWarning) as warned:
        read_midi(path, models["musicautobot"], program=TOOL)
    assert [str(w.message) for w in warned] == [f"{path}: left out: n20 (2)"]
    assert warned[0].filename == __file__


def test_nothing_is_told_where_nothing_is_left_out(models, tmp_path):
    path = song(tmp_path / "song.mid", [(0, 1, 60), (1.5, 2, 62)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = read_midi(str(path), str(models["remi"]), program=TOOL)
    assert all(type(i) is int for i in ids)


@pytest.mark.parametrize("content, reason", [
    (b"", "is not a MIDI file"), (b"RIFF", "is not a MIDI file"),
    (b"MThd\x00\x00\x00\x06\x00\x01", "is cut off at byte 10"),
    (b"MThd\x00\x00\x00\x06\x00\x01\x00\x00\x01\xe0", "has no note")])
def test_a_file_that_is_none_is_named_with_its_fault(models, tmp_path, content,
                                                     reason):
    path = tmp_path / "song.mid"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_midi(path, models["remi"], program=TOOL)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_a_client_asks_its_server(models, tmp_path, monkeypatch):
    path = song(tmp_path / "song.mid", [(0, 1, 60), (1.5, 2, 62), (3, 4, 127)])
    spec = json.loads((ROOT / "tests/fuzz/requests/small.json").read_text())
    spec["vocab_size"] = len(vocabulary("musicautobot"))
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    served = tmp_path / "served"
    subprocess.run([TOOL, "random", served, "--spec", tmp_path / "spec.json"],
                   check=True, capture_output=True)
    for name in ("tokenizer.json", "events.txt"):
        shutil.copy(models["musicautobot"] / name, served)
    monkeypatch.setenv("TXL_MODEL", str(served))
    server = ServerProcess()
    try:
        with Client(server.address) as client:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                ids = read_midi(path, client)
                assert ids == read_midi(path, served, program=TOOL)
            first, second = (str(each.message) for each in warned)
            assert first == second and "n127 (1)" in first
            (tmp_path / "text.mid").write_text("a song")
            with pytest.raises(ValueError, match="text.mid: .*MThd"):
                read_midi(tmp_path / "text.mid", client)
    finally:
        server.close()


def test_a_model_of_words_takes_no_music(tmp_path):
    path = song(tmp_path / "song.mid", [(0, 1, 60)])
    with pytest.raises(ValueError, match="MIDI needs a model of music"):
        read_midi(path, model(), program=TOOL)


def test_what_is_not_there_is_named(models, tmp_path):
    path = song(tmp_path / "song.mid", [(0, 1, 60)])
    with pytest.raises(FileNotFoundError, match="none.mid"):
        read_midi(tmp_path / "none.mid", models["remi"], program=TOOL)
    with pytest.raises(FileNotFoundError, match="no-model"):
        read_midi(path, tmp_path / "no-model", program=TOOL)
    with pytest.raises(FileNotFoundError, match="no-program is not on PATH"):
        read_midi(path, models["remi"], program="no-program")


def test_the_program_is_found_on_the_path(models, tmp_path, monkeypatch):
    path = song(tmp_path / "song.mid", [(0, 1, 60), (1.5, 2, 62)])
    monkeypatch.setenv("PATH", os.path.dirname(TOOL), prepend=os.pathsep)
    assert read_midi(path, models["remi"]) == read_midi(
        path, models["remi"], program=TOOL)


def test_a_program_that_breaks_is_no_fault_of_the_file(models, tmp_path):
    path = song(tmp_path / "song.mid", [(0, 1, 60)])
    broken = tmp_path / "broken"
    broken.write_text(f"#!{sys.executable}\nimport os\nos.abort()\n")
    broken.chmod(0o755)
    with pytest.raises(RuntimeError, match="ended with -6"):
        read_midi(path, models["remi"], program=str(broken))


@pytest.mark.parametrize("name, value, error", [
    ("file", None, TypeError), ("file", b"MThd", TypeError),
    ("file", "", ValueError), ("model", 5, TypeError),
    ("program", None, TypeError)])
def test_an_argument_that_is_no_path_is_named(name, value, error):
    with pytest.raises(error, match=f"^{name}: "):
        read_midi(**{"file": "song.mid", "model": "m", name: value})
