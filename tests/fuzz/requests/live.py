"""A server with everything on, and sessions in every state on it."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import paths

import doors
from server import Server

# Small, so that the ends of ranges are near.
_FLAGS = ["--http-listen", "127.0.0.1:0", "--durability", "turn",
          "--max-tokens", "32", "--max-prompt-tokens", "64",
          "--max-session-tokens", "112", "--log-level", "warning",
          "--config", str(pathlib.Path(__file__).with_name("near_limits.toml"))]
_MEMORY = pathlib.Path("/dev/shm")  # a disk may stall for seconds
_FILLED = list(range(1, 13))
_CHAT = {"chat": {"user": {"before": "Q: ", "after": "\n"},
                  "assistant": {"before": "A: ", "after": "\n"}},
         "max_tokens": 16}  # as HTTP's default


class Live:
    """`program`: txl-server. `weights`: a folder with other ones for the shipped
    model, or None. Ends with `stop` or `kill`."""

    def __init__(self, program, weights=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(
            prefix="txl-requests-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self._program = program
        keys = self.folder / "keys.toml"
        self._keys = {t: self._add_key(keys, t) for t in ("alice", "bob")}
        secret = self.folder / "export.key"
        secret.write_bytes(b"s" * 64)
        secret.chmod(0o600)
        admin = f"unix:{self.folder}/admin.sock"
        self.server = Server(
            str(program), str(self._model(weights)),
            [*_FLAGS, "--keys", str(keys), "--export-key-file", str(secret),
             "--data-dir", str(self.folder / "store"), "--admin-listen",
             admin], self.folder)
        line = self.server.process.stdout.readline().strip()
        self._http = line.removeprefix("http on http://").rpartition(":")
        self._admin = admin
        client = self.client("alice")
        self.limits = self._read_limits(client)
        self.patterns = {"filled": _FILLED,
                         "limit": [1] * self.limits["max_session_tokens"]}
        self.make_patterns(client, "f")
        self.file = client.export("f-filled")
        client.close()

    def _model(self, weights):
        """The shipped one, with a chat format."""
        model = self.folder / "model"
        shutil.copytree(paths.ROOT / "models/shakespeare", model)
        for file in ("config.json", "model.safetensors") if weights else ():
            shutil.copy(weights / file, model / file)
        generation = json.loads((model / "generation.json").read_text())
        (model / "generation.json").write_text(
            json.dumps({**generation, **_CHAT}))
        return model

    def _add_key(self, file, tenant):
        said = subprocess.run(
            [self._program, "keys", "add", "--keys", file, "--name", tenant,
             "--tenant", tenant, "--role", "user"], check=True,
            capture_output=True, text=True).stdout
        return said.split()[-1]

    def client(self, tenant):
        return doors.Grpc(self.server.address, self._keys[tenant])

    def admin(self):
        return doors.Grpc(self._admin)

    def http(self):
        host, _, port = self._http
        return doors.Http(host, int(port), self._keys["alice"])

    @staticmethod
    def _read_limits(client):
        model = client.call("ModelService/GetModel")
        return {"vocabulary_size": model.vocabulary_size,
                **{f.name: getattr(model.limits, f.name)
                   for f in model.limits.DESCRIPTOR.fields}}

    def make_patterns(self, client, prefix):
        """What sessions are forked from, by one thread: a session that is being
        forked is busy."""
        for name, ids in self.patterns.items():
            session = f"{prefix}-{name}"
            client.call("SessionService/CreateSession", session_id=session)
            for at in range(0, len(ids), 60):
                client.call("SessionService/AppendTokens", session_id=session,
                            **{"tokens.ids": ids[at:at + 60]})

    def kill(self):
        self.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, patience):
        """What is wrong with its end; empty: nothing."""
        status = self.server.stop(patience)
        log = self.server.log_text()
        self.kill()
        found = [line for line in log.splitlines() if "Sanitizer" in line or
                 "runtime error" in line]
        if status != 0 or found:
            return f"exit {status} after SIGTERM {found[:3]} {log[-2000:]}"
        return ""


class Session:
    """One in a state, for one request. `owner`: that tenant's client."""

    def __init__(self, live, clients, state, name):
        self._clients, self._state = clients, state
        self.name, self._turn = name, None
        self.owner = clients["bob" if state == "foreign" else "alice"]
        self.before = None  # its ids; None: there is no such session
        if state in ("none", "absent"):
            return
        self.before = live.patterns.get(state, _FILLED)
        if state in ("fresh", "foreign", "ended"):
            self.owner.call("SessionService/CreateSession", session_id=name)
            self.before = []
        elif state == "imported":
            self.owner.import_(name, live.file)
        else:
            pattern = "limit" if state == "limit" else "filled"
            self.owner.call("SessionService/ForkSession", new_session_id=name,
                            session_id=f"{clients['prefix']}-{pattern}")
        if state == "ended":
            self.owner.call("SessionService/DeleteSession", session_id=name)
            self.before = None
        elif state == "stored":
            clients["admin"].call("AdminService/MoveOutSession",
                                  tenant="alice", session_id=name)
        elif state == "busy":
            self._turn = self.owner.turn(name, live.limits["max_tokens"])

    def ids(self):
        return self.owner.ids(self.name)

    def end(self):
        if self._turn is not None:
            self._turn.cancel()
        if self.before is not None:
            self.owner.delete(self.name)
