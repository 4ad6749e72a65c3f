import re

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

import txl_client
from txl_client import Client, RetryPolicy
from txl_client.errors import error_of


def details(*messages):
    status = status_pb2.Status()
    for message in messages:
        status.details.add().Pack(message)
    return status.SerializeToString()


INFO = error_details_pb2.ErrorInfo(domain="txl.v1", reason="SESSION_BUSY",
                                   metadata={"position": "12"})
BAD = error_details_pb2.BadRequest(field_violations=[
    error_details_pb2.BadRequest.FieldViolation(field="sampling.top_p"),
    error_details_pb2.BadRequest.FieldViolation(field="stop.max_tokens")])
RETRY = error_details_pb2.RetryInfo(
    retry_delay=duration_pb2.Duration(seconds=1, nanos=500_000_000))


def test_an_error_has_what_the_server_said():
    error = error_of(grpc.StatusCode.ABORTED, "a turn runs",
                     details(INFO, BAD, RETRY))
    assert type(error) is txl_client.AbortedError
    assert error.reason == "SESSION_BUSY"
    assert error.metadata == {"position": "12"}
    assert error.fields == ("sampling.top_p", "stop.max_tokens")
    assert error.field == "sampling.top_p"
    assert error.retry_after == 1.5
    assert str(error) == ("ABORTED (SESSION_BUSY): sampling.top_p, "
                          "stop.max_tokens: a turn runs; retry after 1.5 s")


def test_an_error_of_the_way_has_none_of_it():
    error = error_of(grpc.StatusCode.UNAVAILABLE, "connection refused")
    assert (error.reason, error.field, error.retry_after) == ("", "", None)
    assert str(error) == "UNAVAILABLE: connection refused"
    assert isinstance(error, ConnectionError)


def test_an_error_names_the_trace_that_came_back():
    error = error_of(
        grpc.StatusCode.NOT_FOUND, "gone",
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert error.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert str(error) == ("NOT_FOUND: gone; trace "
                          "4bf92f3577b34da6a3ce929d0e0e4736")
    assert error_of(grpc.StatusCode.NOT_FOUND, "gone").trace_id == ""
    odd = error_of(grpc.StatusCode.NOT_FOUND, "gone", traceparent="x")
    assert odd.trace_id == ""


def test_details_that_do_not_parse_are_dropped():
    broken = status_pb2.Status()
    broken.details.append(any_pb2.Any(
        type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff"))
    for bad in (b"\xff\xff", broken.SerializeToString()):
        error = error_of(grpc.StatusCode.NOT_FOUND, "gone", bad)
        assert type(error) is txl_client.NotFoundError
        assert error.reason == ""


def test_another_domain_s_reason_is_not_ours():
    other = error_details_pb2.ErrorInfo(domain="proxy", reason="SESSION_BUSY")
    assert error_of(grpc.StatusCode.ABORTED, "", details(other)).reason == ""


def test_every_status_that_the_api_names_has_a_class():
    classes = {error_of(code, "").__class__ for code in grpc.StatusCode
               if code.name not in ("OK", "UNKNOWN", "OUT_OF_RANGE")}
    assert len(classes) == len(list(grpc.StatusCode)) - 3
    assert all(issubclass(cls, txl_client.TxlError) for cls in classes)
    odd = error_of(grpc.StatusCode.OUT_OF_RANGE, "m")
    assert odd.code == grpc.StatusCode.OUT_OF_RANGE


def test_the_server_s_errors_arrive_as_their_classes(client):
    session = client.session("errors").create()
    with pytest.raises(txl_client.AlreadyExistsError) as caught:
        client.session("errors").create()
    assert caught.value.reason == "SESSION_EXISTS"
    assert re.fullmatch("[0-9a-f]{32}", caught.value.trace_id)
    session.delete()
    with pytest.raises(txl_client.NotFoundError) as caught:
        session.get()
    assert caught.value.reason == "SESSION_UNKNOWN"
    with pytest.raises(txl_client.InvalidArgumentError) as caught:
        client.tokenize("snow \u2603")
    assert caught.value.field == "text"
    with pytest.raises(txl_client.InvalidArgumentError) as caught:
        client.generate("ROMEO:", max_tokens=10**6)
    assert re.fullmatch("[0-9a-f]{32}", caught.value.trace_id)
    assert caught.value.reason == "OVER_LIMIT"
    assert caught.value.field == "stop.max_tokens"


def test_a_model_of_text_takes_no_midi_file(client):
    with pytest.raises(txl_client.InvalidArgumentError, match="music") as caught:
        client.tokenize(midi=b"MThd")
    assert caught.value.reason == "FIELD_INVALID"
    assert caught.value.field == "midi"


def test_a_timeout_is_one(client):
    with pytest.raises(TimeoutError) as caught:
        client.generate("ROMEO:", max_tokens=4000, timeout=0.05)
    assert type(caught.value) is txl_client.DeadlineExceededError


def test_where_there_is_no_server_the_policy_says_how_long_to_try():
    policy = RetryPolicy(max_failures=2, first_delay=0.01)
    with Client("127.0.0.1:1", retry=policy) as nobody:
        with pytest.raises(txl_client.UnavailableError):
            nobody.model()
