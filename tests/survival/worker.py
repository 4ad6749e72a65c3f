"""A client that lives through the server's ends."""

import threading
import time

import paths  # pylint: disable=unused-import

import api
import draws
from caller import ALREADY_EXISTS, Broken, Caller, Checks, Refused, Wrong
from life import Append, Life, Turn, bits

_IDLE = 1  # SESSION_STATE_IDLE
_MOST_LIVES = 6
_MOST_IDS = 3000  # of a session; then it is deleted


class Worker:
    """Runs sessions of its own until the keeper says that it is over."""

    def __init__(self, number, keeper, rng, facts, lag):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.lives = []  # those that have been deleted, too
        self.failure = None
        self._number, self._keeper, self._rng = number, keeper, rng
        self._facts = facts
        self._caller = Caller(keeper, rng)
        self._checks = Checks(keeper, lag)
        # Some clients say what they have received, some do not.
        self._says_received = number % 2 == 0
        self._named = 0

    def _run(self):
        try:
            while not self._keeper.over.is_set():
                self._step()
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
            raise

    def _name(self, what):
        self._named += 1
        return f"{what}{self._number}-{self._named}"

    def has_heard_since(self, moment):
        """Whether a server has said something to it since."""
        return self._caller.heard > moment

    def living(self):
        return [life for life in self.lives
                if not life.deleted and not life.lost]

    def _step(self):
        living, rng = self.living(), self._rng
        if not living or (len(living) < _MOST_LIVES and rng.random() < 0.1):
            self._guarded(self._create, None)
            return
        life = rng.choice(living)
        steps = [(self._turn, 60), (self._append, 12), (self._verify, 8),
                 (self._fork, 8), (self._rewind, 8), (self._delete, 4)]
        step = rng.choices([s for s, _ in steps], [w for _, w in steps])[0]
        if len(life.ids) > _MOST_IDS:
            step = self._delete
        self._guarded(step, life)

    def _guarded(self, step, life):
        try:
            step(life)
        except Wrong as error:
            if life:
                life.lost = True
            self._keeper.report.violation(
                life.name if life else "-",
                f"{step.__name__.strip('_')}: {error}"
                + (f"; it was {life}" if life else ""))

    def _call(self, name, fields, life, allowed=()):
        status, response, again = self._caller.call(name, fields)
        if status.code == api.OK or status.reason in allowed:
            return status, response, again
        raise Wrong(f"{name} {fields}: {status} (position "
                    f"{len(life.ids) if life else '-'})")

    def _create(self, _):
        name = self._name("s")
        there = {life.name for life in self.lives
                 if life.lost or not life.deleted}
        free = [life.name for life in self.lives if life.name not in there]
        if free and self._rng.random() < 0.3:
            name = self._rng.choice(free)
        status, _, again = self._call("Session.CreateSession",
                                      {"sessionId": name}, None,
                                      ("SESSION_EXISTS",))
        if status.code == ALREADY_EXISTS and not again:
            raise Wrong(f"{name} is there before it was made")
        self._keeper.report.count("sessions")
        self.lives.append(Life(name))

    def found(self, life):
        """The position at which the server has it, which is checked."""
        while True:
            _, got, _ = self._call("Session.GetSession", {
                "sessionId": life.name, "includeTokens": True}, life)
            if got.session.state == _IDLE:
                break
            time.sleep(0.002)  # a turn whose connection was cut off
        session = got.session
        if session.durable_position > session.position:
            raise Wrong(f"durable_position {session.durable_position} > "
                        f"position {session.position}")
        self._look_at_last_turn(life, session)
        wrong = life.seen(session.position, list(got.token_ids))
        if wrong:
            raise Wrong(wrong)
        life.floor = max(life.floor, session.durable_position)
        return session.position

    def _look_at_last_turn(self, life, session):
        last, turn = session.last_turn, life.pending
        if last.outcome == "INTERRUPTED":
            self._keeper.report.count("interrupted")
            if turn is None:
                raise Wrong("INTERRUPTED, but every turn was ended")
        if turn is None or session.position == len(life.ids):
            return
        generated = session.position - turn.start - len(turn.prompt)
        name = turn.fields.get("requestId", "")
        got = (last.request_id, last.start_position, last.prompt_tokens,
               last.generated_tokens)
        if got != (name, turn.start, len(turn.prompt), generated):
            raise Wrong(f"last turn {got} instead of {name} {turn.start} "
                        f"{len(turn.prompt)} {generated}")

    def expect_gone(self, name):
        status, _, _ = self._caller.call("Session.GetSession",
                                         {"sessionId": name})
        if status.code != api.NOT_FOUND:
            raise Wrong(f"GetSession after a delete: {status}")

    def verify_all(self):
        """Every session that was ever made."""
        for life in self.living():
            self._guarded(self._verify, life)
        names = {life.name for life in self.living()}
        for life in self.lives:
            if life.deleted and life.name not in names:
                self._guarded(lambda gone: self.expect_gone(gone.name), life)

    def _verify(self, life):
        self.found(life)
        self._keeper.report.count("checks")

    def _turn(self, life):
        rng = self._rng
        # One without a name may begin where nobody knows of it.
        named = life.pending is not None or rng.random() < 0.9
        patient = named and rng.random() < 0.85
        fields, prompt = draws.turn(rng, self._facts.vocabulary,
                                    self._facts.texts, len(life.ids))
        while True:
            start = self.found(life) if life.pending else len(life.ids)
            if start == 0 and not prompt:
                prompt = list(self._facts.start_tokens)
            fields.update(sessionId=life.name, expectedPosition=str(start))
            if named:
                fields["requestId"] = self._name("r")
            turn = Turn(dict(fields), start, list(prompt))
            if self._attempts(life, turn, patient):
                return

    def _attempts(self, life, turn, patient):
        """False: the session is not where it was seen to be."""
        report, checks = self._keeper.report, self._checks
        run, again, cut = self._keeper.number, False, None
        if self._rng.random() < 0.1:
            cut = self._rng.uniform(0.001, 0.1)
        while True:
            received = turn.seed if self._says_received and again else None
            checks.resumes = run != self._keeper.number
            before = len(turn.events)
            try:
                if self._caller.generate(turn, checks, received, cut):
                    break
            except Broken:
                report.count("turns_broken_off")
            except Refused as refused:
                if (refused.status.reason == "POSITION_MISMATCH" and
                        life.pending and turn.seed is None):
                    return False
                raise Wrong(f"{refused} in run {self._keeper.number}; begun "
                            f"in run {run}, {len(turn.events)} tokens "
                            f"received, {turn.fields}") from refused
            finally:
                report.count("tokens", len(turn.events) - before)
            if turn.seed is not None:
                # Its intent is durable, and with it what was there before.
                life.settle()
            if not patient and life.pending is None:
                self._leave(life, turn)
                return True
            again, cut = True, None
            time.sleep(0.003)
        report.count("turns")
        report.count("turns_resumed", int(again))
        life.take(turn)
        return True

    def _leave(self, life, turn):
        """The turn stays as the server has it."""
        life.pending = turn
        sure = len(turn.events) - self._checks.lag
        if sure > 0:
            life.floor = turn.start + len(turn.prompt) + sure
        self._keeper.report.count("turns_left")

    def _append(self, life):
        rng = self._rng
        part, ids = draws.prompt(rng, self._facts.vocabulary,
                                 self._facts.texts)
        scored = rng.random() < 0.5
        while True:
            start = self.found(life) if life.pending else len(life.ids)
            fields = {"sessionId": life.name, "requestId": self._name("a"),
                      "returnLogprobs": scored, "expectedPosition": str(start),
                      **part}
            status, got, _ = self._call(
                "Session.AppendTokens", fields, life,
                ("POSITION_MISMATCH",) if life.pending else ())
            if got is not None:
                break
        if got.position != start + len(ids):
            raise Wrong(f"an append of {len(ids)} to {start} leads to "
                        f"{got.position}; {status}")
        append = Append(fields, start, ids)
        if scored:
            append.scored = [
                (each.token_id, bits(each.logprob)
                 if each.HasField("logprob") else None, each.text)
                for each in got.scored]
        life.take_append(append)
        self._keeper.report.count("appends")

    def _fork(self, life):
        rng = self._rng
        if life.pending:
            self.found(life)
            return
        position = rng.randint(0, len(life.ids))
        name = self._name("f")
        fields = {"sessionId": life.name, "newSessionId": name,
                  "position": str(position), "requestId": self._name("q")}
        _, got, _ = self._call("Session.ForkSession", fields, life)
        if got.session.position != position:
            raise Wrong(f"a fork at {position} is at {got.session.position}")
        self._keeper.report.count("forks")
        self.lives.append(Life(name, life.ids[:position]))

    def _rewind(self, life):
        if life.pending:
            self.found(life)
            return
        position = self._rng.randint(max(len(life.ids) - 300, 0),
                                     len(life.ids))
        _, got, _ = self._call("Session.RewindSession", {
            "sessionId": life.name, "position": str(position),
            "requestId": self._name("w")}, life)
        if got.session.position != position:
            raise Wrong(f"a rewind to {position} is at {got.session.position}")
        life.rewind(position)
        self._keeper.report.count("rewinds")

    def _delete(self, life):
        status, _, again = self._call("Session.DeleteSession",
                                      {"sessionId": life.name}, life,
                                      ("SESSION_UNKNOWN",))
        if status.code == api.NOT_FOUND and not again:
            raise Wrong("a session is gone before it is deleted")
        self.expect_gone(life.name)
        life.deleted, life.pending = True, None
        self._keeper.report.count("deletes")
