"""Calls over HTTP: what is sent again, and what comes back."""

import json
import threading

import pytest
from web_server import WebServer

from txl_client import DeadlineExceededError, RetryPolicy, UnavailableError
from txl_client.web import NoServerError, Web

QUICK = RetryPolicy(max_failures=3, first_delay=0.0, max_delay=0.0)
DONE = (200, {"x-request-id": "r-1"}, b'{"text": "a"}')


def refusal(status, code, **headers):
    return (status, {name.replace("_", "-"): value
                     for name, value in headers.items()},
            json.dumps({"error": {"code": code, "message": "m"}}).encode())


def posted(answers, repeatable=True, **options):
    """The answer of the last of `answers`, and the number of requests."""
    with WebServer(lambda number, path, body: answers[number]) as server:
        answer = Web(server.url, retry=QUICK, **options).post(
            "/v1/x", {"n": 1}, repeatable)
        return answer, len(server.requests)


def test_an_answer_has_the_json_of_the_body():
    answer, sent = posted([DONE])
    assert (answer.status, answer.request_id, answer.body, sent) == (
        200, "r-1", {"text": "a"}, 1)


@pytest.mark.parametrize("url", [
    "", "host:80", "http://", "http://host:80/v1", "ftp://host:80",
    "http://host:80?x=1", "http://host:99999", "http://host:x", "http://host:0",
    "http://[::1", "http://user:word@host:80"])
def test_what_is_no_server_is_named(url):
    with pytest.raises(ValueError) as caught:
        Web(url)
    assert str(caught.value).startswith(f"server: {url!r} is not http://")


def test_an_answer_that_is_not_json_is_a_text():
    answer, sent = posted([(404, {}, b"<html>\xff")])
    assert (answer.status, answer.body, sent) == (404, "<html>\ufffd", 1)


@pytest.mark.parametrize("answer", [
    refusal(429, "QUEUE_FULL", retry_after_ms="1"),
    refusal(503, "NOT_READY", retry_after="0"),
    refusal(409, "SESSION_BUSY", x_should_retry="true"),
    refusal(408, "REQUEST_TIMEOUT"),
    (502, {}, b"bad gateway"), (429, {"Retry-After": "soon"}, b""), None])
def test_what_passes_is_sent_again(answer):
    assert posted([answer, answer, DONE])[1] == 3


@pytest.mark.parametrize("answer", [
    refusal(400, "FIELD_INVALID"), refusal(404, "SESSION_UNKNOWN"),
    refusal(429, "QUOTA", x_should_retry="false"),
    refusal(504, "DEADLINE_EXCEEDED", x_should_retry="false"),
    refusal(500, "STEP_FAILED"), (404, {}, b""), (403, {}, b"no")])
def test_what_lasts_is_sent_once(answer):
    back, sent = posted([answer])
    assert (back.status, sent) == (answer[0], 1)


def test_the_last_refusal_is_the_answer():
    answer, sent = posted([refusal(429, "QUEUE_FULL")] * 3)
    assert (answer.status, sent) == (429, 3)
    assert answer.body["error"]["code"] == "QUEUE_FULL"


def test_what_is_not_repeatable_is_sent_again_only_after_a_refusal():
    assert posted([refusal(429, "QUEUE_FULL"), DONE], False)[1] == 2
    assert posted([(502, {}, b"")], False) == posted([(502, {}, b"")], False)
    with pytest.raises(UnavailableError) as caught:
        posted([None], False)
    assert caught.value.attempts == 1


def test_a_broken_answer_is_an_error_of_this_request():
    with pytest.raises(UnavailableError) as caught:
        posted([None] * 3)
    assert not isinstance(caught.value, NoServerError)
    assert caught.value.attempts == 3


def test_without_a_server_there_is_no_request():
    with WebServer(lambda *request: DONE) as server:
        url = server.url
    with pytest.raises(NoServerError, match="refused") as caught:
        Web(url, retry=QUICK).post("/", {})
    assert caught.value.attempts == 3


def test_a_server_of_something_else_is_asked_once(server):
    with pytest.raises(NoServerError, match="HTTP/1.1") as caught:
        Web(f"http://{server.address}", retry=QUICK).post("/", {})
    assert caught.value.attempts == 1
    with pytest.raises(NoServerError, match="SSL") as caught:
        Web(f"https://{server.address}", retry=QUICK).post("/", {})
    assert caught.value.attempts == 1


def test_a_timeout_covers_all_attempts():
    with WebServer(lambda number, path, body: (
            429, {"Retry-After": "60"}, b"")) as server:
        web = Web(server.url, timeout=5)
        assert web.post("/", {}).status == 429
        assert len(server.requests) == 1


def test_an_answer_that_takes_too_long_is_an_error():
    ended = threading.Event()
    with WebServer(lambda *request: ended.wait(60) and DONE) as server:
        with pytest.raises(DeadlineExceededError):
            Web(server.url, timeout=0.2).post("/", {})
        ended.set()


def test_the_key_is_sent():
    with WebServer(lambda *request: DONE) as server:
        Web(server.url, bearer=" secret\n").post("/v1/score", {"text": "ü"})
    path, headers, body = server.requests[0]
    assert (path, body) == ("/v1/score", {"text": "ü"})
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("url", [
    "127.0.0.1:80", "ftp://h", "http://", "http://h:80/v1", "http://h?a=1",
    "http://h:port", "unix:/tmp/s"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(ValueError):
        Web(url)


def test_the_port_is_that_of_the_scheme():
    assert Web("http://h/").settings.address == "h:80"
    assert Web("https://[::1]").settings.address == "[::1]:443"
