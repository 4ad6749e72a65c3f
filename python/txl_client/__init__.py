"""The client of txl-server, the server for Transformer-XL language models.

    from txl_client import Client

    with Client("127.0.0.1:50051") as client:
        for event in client.generate("ROMEO:", stream=True):
            print(event.text, end="", flush=True)
"""

from txl_client.async_client import AsyncClient
from txl_client.async_session import AsyncSession
from txl_client.async_stream import AsyncTurnStream
from txl_client.client import Client
from txl_client.errors import (AbortedError, AlreadyExistsError,
                               CancelledError, DataLossError,
                               DeadlineExceededError, FailedPreconditionError,
                               InternalError, InvalidArgumentError,
                               NotFoundError, PermissionDeniedError,
                               ResourceExhaustedError, TxlError,
                               UnauthenticatedError, UnavailableError,
                               UnimplementedError)
from txl_client.events import (Event, Finished, FinishReason, Generation,
                               Started, Token, TokenLogprob)
from txl_client.infos import (MidiTokens, ModelInfo, ServerStatus,
                              SessionInfo, SessionState)
from txl_client.options import Prompt, TurnOptions
from txl_client.retry import RetryPolicy
from txl_client.scores import AlternativeScore, Appended, Score, ScoredToken
from txl_client.session import Session
from txl_client.stream import TurnStream

__all__ = [
    "AbortedError", "AlreadyExistsError", "AlternativeScore", "Appended",
    "AsyncClient", "AsyncSession", "AsyncTurnStream", "CancelledError",
    "Client", "DataLossError", "DeadlineExceededError", "Event",
    "FailedPreconditionError", "FinishReason", "Finished", "Generation",
    "InternalError", "InvalidArgumentError", "MidiTokens", "ModelInfo",
    "NotFoundError", "PermissionDeniedError", "Prompt", "ResourceExhaustedError",
    "RetryPolicy", "Score", "ScoredToken", "ServerStatus", "Session",
    "SessionInfo", "SessionState", "Started", "Token", "TokenLogprob",
    "TurnOptions", "TurnStream", "TxlError", "UnauthenticatedError",
    "UnavailableError", "UnimplementedError",
]
