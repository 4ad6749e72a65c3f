"""One server without faults, which clients know as they know a fleet."""

import paths
from server import Fell, Server


class Alone:
    """TurnWorker's door. `server`: for clients of the proto. `flags`: of it,
    beside these."""

    def __init__(self, program, folder, report, flags=()):
        self.program, self.report = program.with_name("txl"), report
        self.server = Server(program, str(paths.SHAKESPEARE), [
            "--log-level", "error", "--slots", "8", "--http-listen",
            "127.0.0.1:0", *flags], folder)
        line = self.server.process.stdout.readline().strip()
        if not line.startswith("http on http://"):
            raise Fell(f"no HTTP: {line}")
        host, _, port = line.removeprefix("http on http://").rpartition(":")
        self._web = host, int(port)

    def rpc_address(self):
        return self.server.address, None

    def web_address(self):
        return *self._web, None
