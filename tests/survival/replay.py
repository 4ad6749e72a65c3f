"""The same requests on a server that nobody kills: the same bits."""

import paths  # pylint: disable=unused-import

import api
from life import Append, Reset, bits, event


class Differs(Exception):
    """What the server that was killed said is not what this one says."""


def _expect(what, was, now):
    if was != now:
        raise Differs(f"{what}: {was}, without kills {now}")


class Replay:
    """Runs the steps of lives on `client`'s server, each under a name of its
    own, which begins with `prefix`: a fork or a rewind is a session that is fed
    from its start."""

    def __init__(self, client, report, prefix):
        self._client, self._report, self._prefix = client, report, prefix
        self._names = 0

    def run(self, life):
        name = ""
        for number, step in enumerate(life.steps):
            try:
                if isinstance(step, Reset):
                    name = self._make(name, step.ids)
                elif isinstance(step, Append):
                    self._append(name, step)
                else:
                    self._turn(name, step)
            except (Differs, api.Failed) as error:
                return self._report.violation(
                    life.name, f"step {number} of {len(life.steps)}: {error}; "
                    f"request {getattr(step, 'fields', '-')}")
        self._expect_ids(name, life)
        return self._drop(name)

    def _make(self, before, ids):
        self._drop(before)
        self._names += 1
        name = f"{self._prefix}-{self._names}"
        self._client.call("Session.CreateSession", {"sessionId": name})
        if ids:
            self._client.call("Session.AppendTokens", {
                "sessionId": name, "tokens": {"ids": ids}})
        return name

    def _drop(self, name):
        if name:
            self._client.call("Session.DeleteSession", {"sessionId": name})

    def _append(self, name, step):
        fields = {**step.fields, "sessionId": name}
        got = self._client.call("Session.AppendTokens", fields)
        _expect("position", step.start + len(step.ids), got.position)
        if step.scored is not None:
            _expect("scores", step.scored, [
                (each.token_id, bits(each.logprob)
                 if each.HasField("logprob") else None, each.text)
                for each in got.scored])

    def _turn(self, name, step):
        if step.seed is None and "seed" not in step.fields["sampling"]:
            # It was left before its seed was told: nobody draws it again.
            self._client.call("Session.AppendTokens", {
                "sessionId": name,
                "tokens": {"ids": step.prompt + step.ids()}})
            return
        fields = {**step.fields, "sessionId": name,
                  "sampling": {**step.fields["sampling"]}}
        if step.seed is not None:
            fields["sampling"]["seed"] = str(step.seed)
        if not step.reason:
            self._end_after(fields, len(step.events))
        status, got = self._client.try_generate(fields, 120)
        if status.code != api.OK:
            raise api.Failed(f"Generate: {status}")
        tokens = [token for each in got for token in
                  ([each.token] if each.HasField("token") else
                   each.tokens.tokens)]
        _expect("tokens", step.ids(), [token.token_id for token in tokens])
        for was, token in zip(step.events, tokens):
            if was[1] is not None:
                self._report.count("tokens_compared")
                if step.reason:
                    _expect(f"token {token.index}", was, event(token))
                else:  # without its stop texts nothing is held back
                    _expect(f"token {token.index}", (was[:2], was[3]),
                            (event(token)[:2], event(token)[3]))
        if step.reason:
            self._compare_end(step, got[-1].finished)

    @staticmethod
    def _end_after(fields, tokens):
        """A turn that was left comes to its end where it was left."""
        fields["stop"] = {"maxTokens": tokens, "stopTokenIds":
                          fields["stop"].get("stopTokenIds", [])}
        least = fields["sampling"].get("minTokens", 0)
        fields["sampling"]["minTokens"] = min(least, tokens)

    @staticmethod
    def _compare_end(step, finished):
        reasons = finished.DESCRIPTOR.fields_by_name["reason"].enum_type
        _expect("end", (step.reason, step.text, step.stopped_by), (
            reasons.values_by_number[finished.reason].name, finished.text,
            finished.matched_stop_text))

    def _expect_ids(self, name, life):
        got = self._client.call("Session.GetSession", {
            "sessionId": name, "includeTokens": True})
        if list(got.token_ids) != life.ids:
            self._report.violation(life.name, "other ids than a session that "
                                   "lived without kills")
