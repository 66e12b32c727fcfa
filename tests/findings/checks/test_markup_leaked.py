from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Severity
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
from tests.samples import dump

CODE = "markup-leaked"
GO = [user("go")]
K2 = "<|tool_calls_section_begin|><|tool_call_begin|>functions.Bash:0<|tool_call_argument_begin|>"
K3 = '<|open|>call tool="Bash"<|sep|>'


def messages_stream(*parts: str) -> bytes:
    return stream(
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": text("")},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": part},
            }
            for part in parts
        ),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def chat_stream(*parts: str) -> bytes:
    return chunks(*({"choices": [{"index": 0, "delta": {"content": part}}]} for part in parts))


def chat(reply: dict[str, Any] | bytes, history: Any = GO) -> Ex:
    return Ex(history, reply, chat=True)


@pytest.mark.parametrize(
    ("exchange", "severity"),
    [
        (Ex(GO, message(text(f"I look. {K2}"))), Severity.ERROR),
        (Ex(GO, message(text(K3))), Severity.ERROR),
        (Ex(GO, messages_stream("I look. ", K3, "<|close|>")), Severity.ERROR),
        (Ex(GO, messages_stream("<|tool", "_call_", "begin|>ls")), Severity.ERROR),
        (Ex(GO, messages_stream("<", "|", "tool_call_begin", "|", ">")), Severity.ERROR),
        (
            Ex(GO, messages_stream(K3).replace(b"<", rb"\u003c").replace(b">", rb"\u003E")),
            Severity.ERROR,
        ),
        (chat(chat_stream("I look. ", K2)), Severity.ERROR),
        (chat(completion({"role": "assistant", "content": K2})), Severity.ERROR),
        # The call came all the same, or it is no call's markup: nothing is lost.
        (Ex(GO, message(text(K3), use())), Severity.WARNING),
        (chat(completion(called(call(), content=f"{K2} hm"))), Severity.WARNING),
        (Ex(GO, message(text("Done.<|close|>message<|sep|>"))), Severity.WARNING),
        (chat(completion({"role": "assistant", "content": "Done.<|im_end|>"})), Severity.WARNING),
        # Somebody asked about it.
        (Ex([user(f"what is {K3}?")], message(text(f"It is {K3}."))), Severity.INFO),
        (
            Ex(
                [*GO, said(use()), user(result(content=f"a template: {K3}"))],
                message(text(f"It says {K3}.")),
            ),
            Severity.INFO,
        ),
    ],
)
def test_markup_in_text(exchange: Ex, severity: Severity) -> None:
    (finding,) = found(CODE, exchange)
    assert finding.severity is severity
    assert finding.evidence.facts["markup"] in finding.message


@pytest.mark.parametrize(
    "exchange",
    [
        Ex(GO, message(text("if a <| b |> c"))),
        Ex(GO, message(text("data |> filter(x) |> print()"))),
        Ex(GO, message(text("<|endoftext|> of GPT"))),
        Ex(GO, message(text("K2 writes `<|tool_call_begin|>` for a call."))),
        Ex(GO, message(text(f"So:\n```\n{K2}\n```\nwhich a server reads."))),
        Ex(GO, messages_stream("K2 writes `<|tool_", "call_begin|>` here.")),
        # Arguments and results may hold anything.
        Ex(GO, message(use(command=f"grep '{K2}' -r ."))),
        chat(completion(called(call(arguments=dump({"text": K2}).decode())))),
        Ex([*GO, said(use()), user(result(content=K2))], message(text("done"))),
        chat(chat_stream("done"), [*GO, called(call()), answered(content=K3)]),
        # Nor an error that quotes the request.
        Ex(GO, {"type": "error", "error": {"message": f"bad token {K2}"}}, status=400),
        Ex([*GO, said(text(K3))], message(text("done"))),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_each_choice_by_itself() -> None:
    choices = [
        {"index": 0, "message": {"content": "fine"}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": K2}, "finish_reason": "stop"},
    ]
    (finding,) = found(CODE, chat({"id": "cmpl-1", "choices": choices}))
    assert finding.evidence.choice == 1


def test_a_text_without_a_mark_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> None:
        raise AssertionError("the whole stream was read")

    monkeypatch.setattr("moontap.capture.turns.read_stream", read)
    body = messages_stream("a < b and ", 'say "|" or <b>', "x" * 1000)
    assert found(CODE, Ex(GO, body)) == []
    with pytest.raises(AssertionError, match="the whole stream was read"):
        found(CODE, Ex(GO, messages_stream(K3)))
