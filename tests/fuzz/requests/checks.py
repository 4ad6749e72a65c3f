"""What has to hold of every answer. Each gives what is wrong, or nothing."""

from cases import INPUTS, UNKNOWN_SESSION, scores_echo_again

# Codes that say that the client, or the moment, is to blame.
_CLIENTS = {"INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "ABORTED",
            "FAILED_PRECONDITION", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED",
            "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}
_OF_FIELDS = {"FIELD_INVALID", "OVER_LIMIT"}
# Reasons that a change of these fields may have, beside those.
_REASONS = {
    "session_id": {"SESSION_UNKNOWN", "SESSION_EXISTS", "SESSION_BUSY",
                   "SESSION_DELETED", "SESSION_EXPIRED",
                   "REPLAY_EVICTED"},  # another case's turn
    "tenant": {"SESSION_UNKNOWN"},
    "new_session_id": {"SESSION_EXISTS"},
    "expected_position": {"POSITION_MISMATCH"},
    "received.seed": {"RESUME_MISMATCH"},
    "received.token_ids": {"RESUME_MISMATCH"},
    "model": {"model_not_found"},
}
_LATER = {"n", "best_of", "prompt", "alternatives"}  # they may take longer


def answered(case, answer, patience):
    """Within the time, in the form of an answer."""
    if answer.code == "NONE":
        return f"no answer: {answer.text}"
    if answer.broken:
        return answer.broken
    if _LATER & case.changes.keys():
        patience *= 5
    if answer.seconds > patience:
        return f"an answer after {answer.seconds:.1f} s"
    return ""


def blames_client(case, door, answer):
    """OK, or an error that says whose fault it is: it names the field."""
    if answer.ok:
        return ""
    if answer.code not in _CLIENTS or not answer.reason:
        return f"a client's request is answered by {answer.code}"
    if answer.reason in _OF_FIELDS:
        if not answer.field:
            return "the error names no field"
        if not _at_fault(case, door, answer):
            return f"the error names {answer.field}, which is as it should be"
        return ""
    if answer.reason not in _expected_reasons(case, door):
        return f"nothing in the request is {answer.reason}"
    return ""


def _at_fault(case, door, answer):
    names = set()
    for path in [*case.changes, *case.refusals(door)]:
        field = case.field(path)
        names |= {path, path.partition(".")[0], path.rpartition(".")[2],
                  *field.also, *(a.rpartition(".")[2] for a in field.also)}
        if door == "http":
            name = case.method.http.names.get(path, path)
            names |= {name, name.rpartition(".")[2], *_misspelt(name)}
    if "unknown" in case.changes.values():
        names.add("zzzzzzzzzzzzzz")
    if case.changes.keys() & set(INPUTS):
        names |= {"text", "tokens", "input", "prompt"}
    # The turn that makes it busy may leave no room for a long input.
    filled = case.state == "busy" and case.changes.keys() & set(INPUTS)
    if case.state == "limit" or filled or "session_id" in case.changes:
        names |= {"text", "tokens", "prompt", "session_id", "max_tokens",
                  "stop.max_tokens", "alternatives", "messages", "input"}
    if "session_id" in case.changes:  # another case may have used it
        names.add("request_id")
    bare = answer.field.partition("[")[0]
    return bare in names or answer.field in names


def _misspelt(name):
    wrong = name[:-2] + name[-1:]
    return wrong, wrong.rpartition(".")[2]


def _expected_reasons(case, door):
    reasons = set().union(*(_REASONS.get(p, ()) for p in case.changes))
    if case.state in UNKNOWN_SESSION:
        reasons |= {"SESSION_UNKNOWN"}
    if case.state == "busy":
        reasons |= {"SESSION_BUSY"}
    if door == "http" and "session_id" in case.changes:
        reasons |= {"MALFORMED_MESSAGE"}  # of a path that is none
    return reasons


def refuses(case, door, answer):
    """What has to be refused is."""
    wrong = case.refusals(door)
    if answer.ok and wrong:
        return f"taken in spite of {', '.join(wrong)}"
    if not answer.ok and not wrong and not case.changes and \
            case.state not in (*UNKNOWN_SESSION, "busy", "limit"):
        return "a request without a fault is refused"
    return ""


def keeps_session(case, answer, before, after):
    """An error leaves the session as it was, an answer does what it says."""
    busy = case.state == "busy"
    if before is None:
        return "" if after is None or case.state in ("none", "ended",
                                                     "absent") else "made"
    if after is None:
        return "" if answer.ok and case.method.effect == "ends" else \
            "the session is gone"
    grown = after[:len(before)] == before
    same = grown if busy else after == before
    if not answer.ok:
        # Tokens that were handed to a stream are the session's.
        if same or grown and answer.tokens:
            return ""
        return f"after the error it holds {after}, before {before}"
    if any(case.changes.get(p, "doubled") not in ("doubled", "unknown")
           for p in ("session_id", "tenant")):  # it was of another one
        return "" if same else f"it holds {after}, before {before}"
    if case.method.effect == "ends":
        return "the session is still there"
    if case.method.effect == "rewinds":
        position = case.fields.get("position")
        return "" if position is not None and after == before[:position] else \
            f"rewound to {position} it holds {after} of {before}"
    if case.method.effect == "grows":
        return "" if grown else f"it holds {after}, before {before}"
    return "" if same else f"it holds {after}, before {before}"


def alike(case, answers):
    """What one door takes the other takes, with the same tokens."""
    one, other = (answers[d] for d in case.doors)
    if one.ok != other.ok:
        if answers["http"].field == "echo" and scores_echo_again(case.fields):
            return ""
        return f"{case.doors[0]} and {case.doors[1]} differ"
    if not one.ok:
        same = one.same_code(other) and one.reason == other.reason
        # Of two faults each door may find another one first.
        fields = {a.field.rpartition(".")[2] for a in (one, other)}
        return "" if same or len(case.changes) > 1 or len(fields) > 1 else \
            "the doors refuse for different reasons"
    if case.at_random() or one.essence is None or other.essence is None:
        return ""
    return "" if one.essence == other.essence else \
        f"the doors' tokens differ: {one.essence} {other.essence}"
