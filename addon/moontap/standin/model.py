"""The stand-in behind the server: a request in, a plan out.

In: method, path, headers and body of one request. Out: the `Plan` to play and the note on how it
was answered. What it remembers is only how many requests took part and how often each step was
played, so that message ids differ; the choice of the step never depends on it.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moontap.standin import coding
from moontap.standin.decide import Decision, decide
from moontap.standin.mint import IdForm, Mint, make_uuid
from moontap.standin.plan import Plan, error_plan, json_plan, reply_plan
from moontap.standin.reply import Reply, build
from moontap.standin.script import DEFAULT_SCRIPT, Script
from moontap.standin.seen import Protocol, Seen, count_tokens, read

SEEDED_TIME = 1_700_000_000  # `created` of every reply when the script has a seed


class Model:
    """Answers requests by a script."""

    def __init__(
        self,
        script: Script | None = None,
        mint: Mint = Mint.RESPONSE,
        id_form: IdForm | None = None,
    ) -> None:
        self.script = script or DEFAULT_SCRIPT
        self.mint = mint
        self.id_form = id_form
        self._took_part = 0
        self._played: Counter[tuple[int, int, str]] = Counter()
        self._serial = itertools.count()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], raw: bytes
    ) -> tuple[Plan, Any, dict[str, Any]]:
        """The plan, the parsed body (None where there is none) and the note. Never raises for
        anything a client can send."""
        path = path.partition("?")[0].rstrip("/")
        protocol = _protocol(path, headers)
        body: Any = None
        try:
            body = _parse(raw, headers)
            plan, note = self._route(method, path, protocol, body)
        except ValueError as e:  # `RequestError` is one
            plan, note = error_plan(protocol, 400, str(e)), {"kind": "error"}
        request_id = note.setdefault("request_id", self._fresh("request"))
        note["status"] = plan.status
        return _with_header(plan, "msh-request-id", request_id), body, note

    def _route(
        self, method: str, path: str, protocol: Protocol, body: Any
    ) -> tuple[Plan, dict[str, Any]]:
        """Raises `RequestError` for a body that is no request."""
        if method == "POST" and path.endswith("/count_tokens"):
            return json_plan({"input_tokens": count_tokens(body)}), {"kind": "count_tokens"}
        if method == "POST" and path.endswith(("/v1/messages", "/chat/completions")):
            return self._reply(read(protocol, body))
        if method in ("GET", "HEAD") and path.endswith("/v1/models"):
            return json_plan(self._models()), {"kind": "models"}
        if method == "HEAD" and not path:
            return Plan(), {"kind": "head"}
        return error_plan(protocol, 404, f"{method} {path or '/'} is not here"), {"kind": "error"}

    def _reply(self, seen: Seen) -> tuple[Plan, dict[str, Any]]:
        decision = decide(seen, self.script)
        self._took_part += decision.takes_part
        number = self._took_part
        faults = self.script.active(number) if decision.takes_part else {}
        nonce = self._nonce(decision)
        reply = build(
            seen,
            decision,
            model=self.script.model,
            mint=self.mint,
            form=self.id_form,
            nonce=nonce,
            created=int(time.time()) if self.script.seed is None else SEEDED_TIME,
            delta_chars=self.script.pacing.delta_chars,
            faults=faults,
        )
        plan = reply_plan(seen, reply, faults, self.script.pacing)
        note = _note(decision, reply, plan)
        note["request"] = number if decision.takes_part else None
        note["faults"] = sorted(faults)
        note["request_id"] = make_uuid(nonce, "request")
        return plan, note

    def _nonce(self, decision: Decision) -> str:
        """Differs for every reply. With a seed it repeats from run to run, also when several
        conversations go on at once: it counts within the step of the conversation."""
        if self.script.seed is None:
            return uuid.uuid4().hex
        place = (decision.conversation, decision.step, decision.kind.value)
        self._played[place] += 1
        return "/".join(map(str, (self.script.seed, *place, self._played[place])))

    def _fresh(self, what: str) -> str:
        if self.script.seed is None:
            return str(uuid.uuid4())
        return make_uuid(self.script.seed, what, next(self._serial))

    def _models(self) -> dict[str, Any]:
        """A list that both SDKs can read."""
        model = {
            "id": self.script.model,
            "object": "model",
            "type": "model",
            "display_name": self.script.model,
            "created": SEEDED_TIME,
            "created_at": "2023-11-14T22:13:20Z",
            "owned_by": "moonshot",
        }
        ends = {"first_id": self.script.model, "last_id": self.script.model}
        return {"object": "list", "data": [model], "has_more": False, **ends}


def _protocol(path: str, headers: Mapping[str, str]) -> Protocol:
    if path.endswith("/chat/completions"):
        return Protocol.CHAT
    is_messages = "/messages" in path or "/anthropic" in path or "anthropic-version" in headers
    return Protocol.MESSAGES if is_messages else Protocol.CHAT


def _parse(raw: bytes, headers: Mapping[str, str]) -> Any:
    if not raw:
        return None
    decoded = coding.decode(raw, headers.get("content-encoding", ""))
    try:
        return json.loads(decoded)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"the body is not JSON: {e}") from e


def _note(decision: Decision, reply: Reply, plan: Plan) -> dict[str, Any]:
    return {
        "kind": decision.kind.value,
        "conversation": decision.conversation,
        "step": decision.step,
        "message_id": reply.message_id,
        "ids": [call.id for choice in reply.choices for call in choice],
        "streamed": plan.streamed,
        "cut": plan.cut,
    }


def _with_header(plan: Plan, name: str, value: str) -> Plan:
    return replace(plan, headers=(*plan.headers, (name, value)))
