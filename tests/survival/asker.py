"""A client without sessions whose prompts begin like others of its tenant. Each
answer is compared with that of a server without a prefix cache."""

import bisect
import http.client
import json
import threading
import time

import paths  # pylint: disable=unused-import

import api
from caller import AGAIN, Broken, Caller, Wrong, judge
from life import bits, event, tops

LEAST_ROWS = 16    # fewer are never found
MOST_TOKENS = 24   # of an answer
_TRUNKS = 3
_TRUNK_IDS = 160
_RECENT = 12
_DRAIN = "FINISH_REASON_SERVER_DRAIN"
_PATIENCE = 60


def common(one, other):
    """How many first ids are equal."""
    count = 0
    for left, right in zip(one, other):
        if left != right:
            break
        count += 1
    return count


class Tenant:
    """A tenant's prompts, and the keeper's server as its clients see it."""

    def __init__(self, keeper, name, key, http_port, rng, vocabulary):
        self.name, self.key, self.http_port = name, key, http_port
        self._keeper, self._vocabulary = keeper, vocabulary
        self._lock = threading.Lock()
        self._sent = []    # sorted; equal ones stand side by side
        self.trunks = [self.draw(rng, _TRUNK_IDS) for _ in range(_TRUNKS)]
        self.recent = []   # prompts, some with what followed

    def __getattr__(self, name):
        return getattr(self._keeper, name)

    def connect(self):
        client = self._keeper.connect()
        client.bearer = self.key
        return client

    def draw(self, rng, count):
        return [rng.randrange(self._vocabulary) for _ in range(count)]

    def note_sent(self, ids):
        with self._lock:
            bisect.insort(self._sent, tuple(ids))

    def note_answered(self, ids):
        with self._lock:
            self.recent = self.recent[1 - _RECENT:] + [list(ids)]

    def most_known(self, ids):
        """First ids of a prompt, sent once, that were sent besides."""
        with self._lock:
            wanted = tuple(ids)
            at = bisect.bisect_left(self._sent, wanted)
            around = self._sent[max(at - 1, 0):at + 2]
        around.remove(wanted)
        return max((common(each, ids) for each in around), default=0)


class Asker:
    """Asks until the keeper says that it is over."""

    def __init__(self, number, tenants, reference, rng):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.failure = None
        self._tenant = tenants[number % len(tenants)]
        self._others = [t for t in tenants if t is not self._tenant]
        self._caller = Caller(self._tenant, rng)
        self._reference, self._rng = reference, rng
        self._name = f"asker {number} of {self._tenant.name}"

    def _run(self):
        try:
            while not self._tenant.over.is_set():
                self._step()
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
            raise

    def _step(self):
        ids, stolen = self._prompt()
        kinds = [self._generate, self._score, self._alternatives,
                 self._complete, self._break_off]
        ask = self._rng.choices(kinds, [4, 3, 2, 3, 1])[0]
        try:
            ask(ids, stolen)
        except (Wrong, api.Failed) as error:
            self._tenant.report.violation(self._name, f"{ask.__name__} "
                                          f"{ids}: {error}")

    def _prompt(self):
        """(ids, whether another tenant sent them first)."""
        tenant, rng = self._tenant, self._rng
        if rng.random() < 0.1:
            other = rng.choice(self._others)
            if other.recent:
                return list(rng.choice(other.recent)), True
        if rng.random() < 0.02:
            tenant.trunks[rng.randrange(_TRUNKS)] = tenant.draw(rng, _TRUNK_IDS)
        trunk = rng.choice(tenant.trunks)
        if tenant.recent and rng.random() < 0.3:
            trunk = rng.choice(tenant.recent)
        least = LEAST_ROWS + 4
        cut = rng.choice([len(trunk), rng.randint(least, _TRUNK_IDS), 30, 31,
                          32, 33, 47, 64])
        tail = tenant.draw(rng, rng.choice([0, 1, 2, 5, rng.randint(0, 80)]))
        return trunk[:cut] + tail, False

    def _again(self, call):
        """`call()` until it is answered."""
        while True:
            try:
                return call()
            except Broken:
                self._tenant.report.count("asked_again")
                time.sleep(0.01)

    def _compare(self, ids, stolen, got, expected):
        """Both: (figures, usage's tokens of the prompt and cached ones)."""
        tenant, report = self._tenant, self._tenant.report
        figures, cached = got
        if figures != expected[0]:
            raise Wrong(f"{cached} cached tokens; {figures} instead of "
                        f"{expected[0]}")
        if expected[1] != 0:
            raise Wrong("the other server has a cache")
        known = tenant.most_known(ids)
        # What was sampled behind a prompt may happen to be what another has.
        most = known + MOST_TOKENS if known >= LEAST_ROWS else 0
        if cached > most:
            raise Wrong(f"{cached} cached tokens, but the tenant has sent "
                        f"{known} of them")
        report.count("answers_compared")
        report.count("cached_tokens", cached)
        report.count("answers_with_cached_tokens", int(cached > 0))
        report.count("prompts_of_another_tenant", int(stolen and not known))

    # Over gRPC.

    def _generate(self, ids, stolen):
        rng = self._rng
        fields = {"tokens": {"ids": ids},
                  "sampling": {"temperature": rng.choice([0, 0, 1]),
                               "seed": str(rng.getrandbits(40))},
                  "stop": {"maxTokens": rng.randint(1, MOST_TOKENS)},
                  "output": {"logprobs": rng.randint(0, 4)}}

        def call():
            client = self._connected()
            self._tenant.note_sent(ids)
            try:
                status, events = client.try_generate(fields, _PATIENCE)
            except OSError as error:
                self._caller.drop()
                raise Broken(str(error)) from error
            judge("Generate", status)
            return _turn_of(status, events)
        got = self._again(call)
        with self._reference.client() as plain:
            expected = _turn_of(*plain.try_generate(fields, _PATIENCE))
        self._compare(ids, stolen, got, expected)
        self._tenant.note_answered(ids + [each[0] for each in got[0][0]])

    def _connected(self):
        try:
            return self._caller.connected()
        except OSError as error:
            raise Broken(str(error)) from error

    def _unary(self, name, fields, ids):
        def call():
            self._tenant.note_sent(ids)
            return self._caller.once(name, fields)
        status, response = self._again(call)
        if status.code != api.OK:
            raise Wrong(f"{name}: {status}")
        return response

    def _expected(self, name, fields):
        # A connection that was kept while the other server started may have
        # been idle for too long.
        with self._reference.client() as plain:
            return plain.call(name, fields, timeout=_PATIENCE)

    def _score(self, ids, stolen):
        fields = {"tokens": {"ids": ids}, "logprobs": self._rng.randint(0, 4)}
        name = "Generation.Score"
        self._compare(ids, stolen, _scores_of(self._unary(name, fields, ids)),
                      _scores_of(self._expected(name, fields)))
        self._tenant.note_answered(ids)

    def _alternatives(self, ids, stolen):
        rng, tenant = self._rng, self._tenant
        begin = tenant.draw(rng, rng.randint(0, 30))
        given = [begin + tenant.draw(rng, rng.randint(1, 20))
                 for _ in range(rng.randint(1, 6))]
        fields = {"tokens": {"ids": ids}, "returnTokens": True,
                  "alternatives": [{"tokens": {"ids": each}}
                                   for each in given]}
        name = "Generation.ScoreAlternatives"
        got = self._unary(name, fields, ids)
        self._compare(ids, stolen, _alternatives_of(got),
                      _alternatives_of(self._expected(name, fields)))

    # Over HTTP.

    def _complete(self, ids, stolen):
        rng = self._rng
        body = {"prompt": ids, "seed": rng.getrandbits(40),
                "temperature": rng.choice([0, 1]), "n": rng.choice([1, 1, 3]),
                "max_tokens": rng.randint(1, MOST_TOKENS)}
        if rng.random() < 0.6:
            body["logprobs"] = rng.randint(0, 4)
            body["echo"] = rng.random() < 0.5
        if "logprobs" in body and body["echo"] and rng.random() < 0.5:
            body["max_tokens"] = 0

        def call():
            self._tenant.note_sent(ids)
            return _post(self._tenant.http_port, body, self._tenant.key)
        got = self._again(call)
        self._compare(ids, stolen, got, _post(self._reference.http_port, body))

    def _break_off(self, ids, stolen):
        """A stream that is left in its prompt or its first tokens."""
        del stolen
        body = {"prompt": ids, "max_tokens": 200, "stream": True,
                "ignore_eos": True}
        self._tenant.note_sent(ids)
        line = http.client.HTTPConnection("127.0.0.1", self._tenant.http_port,
                                          timeout=_PATIENCE)
        try:
            line.request("POST", "/v1/completions", json.dumps(body),
                         _headers(self._tenant.key))
            time.sleep(self._rng.uniform(0, 0.03))
        except (OSError, http.client.HTTPException):
            pass
        finally:
            line.close()
        self._tenant.report.count("streams_left")


def _turn_of(status, events):
    if status.code != api.OK:
        raise Wrong(f"Generate: {status}")
    finished = events[-1].finished
    reasons = finished.DESCRIPTOR.fields_by_name["reason"].enum_type
    reason = reasons.values_by_number[finished.reason].name
    if reason == _DRAIN:
        raise Broken(reason)
    tokens = [event(each.token) for each in events if each.HasField("token")]
    return ((tokens, reason, finished.text, finished.position),
            finished.usage.cached_tokens)


def _scored(tokens):
    return [(each.token_id,
             bits(each.logprob) if each.HasField("logprob") else None,
             tops(each), each.text) for each in tokens]


def _scores_of(response):
    return ((_scored(response.tokens), response.sum_logprob),
            response.usage.cached_tokens)


def _alternatives_of(response):
    return ([(_scored(each.tokens), each.sum_logprob)
             for each in response.scores], response.usage.cached_tokens)


def _headers(key):
    headers = {"Content-Type": "application/json"}
    return headers | {"Authorization": f"Bearer {key}"} if key else headers


def _post(port, body, key=""):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        line.request("POST", "/v1/completions", json.dumps(body),
                     _headers(key))
        answer = line.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Broken(str(error)) from error
    finally:
        line.close()
    if answer.status in (429, 503):
        code = json.loads(text)["error"].get("code")
        if code in AGAIN | {"SERVER_DRAIN"}:
            raise Broken(code)
    if answer.status != 200:
        raise Wrong(f"HTTP {answer.status} {text[:300]}")
    got = json.loads(text)
    figures = [(each["text"], each["finish_reason"], each["logprobs"])
               for each in got["choices"]]
    return figures, got["usage"]["prompt_tokens_details"]["cached_tokens"]
