"""A TCP relay before a server, which loses a connection when it is told to."""

import socket
import struct
import threading

_FRAME_HEADER = 9
_DATA = 0


class MessageCounter:
    """Counts gRPC messages in the bytes that an HTTP/2 server sends."""

    def __init__(self) -> None:
        self.messages = 0
        self._bytes = b""
        self._bodies: dict[int, bytes] = {}

    def feed(self, data: bytes, limit: int) -> int:
        """Bytes of `data` up to the frame that ends message `limit`; all of
        them, where it is not among them. -1 of a limit: there is none."""
        before = len(self._bytes)
        self._bytes += data
        done = 0
        while len(self._bytes) - done >= _FRAME_HEADER:
            length = int.from_bytes(self._bytes[done:done + 3], "big")
            end = done + _FRAME_HEADER + length
            if len(self._bytes) < end:
                break
            kind = self._bytes[done + 3]
            stream = int.from_bytes(self._bytes[done + 5:done + 9], "big")
            if kind == _DATA:
                self._take(stream, self._bytes[done + _FRAME_HEADER:end])
            done = end
            if 0 <= limit <= self.messages:
                return done - before
        self._bytes = self._bytes[done:]
        return len(data)

    def _take(self, stream: int, data: bytes) -> None:
        body = self._bodies.get(stream, b"") + data
        while len(body) >= 5:
            end = 5 + int.from_bytes(body[1:5], "big")
            if len(body) < end:
                break
            body = body[end:]
            self.messages += 1
        self._bodies[stream] = body


class Relay:
    """cut_after(n) loses the next connection behind its n-th message."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.cuts = 0
        self._limit = -1
        self._reset = True
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, messages: int, reset: bool = True) -> None:
        with self._lock:
            self._limit, self._reset = messages, reset
        self.drop_all()

    def drop_all(self) -> None:
        """Ends every connection, so that counts begin at nothing."""
        with self._lock:
            lost, self._open = self._open, []
        for each in lost:
            _end(each, reset=False)

    def close(self) -> None:
        self._listener.close()
        self.drop_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                return
            with self._lock:
                self._open += [client, server]
            for target, arguments in ((self._up, (client, server)),
                                      (self._down, (server, client))):
                threading.Thread(target=target, args=arguments,
                                 daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                server.sendall(data)
        except OSError:
            pass
        _end(server, reset=False)

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        counter = MessageCounter()
        try:
            while data := server.recv(65536):
                with self._lock:
                    limit = self._limit
                count = counter.feed(data, limit)
                client.sendall(data[:count])
                if 0 <= limit <= counter.messages:
                    with self._lock:
                        self._limit = -1
                        self.cuts += 1
                    _end(client, self._reset)
                    _end(server, self._reset)
                    return
        except OSError:
            pass
        _end(client, reset=False)


def _end(each: socket.socket, reset: bool) -> None:
    try:
        if reset:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            struct.pack("ii", 1, 0))
            # The other thread, which reads, would keep the socket open.
            each.shutdown(socket.SHUT_RD)
            each.close()
        else:
            each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
