"""A session of the Python package, with its retries."""

import contextlib
import importlib
import os
import sys

import unpacked_package
from life import bits
from turn_worker import PATIENCE, Failed


def unpack(folder):
    """Puts the package into `folder`, from which it is imported then."""
    unpacked_package.unpack(folder)
    sys.path.insert(0, str(folder))
    # Children run other programs: they need nothing of gRPC's.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"


class PackageSession:
    """`door`: TurnWorker's, with rpc_address(). After unpack()."""

    KIND, APPENDS = "package", True

    def __init__(self, door, _):
        """The package makes a name up: only then it creates again by itself."""
        self._package = importlib.import_module("txl_client")
        address, certificate = door.rpc_address()
        trust = {} if certificate is None else {"ca": certificate}
        self._client = self._package.Client(
            address, timeout=PATIENCE, retry=self._package.RetryPolicy(
                max_failures=10_000, first_delay=0.05, max_delay=0.5), **trust)
        self._session = self._client.session()

    @property
    def name(self):
        return self._session.id

    def create(self):
        with self._judged():
            self._session.create()

    def turn(self, ask):
        """Position, end, text; tokens with the bits of their
        log-probabilities."""
        with self._judged():
            if not ask.tokens:
                return self._append(ask.prompt)
            turn = self._session.generate(
                ask.prompt or None, seed=ask.seed, max_tokens=ask.tokens,
                stream=ask.streamed)
            if ask.streamed:
                turn = turn.result()
        if [token.index for token in turn.tokens] != list(
                range(len(turn.tokens))):
            raise Failed("tokens that are missing, or there twice")
        return (turn.finished.position, turn.finish_reason.value, turn.text,
                [(token.id, bits(token.logprob), token.text)
                 for token in turn.tokens])

    def _append(self, text):
        got = self._session.append(text, return_logprobs=True)
        return (got.position,
                [(each.id, None if each.logprob is None else
                  bits(each.logprob)) for each in got.scored])

    def ids(self):
        with self._judged():
            return self._session.token_ids()

    def close(self):
        self._client.close()

    @contextlib.contextmanager
    def _judged(self):
        try:
            yield
        except self._package.TxlError as error:
            raise Failed(str(error)) from error
