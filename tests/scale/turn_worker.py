"""A client that goes on with sessions turn by turn, in its own way of talking
to servers, and relies on the retries of that way."""

import dataclasses
import threading

_PROMPTS = ["ROMEO:", "JULIET:\nWhat", " the king", "\n\n"]
PATIENCE = 180  # seconds for one call, whatever happens to the fleet


class Failed(Exception):
    """A call that has to succeed has not."""


@dataclasses.dataclass(frozen=True)
class Ask:
    """What a session is asked for."""
    prompt: str  # empty: the text goes on
    seed: int
    tokens: int  # 0: the prompt is fed, nothing is generated
    streamed: bool


@dataclasses.dataclass
class _Life:
    session: object
    turns: list = dataclasses.field(default_factory=list)  # (Ask, answer)
    ids: list = dataclasses.field(default_factory=list)    # what is there
    lost: bool = False  # a violation was found: nothing more is asked


class TurnWorker:
    """`kind`: a class of sessions, made of a door to servers and a name, with
    create(), turn(ask) -> answer, ids(), close(), `name`, KIND, and APPENDS:
    whether an Ask without tokens is possible. An answer is anything that two
    equal turns have equal. Sessions raise Failed."""

    def __init__(self, number, kind, fleet, rng):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.failure = None
        self._lives = []
        self._number, self._kind = number, kind
        self._fleet, self._rng = fleet, rng

    def names(self):
        """Of all sessions that were made."""
        return {life.session.name for life in self._lives}

    def _run(self):
        try:
            while not self._fleet.over.is_set():
                name = f"{self._kind.KIND}{self._number}-{len(self._lives)}"
                self._live(_Life(self._kind(self._fleet, name)))
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
            raise

    def _live(self, life):
        self._lives.append(life)
        try:
            life.session.create()
            for turn in range(self._rng.randint(2, 8)):
                ask = self._draw(turn)
                life.turns.append((ask, life.session.turn(ask)))
                self._fleet.report.count(f"{self._kind.KIND}_turns")
                if self._fleet.over.is_set():
                    return
        except Failed as error:
            self._lose(life, f"{self._kind.KIND}: {error}")

    def _lose(self, life, text):
        life.lost = True
        self._fleet.report.violation(life.session.name, text)

    def _draw(self, turn):
        rng = self._rng
        goes_on = turn > 0 and rng.random() < 0.3
        feeds = self._kind.APPENDS and not goes_on and rng.random() < 0.15
        return Ask("" if goes_on else rng.choice(_PROMPTS),
                   rng.getrandbits(63), 0 if feeds else rng.randint(1, 150),
                   rng.random() < 0.5)

    def look(self):
        """What the fleet has of every session."""
        for life in self._lives:
            try:
                if not life.lost:
                    life.ids = life.session.ids()
            except Failed as error:
                self._lose(life, f"{self._kind.KIND}: {error}")
            life.session.close()

    def replay(self, door):
        """The same turns on servers without faults give the same answers, and
        sessions that hold the same."""
        for life in self._lives:
            if not life.lost:
                self._replay(life, self._kind(door, life.session.name))

    def _replay(self, life, session):
        report = self._fleet.report
        session.create()
        for ask, answer in life.turns:
            again = session.turn(ask)
            report.count(f"{self._kind.KIND}_turns_compared")
            if again != answer:
                report.violation(life.session.name, f"{ask}: {answer}, without "
                                 f"faults {again}")
        ids = session.ids()
        if ids != life.ids:
            report.violation(
                life.session.name, f"it holds {len(life.ids)} ids, without "
                f"faults {len(ids)}, or others")
        session.close()
