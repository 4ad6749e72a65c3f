"""Notes from the events that music models write.

Three families, told apart by the names of their events:

- REMI, and the first form of remi-xl, with the same names in another order:
  Bar_None, Position_1/16, Note Velocity_16, Note On_60, Note Duration_7,
  Tempo Class_mid, Tempo Value_20, Chord_C:maj. Velocities and durations are
  numbers of bins: 4 steps of velocity, 1/8 beat.
- remi-xl of compound-word: Bar_None, Beat_0, Note_Pitch_60, Note_Velocity_64,
  Note_Duration_480, Tempo_120, Chord_C_maj. Durations are in ticks.
- musicautobot: n60 d4 is a note, xxsep d2 moves on in time; both count steps of
  1/4 beat.

The server writes a space in an event as %20.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from txl_client import checks

TICKS_PER_BEAT = 480
TICKS_PER_BAR = 4 * TICKS_PER_BEAT
_STEP = TICKS_PER_BEAT // 4  # of musicautobot, and of Beat_N
_BIN = TICKS_PER_BEAT // 8  # of REMI's durations
_TEMPO_CLASSES = {"slow": 30, "mid": 90, "fast": 150}
_DEFAULT_VELOCITY = 80

_SHORT = re.compile(r"(n|d)(\d+)")
# Marks of the beginning, end and average tempo of a text; they do not sound.
_SILENT = re.compile(r"xx\w+|mt\d+|dummy\d+|EOS_None")


@dataclass(frozen=True)
class Note:
    """A note; times in ticks, TICKS_PER_BEAT to a quarter."""

    start: int
    duration: int
    pitch: int  # 60 is the middle C
    velocity: int  # 1 to 127


@dataclass(frozen=True)
class Tempo:
    """A tempo in beats per minute, from `start` on."""

    start: int
    bpm: int


@dataclass(frozen=True)
class Chord:
    """The chord that a model names."""

    start: int
    name: str


@dataclass(frozen=True)
class Music:
    """The content of a list of events."""

    notes: tuple[Note, ...]
    tempos: tuple[Tempo, ...]
    chords: tuple[Chord, ...]
    # Events of other families, and events without meaning at their place, such
    # as a duration without a pitch.
    ignored: tuple[str, ...]


def read_events(events: str | Iterable[str]) -> Music:
    """The music of events, or of a text in which spaces separate events.

    ValueError for an event whose value is not one of its kind.
    """
    reader = _Reader()
    if isinstance(events, str):
        events = events.split()
    for event in checks.texts("events", events):
        reader.take(urllib.parse.unquote(event))
    return Music(tuple(reader.notes), tuple(reader.tempos),
                 tuple(reader.chords), tuple(reader.ignored))


class _Reader:
    """Reads event by event; a duration completes its note."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.tempos: list[Tempo] = []
        self.chords: list[Chord] = []
        self.ignored: list[str] = []
        self._event = ""  # that is being read
        self._bar = 0
        self._now = 0
        self._begun = False
        self._pitch: int | None = None
        self._velocity: int | None = None
        self._tempo_class = _TEMPO_CLASSES["mid"]
        self._separated = False  # True: the next d moves on in time
        self._named: dict[str, Callable[[str], None]] = {
            "Bar": self._take_bar,
            "Position": self._take_position,
            "Beat": lambda v: self._go_to(int(v) * _STEP),
            "Note Velocity": lambda v: self._set_velocity(4 * int(v)),
            "Note_Velocity": lambda v: self._set_velocity(int(v)),
            "Note On": lambda v: self._set_pitch(int(v)),
            "Note_Pitch": lambda v: self._set_pitch(int(v)),
            "Note Duration": lambda v: self._emit(_BIN * (int(v) + 1)),
            "Note_Duration": lambda v: self._emit(int(v) or _BIN),
            "Tempo Class": self._take_tempo_class,
            "Tempo Value": lambda v: self._set_tempo(
                self._tempo_class + int(v)),
            "Tempo": lambda v: self._set_tempo(int(v)),
            "Chord": self._take_chord,
        }

    def take(self, event: str) -> None:
        """One event, with its spaces."""
        self._event = event
        short = _SHORT.fullmatch(event)
        if short:
            self._take_short(short.group(1), int(short.group(2)))
        elif _SILENT.fullmatch(event):
            self._separated = event == "xxsep"
        else:
            split = (str.partition if event.startswith("Chord_")
                     else str.rpartition)
            name, _, value = split(event, "_")
            try:
                self._named.get(name, self._ignore)(value)
            except (ValueError, KeyError, ZeroDivisionError) as error:
                raise ValueError(f"{event!r}: {value!r} is not a value of "
                                 f"{name}") from error

    def _ignore(self, _: str = "") -> None:
        self.ignored.append(self._event)

    def _take_short(self, kind: str, value: int) -> None:
        separated, self._separated = self._separated, False
        if kind == "n":
            self._set_pitch(value)
        elif separated:
            self._now += value * _STEP
        else:
            self._emit(value * _STEP)

    def _take_bar(self, _: str) -> None:
        # The first bar begins with its event. Music that continues a prompt may
        # begin without one.
        if self._begun:
            self._bar += 1
        self._go_to(0)

    def _take_position(self, value: str) -> None:
        part, _, parts = value.partition("/")
        self._go_to((int(part) - 1) * TICKS_PER_BAR // int(parts))

    def _go_to(self, ticks: int) -> None:
        """Moves to so many ticks after the beginning of the bar."""
        self._begun = True
        self._now = self._bar * TICKS_PER_BAR + ticks

    def _set_velocity(self, velocity: int) -> None:
        # In MIDI a note of velocity 0 ends another one.
        self._velocity = min(max(velocity, 1), 127)

    def _set_pitch(self, pitch: int) -> None:
        if not 0 <= pitch <= 127:
            raise ValueError(f"pitch {pitch} is not in [0, 127]")
        self._pitch = pitch

    def _emit(self, duration: int) -> None:
        pitch, self._pitch = self._pitch, None
        velocity, self._velocity = self._velocity, None
        if pitch is None or duration <= 0:
            self._ignore()
            return
        self._begun = True
        self.notes.append(Note(self._now, duration, pitch,
                               velocity or _DEFAULT_VELOCITY))

    def _take_tempo_class(self, value: str) -> None:
        self._tempo_class = _TEMPO_CLASSES[value]

    def _set_tempo(self, bpm: int) -> None:
        if bpm < 1:
            raise ValueError("a tempo must be at least 1")
        self.tempos.append(Tempo(self._now, bpm))

    def _take_chord(self, value: str) -> None:
        self.chords.append(Chord(self._now, value))
