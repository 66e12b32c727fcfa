from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party, Severity
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    completion,
    found,
    message,
    result,
    said,
    stream,
    text,
    use,
    user,
)

CODE = "reasoning-dropped"
GO = [user("go")]


def thought(value: str | None = "hm", signature: str | None = "") -> dict[str, Any]:
    block: dict[str, Any] = {"type": "thinking", "thinking": value}
    return block if signature is None else {**block, "signature": signature}


def messages(delivered: list[Any], back: list[Any], **ask: Any) -> list[Ex]:
    return [
        Ex(GO, message(*delivered, use()), ask),
        Ex([*GO, said(*back, use()), user(result())], message(text("done")), ask),
    ]


def chat(back: dict[str, Any], model: str = "kimi-k2.6", **ask: Any) -> list[Ex]:
    ask = {"model": model, **ask}
    reply = completion(called(call(), reasoning_content="hm"))
    return [
        Ex(GO, reply, ask, chat=True),
        Ex([*GO, called(call(), **back), answered()], ask=ask, chat=True),
    ]


@pytest.mark.parametrize(
    ("exchanges", "severity", "kind"),
    [
        (chat({}), Severity.ERROR, "missing"),
        (chat({"reasoning_content": None}), Severity.ERROR, "missing"),
        (chat({"reasoning_content": ""}), Severity.ERROR, "emptied"),
        (chat({}, "kimi-k2.7-code"), Severity.ERROR, "missing"),
        (chat({}, "kimi-k2.7-code", thinking={"type": "disabled"}), Severity.ERROR, "missing"),
        (chat({}, "kimi-for-coding"), Severity.ERROR, "missing"),
        (chat({}, "moonshotai/kimi-k2-thinking-turbo"), Severity.ERROR, "missing"),
        (chat({"reasoning_content": ""}, "kimi-k2-thinking"), Severity.INFO, "emptied"),
        (chat({}, "kimi-k3"), Severity.WARNING, "missing"),
        (chat({}, "kimi-k3.1-pro"), Severity.WARNING, "missing"),
        (chat({}, "k3-256k"), Severity.WARNING, "missing"),
        (chat({"reasoning_content": ""}, "k3"), Severity.WARNING, "emptied"),
        # Where it does not think, and where nothing is known of the model.
        (chat({}, "kimi-k2.5", thinking={"type": "disabled"}), Severity.INFO, "missing"),
        (chat({}, "kimi-k2-0905-preview"), Severity.INFO, "missing"),
        (chat({}, "task3"), Severity.INFO, "missing"),
        (messages([thought()], []), Severity.WARNING, "missing"),
        (messages([thought()], [thought("")]), Severity.WARNING, "emptied"),
        (messages([thought(signature="s")], [thought()]), Severity.INFO, "unsigned"),
        (messages([thought(signature="s")], [thought("")]), Severity.WARNING, "emptied"),
        (messages([thought()], [], model="kimi-k2.6"), Severity.ERROR, "missing"),
    ],
)
def test_thinking_that_does_not_come_back(
    exchanges: list[Ex], severity: Severity, kind: str
) -> None:
    (finding,) = found(CODE, *exchanges)
    assert (finding.severity, finding.party) == (severity, Party.CLIENT)
    assert (finding.evidence.facts["kind"], finding.evidence.message) == (kind, 1)


@pytest.mark.parametrize(
    "exchanges",
    [
        chat({"reasoning_content": "hm"}),
        messages([thought()], [thought()]),
        messages([thought(signature="s")], [thought(signature="s")]),
        # Left out on purpose: the server knows it by its signature.
        messages([thought(signature="s")], [thought("", "s")]),
        messages([thought()], [{"type": "redacted_thinking", "data": "x"}]),
        # There was none, or but its empty place.
        messages([text("hm")], []),
        messages([thought("")], []),
        [
            Ex(GO, completion(called(call(), reasoning_content="")), chat=True),
            Ex([*GO, called(call()), answered()], chat=True),
        ],
        # No calls: nothing is refused.
        [
            Ex(GO, message(thought(), text("done"))),
            Ex([*GO, said(text("done")), user("thanks")]),
        ],
        # Another call stands there: not that reply.
        [
            Ex(GO, message(thought(), use())),
            Ex([*GO, said(use("ls_0", "ls")), user(result("ls_0"))]),
        ],
        # Not delivered: what it had is not known.
        [Ex([*GO, called(call()), answered()], chat=True)],
        # `thinking` as a word, and as a member of arguments.
        messages([text('say "thinking":"hm"')], []),
    ],
)
def test_near_misses(exchanges: list[Ex]) -> None:
    assert found(CODE, *exchanges) == []


def test_streams() -> None:
    piece = {"type": "thinking_delta", "thinking": "hm"}
    body = stream(
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": thought("")},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": use()},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    back = Ex([*GO, said(use()), user(result())])
    assert len(found(CODE, Ex(GO, body), back)) == 1
    deltas = [{"reasoning_content": ""}, {"tool_calls": [{"index": 0, **call()}]}]
    quiet = chunks(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas))
    loud = chunks(
        *(
            {"choices": [{"index": 0, "delta": delta}]}
            for delta in [*deltas[:1], {"reasoning_content": "hm"}, *deltas[1:]]
        )
    )
    next_one = Ex([*GO, called(call()), answered()], chat=True)
    assert found(CODE, Ex(GO, quiet, chat=True), next_one) == []
    assert len(found(CODE, Ex(GO, loud, chat=True), next_one)) == 1


def test_it_is_told_once_in_a_conversation() -> None:
    history, exchanges = list(GO), []
    for n in range(4):
        exchanges.append(Ex(list(history), message(thought(), use(f"pwd_{n}"))))
        history += [said(use(f"pwd_{n}")), user(result(f"pwd_{n}", str(n)))]
    assert [f.exchange for f in found(CODE, *exchanges)] == [2]
