"""A TCP relay: the wire between a server and its store, with its faults."""

import socket
import threading
import time

UP, DOWN = "up", "down"  # to the target, and back


class Link:
    """Passes bytes on to `target` = (host, port) from an address of its own.

    Bytes that come while a direction is cut are held, as TCP would send them
    again: they arrive once it is whole. Thread-safe.
    """

    def __init__(self, target):
        self._target = target
        self._changed = threading.Condition()
        self._cut = frozenset()
        self._delay = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, cut=(), delay=0.0):
        """Directions that pass nothing, and seconds that the others take."""
        with self._changed:
            self._cut, self._delay = frozenset(cut), delay
            self._changed.notify_all()

    def close(self):
        self._listener.close()
        self.set()
        with self._changed:
            ends = list(self._open)
        for end in ends:
            _end(end)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,),
                             daemon=True).start()

    def _serve(self, client):
        # Nobody learns through a cut wire whether the target is there.
        self._wait(UP)
        try:
            target = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        for end in (client, target):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            self._open |= {client, target}
        back = threading.Thread(target=self._pump,
                                args=(target, client, DOWN), daemon=True)
        back.start()
        self._pump(client, target, UP)
        back.join()
        with self._changed:
            self._open -= {client, target}
        client.close()
        target.close()

    def _wait(self, direction):
        with self._changed:
            self._changed.wait_for(lambda: direction not in self._cut)
            return self._delay

    def _pump(self, source, sink, direction):
        try:
            while data := source.recv(1 << 16):
                time.sleep(self._wait(direction))
                sink.sendall(data)
            self._wait(direction)
        except OSError:
            pass
        _end(sink)


def _end(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
