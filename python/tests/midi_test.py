import io

import mido
import pytest

from txl_client.events import Generation, Token
from txl_client.midi import midi_file, read_events, write_midi

EVENTS = ("Bar_None Beat_0 Chord_C_maj Tempo_100 Note_Pitch_60 "
          "Note_Velocity_64 Note_Duration_480 Note_Pitch_64 Note_Velocity_50 "
          "Note_Duration_240 Beat_4 Tempo_120 Note_Pitch_60 Note_Velocity_70 "
          "Note_Duration_480")


def messages(file):
    """(tick, kind, what it says) of the only track."""
    now, found = 0, []
    track, = file.tracks
    for message in track:
        now += message.time
        found.append((now, message.type, getattr(message, "note", None)))
    return found


def test_a_file_has_every_note_and_what_ends_goes_first(tmp_path):
    path = tmp_path / "song.mid"
    music = write_midi(EVENTS, path)
    assert len(music.notes) == 3
    read = mido.MidiFile(path)
    assert read.ticks_per_beat == 480
    assert messages(read) == [
        (0, "set_tempo", None), (0, "marker", None), (0, "note_on", 60),
        (0, "note_on", 64), (240, "note_off", 64), (480, "set_tempo", None),
        (480, "note_off", 60), (480, "note_on", 60), (960, "note_off", 60),
        (960, "end_of_track", None)]
    tempos = [round(mido.tempo2bpm(m.tempo)) for m in read.tracks[0]
              if m.type == "set_tempo"]
    assert tempos == [100, 120]
    marker, = (m.text for m in read.tracks[0] if m.type == "marker")
    assert marker == "C_maj"
    # One beat at 100 and one at 120 beats a minute.
    assert read.length == pytest.approx(0.6 + 0.5)


def test_a_tempo_that_no_event_names_is_the_caller_s():
    file = midi_file(read_events("n60 d4"), bpm=60)
    assert file.tracks[0][0].tempo == 1_000_000


@pytest.mark.parametrize("bpm, error", [
    (0, ValueError), (-1, ValueError), (3, ValueError), (10**9, ValueError),
    ("120", TypeError), (True, TypeError), (None, TypeError),
    (120.5, TypeError)])
def test_a_tempo_is_one_that_a_file_holds(tmp_path, bpm, error):
    with pytest.raises(error, match="^bpm: "):
        write_midi("n60 d4", tmp_path / "song.mid", bpm=bpm)
    assert not (tmp_path / "song.mid").exists()


def test_a_tempo_of_an_event_is_one_that_a_file_holds(tmp_path):
    with pytest.raises(ValueError, match="^bpm: "):
        write_midi(EVENTS.replace("Tempo_120", "Tempo_3"),
                   tmp_path / "song.mid")
    assert not (tmp_path / "song.mid").exists()


def test_a_chord_s_name_may_have_any_character(tmp_path):
    path = tmp_path / "song.mid"
    write_midi(EVENTS.replace("Chord_C_maj", "Chord_C\u266f"), path)
    marker, = (m.text for m in mido.MidiFile(path, charset="utf-8").tracks[0]
               if m.type == "marker")
    assert marker == "C\u266f"


def test_a_turn_is_written_by_its_text():
    turn = Generation(None, tuple(
        Token(n, n, text, -1.0) for n, text in enumerate(
            ["xxbos", " n60", " d4", " xxsep", " d4", " n64", " d4"])), None)
    file = io.BytesIO()
    assert [n.start for n in write_midi(turn, file).notes] == [0, 480]
    assert file.getvalue()[:4] == b"MThd"


def test_what_is_no_music_makes_no_file(tmp_path):
    with pytest.raises(ValueError, match="no note"):
        write_midi("To be or not to be", tmp_path / "song.mid")
    assert not (tmp_path / "song.mid").exists()
