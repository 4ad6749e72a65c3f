"""Calls that are made again until they are answered."""

import time

import paths  # pylint: disable=unused-import

import api
from life import event

ALREADY_EXISTS, _UNKNOWN, _DATA_LOSS = 6, 2, 15
_DRAIN = "FINISH_REASON_SERVER_DRAIN"
_HUNG = 60  # seconds that a call may take
# Another attempt makes sense (docs/api.md).
AGAIN = {"SESSION_BUSY", "SESSION_MOVED", "SUPERSEDED", "STORE_UNAVAILABLE", "NOT_READY",
          "DRAINING", "QUEUE_FULL", "NO_SESSION_MEMORY", "OVERLOADED"}


class Broken(Exception):
    """The connection ended before the answer."""


class Wrong(Exception):
    """The server answered what it may not."""


class Caller:
    """One client's connection. `fields`: api.message's."""

    def __init__(self, keeper, rng):
        self._keeper, self._rng = keeper, rng
        self._client = None
        self.heard = 0.0  # time.monotonic() when a server last said something

    def drop(self):
        if self._client is not None:
            self._client.connection.close()
        self._client = None

    def connected(self):
        if self._client is None:
            self._client = self._keeper.connect()
        return self._client

    def once(self, name, fields):
        """(status, response or None); raises Broken."""
        patience = self._keeper.stall or _HUNG
        try:
            status, response = self.connected().try_call(
                name, fields, patience, metadata=_routing(fields))
        except TimeoutError as error:
            self._give_up(f"{name}: {error}")
        except OSError as error:
            self.drop()
            raise Broken(str(error)) from error
        judge(name, status)
        self.heard = time.monotonic()
        return status, response

    def _give_up(self, what):
        """Nothing has come for too long: of one server that is wrong, of many
        another one may answer."""
        if self._keeper.stall is None:
            raise Wrong(what)
        self.drop()
        self._keeper.report.count("stalls")
        raise Broken(what)

    def call(self, name, fields):
        """(status, response or None, whether there were earlier attempts)."""
        again = False
        while True:
            try:
                return *self.once(name, fields), again
            except Broken:
                again = True
                self._keeper.report.count("calls_made_again")
                time.sleep(0.003)

    def generate(self, turn, checks, received, cut):
        """One attempt at a turn, whose events it takes on. True: to its end;
        False: the server drains. Raises Broken. `cut`: seconds after which
        this client gives the connection up, or None."""
        fields = dict(turn.fields)
        if received is not None:
            fields["received"] = {"seed": str(received),
                                  "tokenIds": turn.ids()}
        arrival = Arrival(turn, checks, received is not None)
        try:
            client = self.connected()
            stream = client.start("Generation.Generate", fields,
                                  metadata=_routing(fields))
        except OSError as error:
            self.drop()
            raise Broken(str(error)) from error
        try:
            self._read(client, stream, arrival, cut)
            status = client.finish(stream, _HUNG)
        except OSError as error:
            self.drop()
            # What came before the connection's end counts.
            arrival.take_all(stream)
            raise Broken(str(error)) from error
        judge("Generate", status)
        if status.code != api.OK:
            raise Refused(status)
        return arrival.end()

    def _read(self, client, stream, arrival, cut):
        end = time.monotonic() + (_HUNG if cut is None else cut)
        stall = self._keeper.stall or _HUNG
        while not stream.ended:
            client.connection.wait(lambda: stream.messages or stream.ended,
                                   min(end - time.monotonic(), stall))
            silent = not stream.messages
            if not silent:
                self.heard = time.monotonic()
            arrival.take_all(stream)
            if stream.ended or (time.monotonic() < end and not silent):
                continue
            if cut is not None and time.monotonic() >= end:
                self.drop()
                raise Broken("cut off by the client")
            self._give_up(f"a turn without a word for {stall} s")


def _routing(fields):
    """By which a proxy finds the server that had the session last."""
    session = fields.get("sessionId")
    return [("x-txl-session", session)] if session else []


def judge(name, status):
    # gRPC's own for calls that arrive as it shuts down: CANCELLED, no reason.
    if (status.code in (None, api.UNAVAILABLE) or status.reason in AGAIN or
            (status.code == api.CANCELLED and not status.reason)):
        raise Broken(str(status))
    if status.code in (_UNKNOWN, api.INTERNAL, _DATA_LOSS):
        raise Wrong(f"{name}: {status}")


class Refused(Exception):
    """The answer to a turn; `status`."""

    def __init__(self, status):
        super().__init__(str(status))
        self.status = status


class Checks:
    """What the events of an attempt have to keep; `lag`: tokens that a crash
    may take back after they were handed out."""

    def __init__(self, keeper, lag):
        self.keeper, self.lag = keeper, lag
        self.resumes = False  # the server was killed during the turn


class Arrival:
    """The events of one attempt, compared with those of earlier ones."""

    def __init__(self, turn, checks, sent_received):
        self._turn, self._checks = turn, checks
        self._held = len(turn.events)
        self._next = None
        self._finished = None
        self._started = False
        self._skips = sent_received

    def take_all(self, stream):
        for message in api.events(stream):
            self._take(message)
        stream.messages.clear()

    def _take(self, message):
        kind = message.WhichOneof("event")
        if self._finished is not None:
            raise Wrong(f"{kind} after Finished")
        if kind == "started":
            return self._start(message.started)
        if not self._started:
            raise Wrong(f"{kind} before Started")
        if kind == "finished":
            return self._finish(message.finished)
        for token in [message.token] if kind == "token" else \
                message.tokens.tokens:
            self._take_token(token)
        return None

    def _start(self, started):
        turn = self._turn
        if self._started:
            raise Wrong("Started twice")
        self._started = True
        if started.position != turn.start:
            raise Wrong(f"a turn starts at {started.position} instead of "
                        f"{turn.start}")
        if started.prompt_token_count != len(turn.prompt):
            raise Wrong(f"a prompt of {started.prompt_token_count} tokens "
                        f"instead of {len(turn.prompt)}")
        if turn.seed not in (None, started.seed):
            raise Wrong(f"seed {started.seed} instead of {turn.seed}")
        turn.seed = started.seed
        kept = started.replayed_token_count
        if kept < self._held - self._checks.lag:
            raise Wrong(f"{kept} tokens were kept of {self._held} received; "
                        f"{self._checks.lag} may get lost")
        self._checks.keeper.report.count("tokens_kept_in_crashes",
                                         min(kept, self._held))

    def _take_token(self, token):
        turn = self._turn
        if self._next is None:
            self._next = self._held if self._skips else 0
            if self._checks.resumes:
                self._checks.keeper.note_resumed()
        if token.index != self._next:
            raise Wrong(f"token {token.index} instead of {self._next}")
        self._next += 1
        got = event(token)
        if token.index == len(turn.events):
            turn.events.append(got)
        elif got != turn.events[token.index]:
            raise Wrong(f"token {token.index} is {got}, before it was "
                        f"{turn.events[token.index]}")

    def _finish(self, finished):
        turn = self._turn
        self._finished = finished
        tokens = len(turn.events)
        if self._reason() == _DRAIN and self._next is not None:
            # A crash took tokens back, and not all had been drawn again.
            tokens = self._next
        if self._next not in (None, tokens):
            raise Wrong(f"{self._reason()} after {self._next} tokens, "
                        f"{tokens} were there before")
        position = turn.start + len(turn.prompt) + tokens
        if finished.position != position:
            raise Wrong(f"finished at {finished.position} instead of "
                        f"{position}")
        usage = finished.usage
        if (usage.prompt_tokens, usage.generated_tokens) != (
                len(turn.prompt), tokens):
            raise Wrong(f"usage {usage.prompt_tokens} "
                        f"{usage.generated_tokens} instead of "
                        f"{len(turn.prompt)} {tokens}")

    def _reason(self):
        name = self._finished.DESCRIPTOR.fields_by_name["reason"].enum_type
        return name.values_by_number[self._finished.reason].name

    def end(self):
        """True: the turn's own end."""
        if self._finished is None:
            raise Wrong("OK without Finished")
        reason = self._reason()
        if reason == _DRAIN:
            return False
        self._turn.reason = reason
        self._turn.text = self._finished.text
        self._turn.stopped_by = self._finished.matched_stop_text
        return True
