import datetime
import math

import grpc
import pytest

from txl_client.errors import error_of
from txl_client.retry import Attempts, RetryPolicy, is_retryable

CODES = grpc.StatusCode


def error(code, reason="", retry_after=None):
    made = error_of(code, "m")
    made.reason, made.retry_after = reason, retry_after
    return made


@pytest.mark.parametrize("code, reason", [
    (CODES.ABORTED, "SESSION_BUSY"), (CODES.ABORTED, "SESSION_MOVED"),
    (CODES.ABORTED, "SUPERSEDED"), (CODES.UNAVAILABLE, "STORE_UNAVAILABLE"),
    (CODES.UNAVAILABLE, "NOT_READY"), (CODES.UNAVAILABLE, "DRAINING"),
    (CODES.RESOURCE_EXHAUSTED, "QUEUE_FULL"),
    (CODES.RESOURCE_EXHAUSTED, "NO_SESSION_MEMORY"),
    (CODES.RESOURCE_EXHAUSTED, "OVERLOADED"),
])
def test_what_the_api_lists_may_be_tried_again(code, reason):
    assert is_retryable(error(code, reason))


@pytest.mark.parametrize("code", [
    CODES.UNAVAILABLE, CODES.INTERNAL, CODES.UNKNOWN, CODES.CANCELLED])
def test_a_call_that_broke_on_the_way_may_be_tried_again(code):
    assert is_retryable(error(code))


@pytest.mark.parametrize("code, reason", [
    (CODES.INTERNAL, "STEP_FAILED"), (CODES.ABORTED, "SESSION_DELETED"),
    (CODES.ABORTED, "POSITION_MISMATCH"), (CODES.ABORTED, "RESUME_MISMATCH"),
    (CODES.NOT_FOUND, "SESSION_UNKNOWN"),
    (CODES.INVALID_ARGUMENT, "FIELD_INVALID"), (CODES.CANCELLED, "CANCELLED"),
    (CODES.DEADLINE_EXCEEDED, ""), (CODES.UNAUTHENTICATED, ""),
    (CODES.UNIMPLEMENTED, ""),
    # A quota that the request alone is over.
    (CODES.RESOURCE_EXHAUSTED, "QUOTA"),
    # A message that is too large; nobody is busy.
    (CODES.RESOURCE_EXHAUSTED, ""),
])
def test_what_the_server_decided_is_not_tried_again(code, reason):
    assert not is_retryable(error(code, reason))


def test_whatever_says_when_to_come_back_may_be_tried_again():
    assert is_retryable(error(CODES.RESOURCE_EXHAUSTED, "STORE_FULL", 2.0))
    assert is_retryable(error(CODES.RESOURCE_EXHAUSTED, "QUOTA", 2.0))


def said(code, message):
    """What gRPC or a proxy says, in its own words."""
    return error_of(CODES[code], message)


CONNECTING = "failed to connect to all addresses; last error: "


@pytest.mark.parametrize("code, message, meaning", [
    ("UNAVAILABLE", CONNECTING + "UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
     "failed: SSL_ERROR_SSL: error:100000f7:SSL routines:OPENSSL_internal:"
     "WRONG_VERSION_NUMBER", "the server does not speak TLS: "),
    ("UNAVAILABLE", CONNECTING + "UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
     "failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify "
     "failed", "the server's certificate is not trusted: "),
    ("UNAVAILABLE", CONNECTING + "UNKNOWN: ipv4:127.0.0.1:1: Peer name "
     "127.0.0.1 is not in peer certificate",
     "the server's certificate names another host: "),
    ("UNAVAILABLE", CONNECTING + "UNKNOWN: ipv4:127.0.0.1:1: Custom "
     "verification check failed with error: UNAUTHENTICATED: Hostname "
     "Verification Check failed.",
     "the server's certificate names another host: "),
    ("UNAVAILABLE", CONNECTING + "INTERNAL: ipv4:127.0.0.1:1: Trying to "
     "connect an http1.x server", "the server speaks HTTP/1 there, not gRPC: "),
    ("INTERNAL", "Received http2 header with status: 400", ""),
    ("UNKNOWN", "Received http2 header with status: 413", ""),
    ("UNKNOWN", "Received http2 header with status: 501", ""),
    ("INTERNAL", "Exception deserializing response!", ""),
    ("CANCELLED", "Channel closed!", "")])
def test_what_the_next_attempt_meets_too_is_not_tried_again(code, message,
                                                            meaning):
    lasting = said(code, message)
    assert not is_retryable(lasting)
    assert lasting.message == meaning + message


@pytest.mark.parametrize("code, message", [
    ("UNAVAILABLE", CONNECTING + "UNKNOWN: ipv4:127.0.0.1:1: Failed to connect "
     "to remote host: Connection refused"),
    ("UNAVAILABLE", CONNECTING + "UNAVAILABLE: ipv4:127.0.0.1:1: Socket "
     "closed"),
    ("UNAVAILABLE", "DNS resolution failed for host:1: Domain name not found"),
    ("UNAVAILABLE", "Received http2 header with status: 429"),
    ("UNAVAILABLE", "Received http2 header with status: 503"),
    ("UNKNOWN", "Received http2 header with status: 408"),
    ("UNKNOWN", "Received http2 header with status: 500"),
    ("INTERNAL", "Received RST_STREAM with error code 2"),
    ("UNKNOWN", "Stream removed")])
def test_what_may_pass_is_tried_again(code, message):
    passing = said(code, message)
    assert is_retryable(passing)
    assert passing.message == message


def attempts(timeout=None, now=lambda: 0.0, jitter=0.0, **policy):
    return Attempts(RetryPolicy(**policy), timeout, now, lambda: jitter)


LOST = error(CODES.UNAVAILABLE)


def test_waits_double_up_to_the_longest():
    tries = attempts(max_failures=6, first_delay=0.1, max_delay=0.5)
    assert [tries.delay(LOST) for _ in range(6)] == [
        0.1, 0.2, 0.4, 0.5, 0.5, None]


def test_a_patient_client_waits_the_longest_however_often():
    tries = attempts(max_failures=6000, max_delay=0.5)
    assert [tries.delay(LOST) for _ in range(5000)][-1] == 0.5


@pytest.mark.parametrize("limit", [math.inf, 1e30, 10**12,
                                   datetime.timedelta.max])
def test_an_endless_timeout_is_none(limit):
    assert attempts(timeout=limit).time_left() is None


def test_a_timeout_may_be_a_timedelta():
    assert attempts(timeout=datetime.timedelta(minutes=1)).time_left() == 60.0


def test_jitter_shortens_by_up_to_a_half_but_not_what_the_server_asks():
    assert attempts(jitter=0.5).delay(LOST) == pytest.approx(0.075)
    busy = error(CODES.ABORTED, "SESSION_BUSY", 3.0)
    assert attempts(jitter=0.9).delay(busy) == 3.0


def test_progress_makes_failures_count_anew():
    tries = attempts(max_failures=2)
    assert tries.delay(LOST) is not None
    tries.made_progress()
    assert tries.delay(LOST) is not None
    assert tries.delay(LOST) is None


def test_no_wait_reaches_past_the_timeout():
    now = [10.0]
    tries = attempts(timeout=1.0, now=lambda: now[0], first_delay=0.4)
    assert tries.time_left() == 1.0
    assert tries.delay(LOST) == 0.4
    now[0] = 10.7
    assert tries.time_left() == pytest.approx(0.3)
    assert tries.delay(LOST) is None
    now[0] = 12.0
    assert tries.time_left() == 0.0


def test_a_call_that_may_have_been_carried_out_comes_again_when_refused_only():
    assert attempts().delay(LOST, repeatable=False) is None
    refused = error(CODES.UNAVAILABLE, "NOT_READY")
    assert attempts().delay(refused, repeatable=False) is not None
    superseded = error(CODES.ABORTED, "SUPERSEDED")
    assert attempts().delay(superseded, repeatable=False) is None


@pytest.mark.parametrize("wrong, name", [
    ({"max_failures": 0}, "max_failures"), ({"first_delay": -1}, "first_delay"),
    ({"first_delay": 9.0, "max_delay": 5.0}, "first_delay"),
    ({"first_delay": math.nan}, "first_delay"),
    ({"max_delay": math.nan}, "first_delay"),
    ({"first_delay": math.inf, "max_delay": math.inf}, "first_delay")])
def test_a_policy_that_is_none_is_refused(wrong, name):
    with pytest.raises(ValueError, match=name):
        RetryPolicy(**wrong)


@pytest.mark.parametrize("name", ["max_failures", "first_delay", "max_delay"])
def test_a_policy_has_numbers(name):
    for value in ("8", None, True, [8]):
        with pytest.raises(TypeError, match=name):
            RetryPolicy(**{name: value})
    with pytest.raises(TypeError, match="max_failures"):
        RetryPolicy(max_failures=math.inf)
