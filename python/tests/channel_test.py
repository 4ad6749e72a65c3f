import asyncio
import datetime
import math
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
    "unix:txl.sock", "unix:///run/txl.sock", "unix:/a b", "unix:" + 107 * "x"])
def test_addresses_of_hosts_and_sockets_are_taken(address):
    assert Settings(address).address == address


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("address", [
    "", "localhost", "localhost:", ":50051", "host:0", "host:65536", "unix:",
    "http://host:80", "http://127.0.0.1:50051", "grpc://host:1", "host/path:1",
    "user@host:1", " host:1", "host:1\n", "host :1", "host: 1", "host:+1",
    "host:\u0661", "::1:50051", "[]:1", "[::1:1", "a:1,b:1", "host\0:1",
    "unix:/run/txl.sock\n", "unix:\0x", "unix://run/txl.sock",
    "unix://", "unix:" + 108 * "x"])
def test_other_addresses_are_refused(client, address):
    with pytest.raises(ValueError, match="^address: "):
        client(address)


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("name, value", [
    ("address", None), ("address", b"host:1"), ("address", ("host", 1)),
    ("address", 50051), ("tls", "no"), ("tls", 1), ("ca", 5), ("ca", b"a.pem"),
    ("bearer", b"secret"), ("bearer", 5), ("retry", 3), ("retry", None),
    ("timeout", "5"), ("timeout", True), ("in_flight", 2.0),
    ("in_flight", "32"), ("in_flight", True), ("in_flight", None)])
def test_an_option_of_another_kind_is_named(client, name, value):
    with pytest.raises(TypeError, match=f"^{name}: "):
        client(**{"address": "host:1", name: value})


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("name, value", [
    ("in_flight", 0), ("timeout", 0), ("timeout", -1), ("timeout", math.nan),
    ("timeout", datetime.timedelta(0)), ("ca", ""), ("address", "\ud800:1")])
def test_an_option_that_cannot_be_is_named(client, name, value):
    with pytest.raises(ValueError, match=f"^{name}: "):
        client(**{"address": "host:1", name: value})


@pytest.mark.parametrize("timeout", [
    math.inf, 1e30, datetime.timedelta.max, None])
def test_a_call_may_take_any_time(timeout):
    assert Settings("host:1", timeout=timeout).time_limit is None


def test_a_client_s_timeout_may_be_a_timedelta():
    minute = datetime.timedelta(minutes=1)
    assert Settings("host:1", timeout=minute).time_limit == 60.0


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("key", [
    "", " \n", "two words", "line\nline", "a\tb", "caf\xe9", "\ufeffkey",
    "a\0b", "\ud800"])
def test_a_key_is_one_word_that_no_error_shows(client, key):
    with pytest.raises(ValueError, match="^bearer: ") as caught:
        client("host:1", bearer=key)
    assert not key.strip() or key not in str(caught.value)


@pytest.mark.parametrize("key", ["secret\n", "secret\r\n", " secret "])
def test_a_key_may_come_with_the_line_end_of_its_file(key):
    assert Settings("host:1", bearer=key).metadata("") == (
        ("authorization", "Bearer secret"),)


def test_options_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="cert, key"):
        Client(cert="a.pem")
    with pytest.raises(TypeError, match="tsl"):
        Client(tsl=True)
    for client in (Client, AsyncClient):
        with pytest.raises(FileNotFoundError, match="missing.pem"):
            client(ca="missing.pem")


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
    credentials = grpc.ssl_server_credentials(
        [((certificates / "server.key").read_bytes(),
          (certificates / "server.crt").read_bytes())],
        (certificates / "ca.crt").read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    # Which the certificate does not name.
    server.add_secure_port(f"127.0.0.2:{port}", credentials)
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


PATIENT = RetryPolicy(max_failures=8, first_delay=0.001, max_delay=0.001)


def test_tls_on_which_both_do_not_agree_is_tried_once(guarded, tls,
                                                      certificates, server):
    port = guarded.rpartition(":")[2]
    del tls["retry"]
    for address, options, meaning in (
            (server.address, {"ca": tls["ca"]}, "does not speak TLS"),
            (guarded, {"ca": certificates / "client.crt"}, "is not trusted"),
            (guarded, {"tls": True}, "is not trusted"),
            (f"127.0.0.2:{port}", tls, "names another host")):
        with Client(address, retry=PATIENT, **options) as client:
            with pytest.raises(UnavailableError, match=meaning) as caught:
                client.tokenize("ab")
            assert caught.value.attempts == 1


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_files_of_tls_that_cannot_be_used_are_refused(client, certificates,
                                                      tls, tmp_path):
    empty, junk = tmp_path / "empty.pem", tmp_path / "junk.pem"
    empty.write_text("")
    junk.write_text("-----BEGIN CERTIFICATE-----\njunk\n")
    locked = tmp_path / "locked.key"
    openssl("rsa", "-aes128", "-passout", "pass:word", "-in", tls["key"],
            "-out", locked)
    for name, wrong in (
            ("ca", {"ca": empty}), ("ca", {"ca": junk}),
            ("ca", {"ca": tls["key"]}), ("cert, key", {"key": junk}),
            ("cert, key", {"key": locked}), ("cert, key", {"cert": empty}),
            ("cert, key", {"key": certificates / "server.key"})):
        with pytest.raises(ValueError, match=f"^{name}: "):
            client("host:1", **{**tls, **wrong})
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        client("host:1", ca=tmp_path)


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
