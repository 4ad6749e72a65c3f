"""The fields of every request: the one table that the generator draws from.

fields_test.py holds it against the descriptors of proto/txl/v1, the bounds that
their comments state, and what the HTTP front reads. A path is that of the proto
("sampling.top_k"); what only HTTP has goes by its name there.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Field:
    kind: str            # values.py says what values a kind has
    low: object = None   # smallest legal value (length, of texts and lists)
    high: object = None  # largest; a text: that limit of GetModel
    must: bool = False   # a request without it is refused
    open_low: bool = False  # `low` itself is past the end
    # What is legal depends on more than the field: the session, another field.
    relative: bool = False
    # Fields that an error about this one may name instead.
    also: tuple = ()


@dataclasses.dataclass(frozen=True)
class Http:
    """An endpoint, and how it names fields of the gRPC method's request."""
    verb: str
    path: str         # "{id}": where session_id stands
    names: dict       # path in the proto: name here; absent: not here
    more: dict = dataclasses.field(default_factory=dict)  # fields of its own
    strict: bool = True   # refuses unknown names; else misspelt ones alone
    query: bool = False   # fields stand in the query


@dataclasses.dataclass(frozen=True)
class Method:
    fields: dict
    base: dict           # a request that is taken; ID: the session's
    effect: str          # on the session: same, grows, rewinds, ends, makes
    http: Http = None
    admin: bool = False
    grpc: bool = True    # False: only HTTP has it
    weight: int = 1      # of so many cases
    states: bool = True  # names a session


ID = "\0id"    # the session that the case is about
NEW = "\0new"  # one that is not there yet
SMALL, LARGE = -(1 << 63), (1 << 63) - 1

NAME = Field("name", 1, 64)
SESSION = dataclasses.replace(NAME, must=True)
TEXT = Field("text", 1, "max_prompt_bytes", also=("input", "prompt", "alternatives"))
IDS = Field("ids", 1, "max_prompt_tokens", also=TEXT.also + ("tokens",))
FLAG = Field("flag")
UNKNOWN = Field("enum", 0, 2, relative=True)
LOGPROBS = Field("whole", 0, "max_logprobs")
NAMED = Field("ids", 0, "max_logprobs")
POSITION = Field("whole", 0, LARGE, relative=True)
TTL = Field("span", 1, 2592000)
PAGE_SIZE = Field("whole", 0, (1 << 31) - 1)
PAGE_TOKEN = Field("page")

SAMPLING = {
    "temperature": Field("real", 0, 100),
    "top_k": Field("whole", 0, "vocabulary_size"),
    "top_p": Field("real", 0, 1, open_low=True),
    "min_p": Field("real", 0, 1),
    "typical_p": Field("real", 0, 1, open_low=True),
    "repetition_penalty": Field("real", 0, 10, open_low=True),
    "presence_penalty": Field("real", -2, 2),
    "frequency_penalty": Field("real", -2, 2),
    "penalty_window": Field("whole", 0, 4096),
    "logit_bias": Field("bias", -100, 100),
    "seed": Field("seed", 0, (1 << 64) - 1, also=("received.seed",)),
    "min_tokens": Field("whole", 0, "max_tokens", relative=True),
    "allowed_token_ids": Field("ids", 0, "max_allowed_tokens",
                               also=("sampling.min_tokens",)),
    # The model of the tests has no kinds.
    "follow_kinds": dataclasses.replace(FLAG, relative=True),
}
STOP = {
    "max_tokens": Field("whole", 1, "max_tokens",
                        also=("sampling.min_tokens", "received")),
    "stop_texts": Field("texts", 0, "max_stop_texts"),
    "stop_token_ids": Field("ids", 0, "max_stop_tokens"),
    "ignore_end_token": FLAG,
    "include_stop_text": FLAG,
    # One without the other is refused.
    "token_count.id": Field("id", relative=True,
                            also=("stop.token_count.count",)),
    "token_count.count": Field("whole", 1, (1 << 31) - 1, relative=True,
                               also=("stop.token_count.id",)),
}
GENERATE = {
    "session_id": dataclasses.replace(NAME, also=("n",)),
    "text": TEXT,
    "tokens.ids": IDS,
    **{f"sampling.{name}": field for name, field in SAMPLING.items()},
    **{f"stop.{name}": field for name, field in STOP.items()},
    "output.logprobs": dataclasses.replace(LOGPROBS, also=("echo",)),
    "output.logprob_token_ids": dataclasses.replace(NAMED, also=("echo",)),
    "output.include_token_bytes": FLAG,
    "output.max_tokens_per_message": Field("whole", 1, 1024),
    # What is echoed with log-probabilities cannot be sent again.
    "request_id": dataclasses.replace(NAME, also=("echo",)),
    "expected_position": POSITION,
    "received.seed": Field("seed", 0, (1 << 64) - 1, relative=True,
                           also=("request_id", "echo")),
    "received.token_ids": Field("ids", 0, 4, relative=True,
                                also=("request_id", "received.seed", "echo")),
    "unknown": UNKNOWN,
    "priority": Field("whole", 0, 9),
}
SCORE = {"session_id": NAME, "text": TEXT, "tokens.ids": IDS,
         "logprobs": LOGPROBS, "unknown": UNKNOWN, "logprob_token_ids": NAMED}
ALTERNATIVES = {"session_id": NAME, "text": TEXT, "tokens.ids": IDS,
                "alternatives": Field("alternatives", 1, "max_alternatives",
                                      must=True, also=("return_tokens",)),
                "return_tokens": FLAG, "unknown": UNKNOWN}
CREATE = {"session_id": NAME, "ttl": TTL}
GET = {"session_id": SESSION, "include_tokens": FLAG, "page_size": PAGE_SIZE,
       "page_token": PAGE_TOKEN,
       "start_position": Field("whole", 0, LARGE, also=("page_token",))}
LIST = {"page_size": PAGE_SIZE, "page_token": PAGE_TOKEN}
APPEND = {"session_id": SESSION, "text": TEXT, "tokens.ids": IDS,
          "request_id": NAME, "expected_position": POSITION,
          "return_logprobs": FLAG, "unknown": UNKNOWN, "logprobs": LOGPROBS,
          "logprob_token_ids": NAMED}
FORK = {"session_id": SESSION, "new_session_id": NAME, "position": POSITION,
        "ttl": TTL, "request_id": NAME}
REWIND = {"session_id": SESSION,
          "position": dataclasses.replace(POSITION, must=True),
          "expected_position": POSITION, "request_id": NAME}
EXPORT = {"session_id": SESSION, "include_state": FLAG}
IMPORT = {"session_id": NAME, "ttl": TTL, "chunk": Field("file", must=True)}
TENANT_SESSION = {"tenant": NAME, "session_id": SESSION}

# The names in POST /v1/completions.
COMPLETION = {
    "session_id": "session_id", "text": "prompt", "tokens.ids": "prompt",
    **{f"sampling.{name}": name for name in SAMPLING},
    "stop.max_tokens": "max_tokens", "stop.stop_texts": "stop",
    "stop.stop_token_ids": "stop_token_ids",
    "stop.ignore_end_token": "ignore_eos",
    "stop.include_stop_text": "include_stop_str_in_output",
    "stop.token_count.id": "stop_token_count.id",
    "stop.token_count.count": "stop_token_count.count",
    "output.logprob_token_ids": "logprob_token_ids",
    "output.logprobs": "logprobs", "request_id": "request_id",
    "expected_position": "expected_position",
    "received.seed": "received.seed",
    "received.token_ids": "received.token_ids",
    "unknown": "unknown", "priority": "priority",
}
CHOICES = Field("whole", 1, 128, relative=True,
                also=("best_of", "prompt", "n", "received"))
# With it max_tokens may be 0.
ECHO = dataclasses.replace(FLAG, also=("max_tokens", "logprobs"))
# What completions and chat have beside them.
STREAMED = {
    "model": Field("model"),
    "n": CHOICES,
    "best_of": CHOICES,
    "stream": FLAG,
    "stream_options.include_usage": FLAG,
    "stream_options.continuous_usage_stats": FLAG,
    "stream_options.event_ids": FLAG,
    "return_token_ids": FLAG,
    "return_tokens_as_token_ids": FLAG,
    "user": Field("any"),
    "tools": Field("unserved"),
    "functions": Field("unserved"),
    "tool_choice": Field("unserved"),
    "response_format": Field("unserved"),
    "suffix": Field("unserved"),
}
CHAT = {path: name for path, name in COMPLETION.items()
        if name not in ("prompt", "logprobs")}


def same_names(fields, *left_out):
    """This server's own endpoints have the fields of their methods."""
    return {path: path.removesuffix(".ids") for path in fields
            if path not in left_out}


METHODS = {
    "GenerationService/Generate": Method(
        GENERATE, {"session_id": ID, "tokens.ids": [1, 2, 3],
                   "sampling.temperature": 0, "sampling.seed": 7,
                   "stop.max_tokens": 4}, "grows",
        Http("POST", "/v1/completions", COMPLETION,
             {**STREAMED, "echo": ECHO, "prompt": Field("prompts", relative=True)},
             strict=False), weight=20),
    "chat": Method(
        {path: GENERATE[path] for path in CHAT},
        {"session_id": ID, "messages": [{"role": "user", "content": "ab"}],
         "sampling.temperature": 0, "stop.max_tokens": 4}, "grows",
        Http("POST", "/v1/chat/completions", CHAT,
             {**STREAMED, "messages": Field("messages", must=True, relative=True),
              "max_completion_tokens": STOP["max_tokens"], "logprobs": FLAG,
              "top_logprobs": dataclasses.replace(LOGPROBS, relative=True)},
             strict=False), grpc=False, weight=4),
    "GenerationService/Score": Method(
        SCORE, {"session_id": ID, "tokens.ids": [4, 5]}, "same",
        Http("POST", "/v1/score", same_names(SCORE)), weight=3),
    "GenerationService/ScoreAlternatives": Method(
        ALTERNATIVES, {"session_id": ID, "text": "to be",
                       "alternatives": ["ab", [1, 2]]}, "same",
        Http("POST", "/v1/score", same_names(ALTERNATIVES)), weight=3),
    "SessionService/CreateSession": Method(
        CREATE, {"session_id": NEW, "ttl": 600}, "makes",
        Http("POST", "/v1/sessions", same_names(CREATE)), weight=2,
        states=False),
    "SessionService/GetSession": Method(
        GET, {"session_id": ID, "include_tokens": True}, "same",
        Http("GET", "/v1/sessions/{id}", same_names(GET, "session_id"),
             query=True), weight=2),
    "SessionService/ListSessions": Method(
        LIST, {"page_size": 2}, "same",
        Http("GET", "/v1/sessions", same_names(LIST), query=True),
        states=False),
    "SessionService/DeleteSession": Method(
        {"session_id": SESSION}, {"session_id": ID}, "ends",
        Http("DELETE", "/v1/sessions/{id}", {}, query=True)),
    "SessionService/AppendTokens": Method(
        APPEND, {"session_id": ID, "tokens.ids": [6, 7]}, "grows",
        Http("POST", "/v1/sessions/{id}/append",
             same_names(APPEND, "session_id")), weight=4),
    "SessionService/ForkSession": Method(
        FORK, {"session_id": ID, "new_session_id": NEW}, "same",
        Http("POST", "/v1/sessions/{id}/fork", same_names(FORK, "session_id")),
        weight=3),
    "SessionService/RewindSession": Method(
        REWIND, {"session_id": ID, "position": 0}, "rewinds",
        Http("POST", "/v1/sessions/{id}/rewind",
             same_names(REWIND, "session_id")), weight=4),
    "SessionService/ExportSession": Method(
        EXPORT, {"session_id": ID}, "same"),
    "SessionService/ImportSession": Method(
        IMPORT, {"session_id": NEW, "chunk": b""}, "makes", weight=2,
        states=False),
    "ModelService/GetModel": Method(
        {}, {}, "same", Http("GET", "/v1/models", {}, strict=False,
                           query=True), states=False),
    "ModelService/GetServerStatus": Method(
        {}, {}, "same", Http("GET", "/v1/status", {}, query=True),
        states=False),
    "ModelService/Tokenize": Method(
        {"text": dataclasses.replace(TEXT, low=0), "unknown": UNKNOWN,
         "midi": Field("midi")},
        {"text": "ROMEO:"}, "same",
        Http("POST", "/tokenize", {"text": "prompt", "unknown": "unknown",
                                   "midi": "midi"}, strict=False),
        weight=2, states=False),
    "ModelService/Detokenize": Method(
        {"token_ids": dataclasses.replace(IDS, low=0)},
        {"token_ids": [1, 2]}, "same",
        Http("POST", "/detokenize", {"token_ids": "tokens"}, strict=False),
        weight=2, states=False),
    "AdminService/ListTenantSessions": Method(
        {"tenant": NAME, **LIST}, {"tenant": "alice", "page_size": 2}, "same",
        admin=True, states=False),
    "AdminService/MoveOutSession": Method(
        TENANT_SESSION, {"tenant": "alice", "session_id": ID}, "same", admin=True),
    "AdminService/EndSession": Method(
        TENANT_SESSION, {"tenant": "alice", "session_id": ID}, "ends", admin=True),
    # Not "alice" nor "bob", whose sessions these are.
    "AdminService/DrainTenant": Method(
        {"tenant": dataclasses.replace(NAME, must=True), "undo": FLAG},
        {"tenant": "drained"}, "same", admin=True, states=False),
    "AdminService/GetQuotas": Method({}, {}, "same", admin=True, states=False),
    "AdminService/Reload": Method({}, {}, "same", admin=True, states=False),
    "AdminService/SetLogLevel": Method(
        {"level": Field("level", must=True)}, {"level": "warning"}, "same",
        admin=True, states=False),
    "AdminService/Dump": Method({}, {}, "same", admin=True, states=False),
}
# Would end the server.
LEFT_OUT = ("AdminService/DrainServer",)
# Where HTTP alone needs a field that the proto takes for empty when absent.
HTTP_MUST = {("ModelService/Tokenize", "text"),
             ("ModelService/Detokenize", "token_ids")}
# One of them has to be set.
INPUT_OF = ("GenerationService/Score", "SessionService/AppendTokens")
