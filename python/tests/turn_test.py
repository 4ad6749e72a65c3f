import grpc
import pytest

from txl_client._proto import generation_service_pb2 as generation
from txl_client.errors import (DataLossError, InternalError, NotFoundError,
                               error_of)
from txl_client.events import Finished, FinishReason, Started
from txl_client.retry import Attempts, RetryPolicy
from txl_client.turn import Turn

LOST = error_of(grpc.StatusCode.UNAVAILABLE, "lost")


def started(position=3, prompt=1, seed=8, model="f"):
    return generation.GenerateResponse(started=generation.Started(
        position=position, prompt_token_count=prompt, seed=seed,
        model_fingerprint=model))


def token(index, character):
    return generation.GenerateResponse(token=generation.Token(
        index=index, token_id=ord(character), text=character))


def batch(first, characters):
    return generation.GenerateResponse(tokens=generation.TokenBatch(tokens=[
        generation.Token(index=first + i, token_id=ord(c), text=c)
        for i, c in enumerate(characters)]))


def finished(reason="MAX_TOKENS", text=""):
    return generation.GenerateResponse(finished=generation.Finished(
        reason="FINISH_REASON_" + reason, text=text, position=9))


@pytest.fixture
def turn():
    attempts = Attempts(RetryPolicy(max_failures=3), None, lambda: 0.0,
                        lambda: 0.0)
    return Turn(generation.GenerateRequest(text="x"), attempts)


def take(turn, *responses):
    """"started", texts of tokens, "finished" of what was new."""
    names = {Started: "started", Finished: "finished"}
    return [names.get(type(event)) or event.text
            for response in responses for event in turn.take(response)]


def received(turn):
    said = turn.request.received
    return said.seed, "".join(map(chr, said.token_ids))


def test_one_attempt_passes_whole(turn):
    assert take(turn, started(), token(0, "a"), batch(1, "bc"),
                finished()) == ["started", "a", "b", "c", "finished"]
    assert turn.done


def test_a_turn_has_a_name_so_that_it_can_be_sent_again(turn):
    assert len(turn.request.request_id) == 32
    other = Turn(generation.GenerateRequest(), turn.attempts)
    assert other.request.request_id != turn.request.request_id
    named = Turn(generation.GenerateRequest(request_id="mine"), turn.attempts)
    assert named.request.request_id == "mine"


def test_the_next_attempt_says_what_was_received(turn):
    assert turn.delay_after(LOST) == 0.1
    assert not turn.request.HasField("received")
    take(turn, started(), token(0, "a"))
    turn.delay_after(LOST)
    assert received(turn) == (8, "a")
    take(turn, started(), batch(1, "bc"))
    turn.delay_after(LOST)
    assert received(turn) == (8, "abc")
    assert turn.request.text == "x"


def test_what_another_attempt_repeats_is_left_out(turn):
    take(turn, started(), batch(0, "ab"))
    assert take(turn, started(), token(0, "a"), batch(1, "bcd")) == ["c", "d"]


def test_an_attempt_may_begin_behind_what_is_there(turn):
    take(turn, started(), batch(0, "abc"))
    assert take(turn, started(), token(3, "d")) == ["d"]


def test_a_gap_is_an_error(turn):
    take(turn, started(), token(0, "a"))
    with pytest.raises(DataLossError, match="token 2 came, expected was 1"):
        take(turn, token(2, "c"))
    with pytest.raises(DataLossError, match="token -1 came"):
        take(turn, token(-1, "c"))


def test_a_token_that_changes_is_an_error(turn):
    take(turn, started(), token(0, "a"), started())
    with pytest.raises(DataLossError, match="token 0 came again as another"):
        take(turn, token(0, "x"))


@pytest.mark.parametrize("other", [
    started(position=4), started(prompt=2), started(seed=9),
    started(model="g")])
def test_another_turn_behind_tokens_is_an_error(turn, other):
    take(turn, started(), token(0, "a"))
    with pytest.raises(DataLossError, match="another turn"):
        take(turn, other)


def test_a_turn_that_begins_anew_before_a_token_tells_its_new_seed(turn):
    take(turn, started())
    assert take(turn, started(seed=9), started(seed=9)) == ["started"]
    take(turn, token(0, "a"))
    turn.delay_after(LOST)
    assert received(turn) == (9, "a")


def test_an_error_that_is_the_server_s_word_ends_the_turn(turn):
    with pytest.raises(NotFoundError):
        turn.delay_after(NotFoundError("gone", reason="SESSION_UNKNOWN"))


def test_failures_in_a_row_end_the_turn_and_tokens_between_them_do_not(turn):
    take(turn, started())
    for index, character in enumerate("abcdef"):
        assert turn.delay_after(LOST) is not None
        take(turn, token(index, character))
    assert turn.delay_after(LOST) is not None
    assert turn.delay_after(LOST) is not None
    with pytest.raises(type(LOST)):
        turn.delay_after(LOST)


def test_a_stream_that_ends_without_an_end_is_sent_again(turn):
    take(turn, started())
    assert turn.delay_after(None) == 0.1
    turn.delay_after(None)
    with pytest.raises(InternalError, match="before the turn"):
        turn.delay_after(None)


def test_a_drained_turn_is_not_over(turn):
    assert take(turn, started(), token(0, "a"),
                finished("SERVER_DRAIN", "held")) == ["started", "a"]
    assert not turn.done
    assert turn.delay_after(None) == 0.1
    assert received(turn) == (8, "a")
    assert take(turn, started(), token(1, "b"), finished()) == [
        "b", "finished"]
    assert turn.done


def test_a_drained_turn_that_nobody_goes_on_with_ends_so(turn):
    take(turn, started(), finished("SERVER_DRAIN", "held"))
    assert turn.delay_after(None) is not None
    gone = NotFoundError("gone", reason="SESSION_UNKNOWN")
    assert turn.delay_after(gone) is None
    assert turn.drained.reason == FinishReason.SERVER_DRAIN
    assert turn.drained.text == "held"


def test_an_error_behind_tokens_that_came_after_a_drain_is_one(turn):
    take(turn, started(), finished("SERVER_DRAIN"))
    turn.delay_after(None)
    take(turn, started(), token(0, "a"))
    with pytest.raises(NotFoundError):
        turn.delay_after(NotFoundError("gone"))
