"""An HTTP server that answers as a test says, and remembers requests."""

import contextlib
import http.server
import json
import threading


class WebServer:
    """answer(number, path, body) -> (status, headers, bytes), or None.

    None: the connection ends without an answer.
    """

    def __init__(self, answer):
        self.requests = []  # (path, headers, body)
        lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                length = int(handler.headers["Content-Length"])
                body = json.loads(handler.rfile.read(length))
                with lock:
                    number = len(self.requests)
                    self.requests.append((handler.path, handler.headers,
                                          body))
                answered = answer(number, handler.path, body)
                if answered is None:
                    return
                status, headers, content = answered
                handler.send_response(status)
                for name, value in headers.items():
                    handler.send_header(name, value)
                handler.send_header("Content-Length", str(len(content)))
                handler.end_headers()
                with contextlib.suppress(ConnectionError):  # it has left
                    handler.wfile.write(content)

            def log_message(handler, *arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                       Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever,
                                        args=(0.01,))
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
