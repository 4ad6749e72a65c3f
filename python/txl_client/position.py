"""The position of a session, as far as a handle knows it."""

from __future__ import annotations

from txl_client import checks, infos
from txl_client.events import Finished
from txl_client.options import TurnOptions


class SessionPosition:
    """The id and position of a session; the base of both sessions."""

    def __init__(self, session_id: str) -> None:
        # Empty until the session has one.
        self.id = checks.optional_name("session_id", session_id)
        # Tokens that the session holds, as far as this handle knows. It is sent
        # as expected_position, so that a turn never continues a text that its
        # writer has not seen. None: not known, and read before the next turn.
        self.position: int | None = None

    def _named(self) -> str:
        """The id; ValueError if the session has none yet."""
        if self.id == "":
            raise ValueError("session_id: this session has none before "
                             "create() or import_()")
        return checks.name_of("session_id", self.id)

    def _saw(self, info: infos.SessionInfo) -> infos.SessionInfo:
        self.id = info.id
        # The end of a running turn is not known.
        idle = info.state == infos.SessionState.IDLE
        self.position = info.position if idle else None
        return info

    def _turn_ended(self, finished: Finished | None) -> None:
        self.position = finished.position if finished else None

    def _with_position(self, options: TurnOptions) -> TurnOptions:
        if self.position is None or "expected_position" in options:
            return options
        return {**options, "expected_position": self.position}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, position={self.position})"
