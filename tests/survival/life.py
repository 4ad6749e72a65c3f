"""A session as its client knows it: what the server acknowledged."""

import dataclasses
import struct


def bits(logprob):
    """The float's 32 bits."""
    return struct.unpack("<I", struct.pack("<f", logprob))[0]


def tops(token):
    return [(top.token_id, bits(top.logprob)) for top in token.top_logprobs]


def event(token):
    """What two events of the same token have to agree in."""
    return (token.token_id, bits(token.logprob), token.text, tops(token))


@dataclasses.dataclass
class Turn:
    """A Generate; `fields`: as sent, without `received`."""
    fields: dict
    start: int
    prompt: list
    events: list = dataclasses.field(default_factory=list)
    seed: int | None = None
    reason: str = ""    # empty: it was left broken off
    text: str = ""      # Finished.text
    stopped_by: str = ""

    def ids(self):
        return [each[0] for each in self.events]


@dataclasses.dataclass
class Append:
    fields: dict
    start: int
    ids: list
    scored: list | None = None  # (id, bits or None, text)


@dataclasses.dataclass
class Reset:
    """From here on the session is one that holds `ids`: made, forked,
    rewound."""
    ids: list


class Life:
    """One session from its creation on."""

    def __init__(self, name, ids=()):
        self.name = name
        self.ids = list(ids)   # acknowledged for good
        self.steps = [Reset(list(ids))]
        self.pending = None    # a Turn whose end nobody was told
        self.floor = len(self.ids)  # tokens that no crash may take
        self.deleted = False
        self.lost = False      # a violation was found: nothing more is asked

    def __str__(self):
        """Where it stands, for people."""
        text = f"at {len(self.ids)}, {self.floor} durable"
        if self.pending is not None:
            turn = self.pending
            text += (f", behind it a turn that was left: {len(turn.prompt)} + "
                     f"{len(turn.events)} tokens")
        last = [f"{type(step).__name__} at {getattr(step, 'start', 0)}"
                for step in self.steps[-3:]]
        return f"{text}; last steps: {', '.join(last)}"

    def take(self, turn):
        """An acknowledged turn."""
        self.settle()
        self.steps.append(turn)
        self.ids += turn.prompt + turn.ids()
        self.floor = len(self.ids)

    def take_append(self, append):
        self.settle()
        self.steps.append(append)
        self.ids += append.ids
        self.floor = len(self.ids)

    def rewind(self, position):
        self.settle()
        del self.ids[position:]
        self.steps.append(Reset(list(self.ids)))
        self.floor = position

    def settle(self):
        """The turn that is pending stays as it was seen: something later was
        acknowledged."""
        turn, self.pending = self.pending, None
        if turn is None or not turn.events:
            return
        self.steps.append(turn)
        self.ids += turn.prompt + turn.ids()
        self.floor = len(self.ids)

    def seen(self, position, found):
        """What is wrong with the ids that the server says the session holds;
        empty: nothing. A pending turn takes them on."""
        if len(found) != position:
            return f"position {position}, but {len(found)} token ids"
        if position < self.floor:
            return f"position {position}, but {self.floor} were durable"
        if found[:len(self.ids)] != self.ids:
            return "other token ids: " + difference(self.ids, found)
        rest = found[len(self.ids):]
        turn = self.pending
        if not rest:
            if turn is not None:
                turn.events.clear()
            return ""
        if turn is None:
            return f"{len(rest)} token ids too many: {rest[:8]}"
        sampled = rest[len(turn.prompt):]
        if rest[:len(turn.prompt)] != turn.prompt or not sampled:
            return "a part of a turn's prompt: " + difference(turn.prompt, rest)
        known = turn.ids()
        common = min(len(known), len(sampled))
        if known[:common] != sampled[:common]:
            return "a turn has other tokens: " + difference(known, sampled)
        del turn.events[common:]
        # Those that were on their way to the client: only their ids are known.
        turn.events += [(token, None, None, None)
                        for token in sampled[common:]]
        return ""


def difference(expected, found):
    """Where two lists differ first."""
    for at, (left, right) in enumerate(zip(expected, found)):
        if left != right:
            return f"at {at} {right} instead of {left}"
    return f"{len(found)} instead of {len(expected)}"
