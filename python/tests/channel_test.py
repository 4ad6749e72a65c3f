import asyncio
import subprocess
from concurrent import futures

import grpc
import pytest

from txl_client import (AsyncClient, Client, RetryPolicy, UnauthenticatedError,
                        UnavailableError)
from txl_client._proto import model_service_pb2
from txl_client.channel import Settings
from txl_client.local_server import LocalServer
from server_process import model, program

ONCE = RetryPolicy(max_failures=1)


@pytest.mark.parametrize("address", [
    "127.0.0.1:50051", "[::1]:50051", "host.example:1", "unix:/run/txl.sock",
    "unix:txl.sock"])
def test_addresses_of_hosts_and_sockets_are_taken(address):
    assert Settings(address).address == address


@pytest.mark.parametrize("address", [
    "", "localhost", "localhost:", ":50051", "host:0", "host:65536", "unix:",
    "http://host:80"])
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match="address"):
        Client(address)


def test_options_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="cert, key"):
        Client(cert="a.pem")
    with pytest.raises(ValueError, match="in_flight"):
        Client(in_flight=0)
    with pytest.raises(TypeError, match="tsl"):
        Client(tsl=True)
    with pytest.raises(FileNotFoundError):
        Client(ca="missing.pem")


def test_metadata_says_the_session_and_the_key():
    settings = Settings("host:1", bearer="secret")
    assert settings.metadata("verona") == (
        ("x-txl-session", "verona"), ("authorization", "Bearer secret"))
    assert Settings("host:1").metadata("") == ()
    assert "secret" not in repr(settings)


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True,
                   capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """ca, server and client: NAME.crt and NAME.key."""
    folder = tmp_path_factory.mktemp("certificates")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
            "-subj", "/CN=test ca", "-keyout", folder / "ca.key",
            "-out", folder / "ca.crt")
    names = folder / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key",
                "-out", folder / f"{name}.csr")
        openssl("x509", "-req", "-days", "1", "-in", folder / f"{name}.csr",
                "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
                "-CAcreateserial", "-extfile", names,
                "-out", folder / f"{name}.crt")
    return folder


class Doorkeeper(grpc.GenericRpcHandler):
    """Tokenize of a server that asks for a key, and nothing else."""

    def service(self, details):
        def tokenize(request, context):
            sent = dict(context.invocation_metadata())
            if sent.get("authorization") != "Bearer secret":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "no key")
            return model_service_pb2.TokenizeResponse(
                token_ids=map(ord, request.text))

        assert details.method == "/txl.v1.ModelService/Tokenize"
        return grpc.unary_unary_rpc_method_handler(
            tokenize, model_service_pb2.TokenizeRequest.FromString,
            model_service_pb2.TokenizeResponse.SerializeToString)


@pytest.fixture(scope="module")
def guarded(certificates):
    """Address of a server that wants TLS, a client's certificate, a key."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Doorkeeper(),))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(
        [((certificates / "server.key").read_bytes(),
          (certificates / "server.crt").read_bytes())],
        (certificates / "ca.crt").read_bytes(), require_client_auth=True))
    server.start()
    yield f"localhost:{port}"
    server.stop(None)


@pytest.fixture
def tls(certificates):
    return {"ca": certificates / "ca.crt",
            "cert": str(certificates / "client.crt"),
            "key": certificates / "client.key", "retry": ONCE}


def test_who_has_roots_certificate_and_key_is_let_in(guarded, tls):
    with Client(guarded, bearer="secret", **tls) as client:
        assert client.tokenize("ab") == [97, 98]

    async def run():
        async with AsyncClient(guarded, bearer="secret", **tls) as client:
            return await client.tokenize("ab")

    assert asyncio.run(run()) == [97, 98]


def test_who_lacks_one_of_them_is_not(guarded, tls):
    with Client(guarded, **tls) as client:
        with pytest.raises(UnauthenticatedError, match="no key"):
            client.tokenize("ab")
    with Client(guarded, bearer="secret", ca=tls["ca"],
                retry=ONCE) as client:
        with pytest.raises(UnavailableError):
            client.tokenize("ab")
    with Client(guarded, bearer="secret", tls=True, retry=ONCE) as client:
        with pytest.raises(UnavailableError):
            client.tokenize("ab")


def test_a_unix_socket_is_an_address():
    with LocalServer(model(), program=program(),
                     arguments=("--log-level", "error")) as server:
        with Client(server.address) as client:
            session = client.session("socket").create()
            assert session.generate("ROMEO:", max_tokens=3).text

        async def run():
            async with AsyncClient(server.address) as twin:
                return await twin.session("socket").text()

        assert asyncio.run(run()).startswith("ROMEO:")
