"""Expectations are worked out by hand from the formats' definitions: a bar has
4 beats, a beat 480 ticks, so 1/16 of a bar is 120 ticks."""

import pytest

from txl_client.music import Chord, Note, Tempo, read_events


def test_remi():
    music = read_events(
        "Bar_None Position_1/16 Tempo%20Class_mid Tempo%20Value_20 "
        "Position_1/16 Chord_C:maj "
        "Position_3/16 Note%20Velocity_16 Note%20On_60 Note%20Duration_7 "
        "Bar_None Position_16/16 Note%20Velocity_31 Note%20On_72 "
        "Note%20Duration_0")
    assert music.notes == (
        # 2/16 of a bar in; bin 7 is 8 eighths of a beat; bin 16 of 4 steps.
        Note(240, 480, 60, 64),
        # The second bar is at 1920, 15/16 of a bar more are 1800.
        Note(3720, 60, 72, 124))
    assert music.tempos == (Tempo(0, 110),)
    assert music.chords == (Chord(0, "C:maj"),)
    assert music.ignored == ()


def test_remi_xl_has_the_velocity_behind_the_pitch():
    music = read_events(
        ["Bar_None", "Position_5/16", "Note On_60", "Note Velocity_10",
         "Note Duration_3", "Note On_64", "Note Velocity_12",
         "Note Duration_3"])
    assert music.notes == (Note(480, 240, 60, 40), Note(480, 240, 64, 48))


def test_compound_word_has_the_values_themselves():
    music = read_events(
        "Bar_None Beat_0 Chord_F_maj Tempo_96 Note_Pitch_65 Note_Velocity_70 "
        "Note_Duration_480 Beat_6 Note_Pitch_60 Note_Velocity_50 "
        "Note_Duration_0 Bar_None Beat_2 Tempo_100 EOS_None")
    assert music.notes == (Note(0, 480, 65, 70), Note(720, 60, 60, 50))
    assert music.chords == (Chord(0, "F_maj"),)
    assert music.tempos == (Tempo(0, 96), Tempo(2160, 100))
    assert music.ignored == ()


def test_musicautobot_goes_on_in_steps_of_a_quarter_of_a_beat():
    music = read_events(
        "xxbos xxpad n60 d4 n64 d8 xxsep d2 n67 d1 xxsep d16 n60 d4 mt0 xxeos")
    assert music.notes == (
        Note(0, 480, 60, 80), Note(0, 960, 64, 80), Note(240, 120, 67, 80),
        # 2 + 16 steps of 120 ticks.
        Note(2160, 480, 60, 80))
    assert music.ignored == ()


def test_music_that_goes_on_behind_a_prompt_begins_in_its_bar():
    music = read_events("Position_9/16 Note%20On_60 Note%20Duration_7 "
                        "Bar_None Position_1/16 Note%20On_62 "
                        "Note%20Duration_7")
    assert [note.start for note in music.notes] == [960, 1920]


def test_an_empty_bar_is_a_bar():
    music = read_events("Bar_None Bar_None Bar_None Beat_1 Note_Pitch_60 "
                        "Note_Velocity_9 Note_Duration_120")
    assert music.notes == (Note(2 * 1920 + 120, 120, 60, 9),)


@pytest.mark.parametrize("name, base", [("slow", 30), ("mid", 90),
                                        ("fast", 150)])
def test_a_tempo_is_its_class_and_its_value(name, base):
    music = read_events([f"Tempo Class_{name}", "Tempo Value_7"])
    assert music.tempos == (Tempo(0, base + 7),)


def test_a_note_never_has_a_velocity_that_would_end_it():
    notes = read_events("Note%20Velocity_0 Note%20On_60 Note%20Duration_0 "
                        "Note%20Velocity_32 Note%20On_60 Note%20Duration_0"
                        ).notes
    assert [note.velocity for note in notes] == [1, 127]


def test_what_says_nothing_where_it_stands_is_named():
    music = read_events("Note%20Duration_3 Hello%20World d4 n60 d0 "
                        "Instrument_0 n61 d4")
    assert music.ignored == ("Note Duration_3", "Hello World", "d4", "d0",
                             "Instrument_0")
    assert [note.pitch for note in music.notes] == [61]


@pytest.mark.parametrize("event", [
    "Position_x/16", "Position_1/0", "Note%20On_128", "Note%20On_high",
    "Tempo%20Class_andante", "Tempo_0", "Beat_None"])
def test_a_value_that_is_none_is_an_error_that_names_it(event):
    with pytest.raises(ValueError) as caught:
        read_events(event)
    assert event.replace("%20", " ") in str(caught.value)


@pytest.mark.parametrize("events", [
    b"n60 d4", None, 5, {"n60", "d4"}, {"n60": "d4"}])
def test_what_is_no_list_of_events_is_refused(events):
    with pytest.raises(TypeError, match="^events: "):
        read_events(events)


def test_an_event_that_is_no_text_is_named():
    for event in (None, 60, b"d4"):
        with pytest.raises(TypeError, match=r"^events\[1\]: "):
            read_events(["n60", event])
    with pytest.raises(ValueError, match=r"^events\[0\]: "):
        read_events("Chord_\ud800")


def test_events_may_come_one_by_one():
    assert [n.pitch for n in read_events(iter(["n60", "d4"])).notes] == [60]


def test_the_order_of_the_names_families_does_not_matter():
    # A percent sign of a name comes as %25.
    assert read_events(["100%25_1"]).ignored == ("100%_1",)
