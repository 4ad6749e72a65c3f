import numpy
import pytest

from txl_client._proto import generation_service_pb2, sampling_pb2
from txl_client.options import TurnOptions, generate_request


def test_options_are_the_fields_of_the_request():
    fields = {"request_id", "expected_position", "timeout"}
    for message in (sampling_pb2.SamplingParams, sampling_pb2.StopConditions,
                    sampling_pb2.OutputOptions):
        fields |= {field.name for field in message.DESCRIPTOR.fields}
    assert set(TurnOptions.__annotations__) == fields


def test_each_option_goes_to_its_place():
    request = generate_request("verona", "JULIET:", {
        "temperature": 0.0, "logit_bias": {3: -1.5}, "max_tokens": 9,
        "stop_texts": ["\n\n"], "stop_token_ids": (4, 5), "logprobs": 2,
        "allowed_token_ids": range(6), "logprob_token_ids": [7, 3],
        "token_count": {"id": 0, "count": 8}, "follow_kinds": True,
        "expected_position": 0, "request_id": "turn-1", "timeout": 3.0})
    expected = generation_service_pb2.GenerateRequest(
        session_id="verona", text="JULIET:", request_id="turn-1",
        expected_position=0)
    expected.sampling.temperature = 0.0
    expected.sampling.logit_bias[3] = -1.5
    expected.stop.max_tokens = 9
    expected.stop.stop_texts.append("\n\n")
    expected.stop.stop_token_ids.extend([4, 5])
    expected.output.logprobs = 2
    expected.sampling.allowed_token_ids.extend(range(6))
    expected.output.logprob_token_ids.extend([7, 3])
    expected.sampling.follow_kinds = True
    expected.stop.token_count.id = 0
    expected.stop.token_count.count = 8
    assert request == expected


def test_what_is_not_said_is_absent_and_a_zero_is_not():
    request = generate_request("", None, {"top_k": None, "top_p": 0.0})
    assert request.WhichOneof("prompt") is None
    assert not request.sampling.HasField("top_k")
    assert request.sampling.HasField("top_p")
    assert not request.HasField("stop")


def test_a_prompt_is_text_or_ids():
    assert generate_request("", "a", {}).text == "a"
    assert list(generate_request("", [1, 2], {}).tokens.ids) == [1, 2]
    empty = generate_request("", [], {})
    assert empty.WhichOneof("prompt") == "tokens"
    with pytest.raises(TypeError, match="bytes"):
        generate_request("", b"ROMEO", {})


def test_stops_and_allowed_ids_have_no_order_and_may_be_a_set():
    request = generate_request("", "a", {
        "stop_texts": {"x"}, "stop_token_ids": frozenset([4]),
        "allowed_token_ids": {5}})
    stop = request.stop
    assert (list(stop.stop_texts), list(stop.stop_token_ids)) == (["x"], [4])
    assert list(request.sampling.allowed_token_ids) == [5]


def test_biases_may_be_of_any_integers_and_numbers():
    bias = generate_request("", "a", {"logit_bias": {
        numpy.int64(3): numpy.float32(0.5), 4: 1}}).sampling.logit_bias
    assert dict(bias) == {3: 0.5, 4: 1.0}


@pytest.mark.parametrize("options, named", [
    ({"temprature": 1.0}, "temprature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_k": 1 << 70}, "top_k"),
    ({"stop_texts": "ROMEO"}, "stop_texts"),
    ({"stop_token_ids": ["a"]}, "stop_token_ids"),
    ({"logprob_token_ids": {3, 4}}, "logprob_token_ids"),
    ({"token_count": {"id": "a", "count": 1}}, "token_count.id"),
    ({"logit_bias": {"a": 1.0}}, "logit_bias")])
def test_an_option_that_is_none_is_named(options, named):
    with pytest.raises((TypeError, ValueError), match=named):
        generate_request("", "a", options)
