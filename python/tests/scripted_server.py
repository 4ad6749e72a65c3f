"""A server that does to each call what its script says, and remembers it."""

from concurrent import futures

import grpc
from google.rpc import error_details_pb2, status_pb2

from txl_client._proto import generation_service_pb2 as generation
from txl_client._proto import model_service_pb2 as model_service
from txl_client._proto import session_service_pb2 as session_service

CODES = grpc.StatusCode
_MODULES = {"Generation": generation, "Model": model_service,
            "Session": session_service}


class Refusal(Exception):
    """Ends a call with a status and its details."""

    def __init__(self, code, reason="", retry_after=None):
        super().__init__(reason)
        self.code = code
        status = status_pb2.Status(code=code.value[0], message="refused")
        if reason:
            status.details.add().Pack(error_details_pb2.ErrorInfo(
                domain="txl.v1", reason=reason))
        if retry_after is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(int(retry_after * 1000))
            status.details.add().Pack(info)
        self.details = status.SerializeToString()


class ScriptedServer(grpc.GenericRpcHandler):
    """`script`: for each call in turn a list of responses, of which the last
    may be a Refusal. `calls`: (method, request, metadata) of each."""

    def __init__(self, *script):
        self.calls = []
        self._script = list(script)
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((self,))
        self.address = "127.0.0.1:%d" % self._server.add_insecure_port(
            "127.0.0.1:0")
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()

    def service(self, details):
        service, _, method = details.method.rpartition(".")[2].partition("/")
        service = service.removesuffix("Service")
        messages = _MODULES[service]
        request = getattr(messages, f"{method}Request").FromString

        def answer(message, context):
            self.calls.append((f"{service}.{method}", message,
                               dict(context.invocation_metadata())))
            for step in self._script.pop(0):
                if isinstance(step, Refusal):
                    context.set_trailing_metadata((
                        ("grpc-status-details-bin", step.details),))
                    context.abort(step.code, "refused")
                yield step

        def write(message):
            return message.SerializeToString()

        if method == "Generate":
            return grpc.unary_stream_rpc_method_handler(answer, request,
                                                        write)
        return grpc.unary_unary_rpc_method_handler(
            lambda message, context: next(answer(message, context)), request,
            write)
