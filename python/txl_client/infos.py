"""The server's reports on sessions, on its model and on itself.

Fields have the names of the API, and docs/api.md explains them.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from txl_client.events import SamplingParams, StopConditions


class SessionState(str, enum.Enum):
    """The activity of a session."""

    UNSPECIFIED = "UNSPECIFIED"
    IDLE = "IDLE"
    BUSY = "BUSY"


@dataclass(frozen=True)
class LastTurn:
    """The last turn of a session."""

    request_id: str
    outcome: str
    start_position: int
    prompt_tokens: int
    generated_tokens: int


@dataclass(frozen=True)
class SessionInfo:
    """A session as the server sees it."""

    id: str = field(metadata={"proto": "session_id"})
    state: SessionState
    position: int
    create_time: datetime.datetime
    last_use_time: datetime.datetime
    expire_time: datetime.datetime
    ttl: datetime.timedelta
    memory_bytes: int
    last_turn: LastTurn | None
    durable_position: int


@dataclass(frozen=True)
class Limits:
    """Limits of a request. Beyond them: InvalidArgumentError, OVER_LIMIT."""

    max_prompt_tokens: int
    max_prompt_bytes: int
    max_tokens: int
    max_stop_texts: int
    max_stop_text_bytes: int
    max_stop_tokens: int
    max_logprobs: int
    max_logit_bias: int
    max_logit_bias_value: float
    max_message_bytes: int
    max_tokens_per_message: int
    min_ttl: datetime.timedelta
    max_ttl: datetime.timedelta
    max_queued_calls: int
    max_queued_tokens: int
    max_sessions: int
    max_session_tokens: int
    max_import_bytes: int
    max_alternatives: int
    max_allowed_tokens: int


@dataclass(frozen=True)
class ModelInfo:
    """The model that the server runs."""

    name: str
    fingerprint: str
    vocabulary_size: int
    vocabulary_kind: str  # empty: no tokenizer, token ids only
    layers: int
    heads: int
    head_width: int
    model_width: int
    embedding_width: int
    inner_width: int
    memory_length: int
    window: int
    bytes_per_session: int
    device: str
    kernel: str
    form: str
    weight_dtype: str
    memory_dtype: str
    limits: Limits
    server_version: str
    api_version: str
    default_sampling: SamplingParams
    default_stop: StopConditions
    start_tokens: tuple[int, ...]
    end_tokens: tuple[int, ...]
    token_kinds: tuple[str, ...] = ()  # for follow_kinds; empty: none


class MidiTokens(list[int]):
    """The token ids of a MIDI file, for use as a prompt.

    `left_out`: number of parts of each kind that the vocabulary cannot express.
    """

    def __init__(self, ids: Iterable[int], left_out: Mapping[str, int]) -> None:
        super().__init__(ids)
        self.left_out = dict(left_out)


class ServerState(str, enum.Enum):
    """The phase of a server's life."""

    UNSPECIFIED = "UNSPECIFIED"
    STARTING = "STARTING"
    READY = "READY"
    DRAINING = "DRAINING"


@dataclass(frozen=True)
class SoftmaxTail:
    """Rows for which the words of a cluster were computed or skipped."""

    computed: int
    skipped: int


@dataclass(frozen=True)
class MemoryDivision:
    """The parts of host memory, in bytes."""

    limit: int
    weights: int
    slots: int
    images: int
    ids: int
    records: int
    requests: int
    streams: int
    reserve: int
    prefixes: int


@dataclass(frozen=True)
class StoreStatus:
    """The store that sessions survive in."""

    durability: str  # "turn", "token", maybe ", up to 2 s"
    state: str  # "serving", "full", "failed", "unreachable"
    sessions: int
    database_bytes: int
    image_bytes: int
    tokens_waiting: int
    commits: int


@dataclass(frozen=True)
class SelfTest:
    """The test of the server's step before the first session."""

    result: str  # "passed", "fell_back" or "not_run"
    step: str  # the kernels that were tested
    objection: str  # the difference that was found; empty: none
    seconds: float


@dataclass(frozen=True)
class ServerStatus:
    """A server's counters at one moment, since its start."""

    state: ServerState
    uptime: datetime.timedelta
    sessions_busy: int
    sessions_idle: int
    sessions_created: int
    sessions_ended: int
    slots_used: int
    slots_total: int
    queued_calls: int
    queued_tokens: int
    last_step_age: datetime.timedelta
    steps: int
    step_seconds: float
    rows_decode: int
    rows_prefill: int
    rows_score: int
    rows_rebuild: int
    steps_with_decode: int
    steps_with_prompt_and_decode: int
    turns_started: int
    turns_active: int
    turns_finished: dict[str, int]
    tokens_sampled: int
    tokens_delivered: int
    tokens_discarded: int
    rows_discarded: int
    turns_parked: int
    image_bytes: int
    replay_bytes: int
    stream_queue_tokens: int
    softmax_tails: tuple[SoftmaxTail, ...]
    memory: MemoryDivision | None  # None: memory is not divided
    resident_bytes: int
    shedding: bool
    id_bytes: int
    request_bytes: int
    requests_refused: int
    stream_bytes: int
    streams_refused: int
    calls_open: int
    calls_reading: int
    calls_answering: int
    calls_refused: int
    work_queued: int
    work_running: int
    work_done: int
    work_refused: int
    log_lines_dropped: int
    audit_lines_lost: int
    span_lines_lost: int
    tokens_guessed: int
    guesses_accepted: int
    steps_saved: int
    prefix_lookups: int
    prefix_hits: int
    tokens_cached: int
    prefix_images: int
    prefix_bytes: int
    prefix_evictions: int
    connections_open: int
    connections_limit: int
    connections_refused: int
    sessions_loaded: int
    sessions_stored_away: int
    store: StoreStatus | None  # None: sessions end with the process
    self_test: SelfTest | None  # None: the server does not report one
