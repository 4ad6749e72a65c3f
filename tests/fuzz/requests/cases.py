"""Which requests are made: case N of a seed is always the same one."""

import dataclasses
import random

import values
from fields import COMPLETION, HTTP_MUST, INPUT_OF, METHODS

# A session's states, and how often each is drawn. Of `none` no session is
# named; `absent` never was; `ended` was deleted; `foreign` is another tenant's;
# `busy` has a turn; `limit` has no room for a token.
STATES = {"filled": 40, "none": 18, "fresh": 12, "stored": 5, "imported": 5,
          "limit": 6, "busy": 6, "absent": 3, "ended": 3, "foreign": 3}
UNKNOWN_SESSION = ("absent", "ended", "foreign")
INPUTS = ("text", "tokens.ids")
_PROMPTS = (*INPUTS, "prompt")
_SENT_AGAIN = ("request_id", "received.seed")


@dataclasses.dataclass
class Case:
    number: int
    name: str            # of the method
    state: str
    fields: dict         # path: value, that of a changed field too
    changes: dict        # path: how
    doors: list          # those that it is sent through

    @property
    def method(self):
        return METHODS[self.name]

    def field(self, path):
        http = self.method.http
        return self.method.fields.get(path) or http.more[path]

    def alike(self):
        """Whether both doors have to take it alike."""
        return (len(self.doors) == 2 and self.state != "busy" and
                not self.changes.keys() & {"session_id", "new_session_id"} and
                bool(self.refusals("grpc")) == bool(self.refusals("http")))

    def at_random(self):
        """Whether its tokens may be drawn with a seed of the server's."""
        return {"sampling.seed", "sampling.temperature"} <= self.changes.keys()

    def refusals(self, door):
        """Paths of the changes for each of which it has to be refused."""
        paths = [p for p, how in self.changes.items() if self._refused(
            p, how, door)]
        if self.name in INPUT_OF and not any(p in self.fields for p in INPUTS):
            paths += INPUTS
        return paths

    def _refused(self, path, how, door):
        field = self.field(path)
        if door == "http":
            if how == "other" and path in INPUTS and \
                    self.method.http.names is COMPLETION and \
                    self.fields[path] in (["a"], [[1]]):
                return False  # a list of prompts
            if path == "stop.max_tokens" and how in values.OF_VALUE and \
                    "max_completion_tokens" in self.fields:
                return False  # that one counts
            if how in ("absent", "null"):
                if path == "alternatives":
                    return False  # then it is Score
                if (self.name, path) in HTTP_MUST:
                    return True
            # Where one name stands for text and ids, an empty one is none; a
            # path's empty id is no id.
            if how == "empty" and path in INPUTS and \
                    self.method.http.names is COMPLETION:
                return False
            if how == "unknown":
                return self.method.http.strict
            if how == "below" and field.kind == "seed":
                return False
            if (path == "stop.max_tokens" and how == "below" and
                    self.fields.get("echo")):
                return False  # 0: the prompt alone
            if path == "sampling.top_k" and how == "below":
                return False  # -1: as 0
        if path in ("text", "prompt", "messages") and how != "empty" and \
                "unknown" in self.changes:
            return False
        if self.name.startswith("AdminService") and path == "tenant" and \
                how == "empty":
            return field.must
        return values.refused(field, how, door,
                              door == "http" and self.method.http.query)


def scores_echo_again(fields):
    """Whether the prompt would be scored behind itself: HTTP refuses it, gRPC
    has no echo."""
    scored = fields.get("output.logprobs") is not None or \
        fields.get("output.logprob_token_ids") or fields.get("logprobs")
    return bool("echo" in fields and scored and
                any(path in fields for path in _SENT_AGAIN))


class Maker:
    def __init__(self, seed, limits, only=""):
        """`limits`: GetModel's, and vocabulary_size. `only`: of one method."""
        self._seed, self._limits = seed, limits
        self._names = [n for n in METHODS if only in n]

    def make(self, number):
        rng = random.Random(f"{self._seed}/{number}")
        name = rng.choices(self._names,
                           [METHODS[n].weight for n in self._names])[0]
        method = METHODS[name]
        fields = dict(method.base)
        state = "none"
        if method.states:
            state = rng.choices(list(STATES), list(STATES.values()))[0]
            if state == "none" and not self._drop_session(method, fields):
                state = "filled"
        self._add_legal(rng, name, fields)
        changes = self._change(rng, method, fields)
        case = Case(number, name, state, fields, changes, [])
        case.doors = self._doors(rng, case)
        return case

    @staticmethod
    def _drop_session(method, fields):
        if method.fields["session_id"].must:
            return False
        del fields["session_id"]
        return True

    def _add_legal(self, rng, name, fields):
        """Other values that are legal, so that all paths are taken."""
        method = METHODS[name]
        if "tokens.ids" in fields and rng.random() < 0.4:
            del fields["tokens.ids"]
            fields["text"] = "To be"
        every = {**method.fields, **(method.http.more if method.http else {})}
        for path, field in every.items():
            if path in (*fields, *INPUTS, "session_id", "tenant") or \
                    field.relative or \
                    rng.random() > (0.4 if field.kind == "flag" else 0.04):
                continue
            how = "high" if field.kind == "flag" else rng.choice(
                ("low", "high"))
            legal = values.value(field, how,
                                 self._limits, rng)
            if legal is not values.NOTHING:
                fields[path] = legal
        if "echo" in fields and rng.random() < 0.3:
            fields["stop.max_tokens"] = 0  # the prompt alone
        elif "stream" in every and "session_id" not in fields and \
                rng.random() < 0.2:
            fields["n"] = 2
        if scores_echo_again(fields):
            for path in _SENT_AGAIN:
                fields.pop(path, None)
        if name == "chat":
            fields.pop("stop.max_tokens" if "max_completion_tokens" in fields
                       else "", None)

    def _change(self, rng, method, fields):
        every = dict(method.fields)
        if method.http:
            every.update(method.http.more)
        if not every:
            return {}
        changes = {}
        weights = [8 if p in (*INPUTS, "session_id") or f.must else
                   3 if p in method.base else 1
                   for p, f in every.items()]
        for path in rng.choices(list(every), weights,
                                k=rng.choices((0, 1, 2), (5, 65, 30))[0]):
            how = rng.choice(values.HOWS)
            taken = path in changes or path in _PROMPTS and any(
                i in changes for i in _PROMPTS)
            if taken or not self._apply(rng, every[path], path, how, fields):
                continue
            changes[path] = how
            if path in INPUTS:  # one of them
                for other in INPUTS:
                    if other != path:
                        fields.pop(other, None)
        return changes

    def _apply(self, rng, field, path, how, fields):
        """Changes `fields`; False: there is no such change."""
        if how in ("absent", "null", "misspelt"):
            if how == "misspelt" and len(path.rpartition(".")[2]) < 5:
                return False
            fields.pop(path, None)
            return True
        if how in ("doubled", "unknown"):
            if path not in fields:
                fields[path] = values.value(field, "high", self._limits, rng)
            if fields[path] is not values.NOTHING:
                return True
            del fields[path]
            return False
        new = values.value(field, how, self._limits, rng)
        if new is values.NOTHING:
            return False
        fields[path] = new
        return True

    @staticmethod
    def _of_path(method, path, how):
        """Whether it is the session in an endpoint's path."""
        return (path == "session_id" and "{id}" in method.http.path and
                how in (*values.OF_VALUE, "absent"))

    def _doors(self, rng, case):
        method = case.method
        doors = []
        hows = set(case.changes.values())
        of_http = method.http.more if method.http else {}
        if case.fields.get("stop.max_tokens") == 0 and \
                "stop.max_tokens" not in case.changes:
            hows.add("misspelt")  # HTTP alone has that
        if method.grpc and not hows & {"null", "misspelt"} and \
                not any(p in of_http for p in case.changes):
            doors.append("grpc")
        if method.http and all(
                p in method.http.names or p in of_http or
                self._of_path(method, p, how)
                for p, how in case.changes.items()):
            doors.append("http")
        if len(doors) == 2 and hows & {"other", "doubled", "unknown"}:
            doors = [rng.choice(doors)]
        return doors
