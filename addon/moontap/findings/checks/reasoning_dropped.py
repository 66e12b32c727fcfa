"""An assistant message with calls that came back without the thinking it was delivered with."""

from collections.abc import Iterator
from enum import StrEnum, auto

from moontap.findings.check import Check
from moontap.findings.conversation import Said
from moontap.findings.echoes import echoes, matched
from moontap.findings.models import Model, model_of, thinks
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import Message, Protocol


class Kind(StrEnum):
    """MISSING: it is gone. EMPTIED: its place is there. UNSIGNED: only its signature is gone."""

    MISSING = auto()
    EMPTIED = auto()
    UNSIGNED = auto()


def look(turn: Turn) -> Iterator[Found]:
    """Once for each kind in a conversation: a client does it every time."""
    for position, message, said in echoes(turn):
        kind = _kind(message, said)
        if kind is None or not matched(message, said):
            continue
        assert turn.sent
        model = model_of(turn.model)
        active = model is not None and thinks(model, turn.sent.request.asked)
        severity = _severity(kind, model if active else None)
        field = "reasoning_content" if turn.protocol is Protocol.OPENAI else "thinking"
        yield Found(
            f"Message {position} came back {_SAYS[kind].format(field)}{_then(model, severity)}.",
            about=kind,
            evidence=Evidence(
                message=position,
                ids=tuple(call.id for call in message.calls),
                facts={
                    "kind": kind.value,
                    "model": turn.model,
                    "delivered_in": said.exchange,
                    "source": model.source if model else None,
                },
            ),
            severity=severity,
        )


_SAYS = {
    Kind.MISSING: "without the `{}` that its reply had",
    Kind.EMPTIED: "with its `{}` emptied",
    Kind.UNSIGNED: "with its `{}`, but without the signature",
}


def _kind(message: Message, said: Said) -> Kind | None:
    if not said.thinking or not message.calls:
        return None
    if message.thinking is None:
        return Kind.MISSING
    if message.signed:
        return None  # the server knows it by its signature, with or without its text
    if said.signed:
        return Kind.UNSIGNED if message.thinking else Kind.EMPTIED
    return None if message.thinking else Kind.EMPTIED


def _severity(kind: Kind, model: Model | None) -> Severity:
    """model: None where nothing is known of it, or where it does not think in this request."""
    if model is None or kind is Kind.UNSIGNED or (kind is Kind.EMPTIED and not model.empty):
        return Severity.INFO
    return Severity.ERROR if model.refuses else Severity.WARNING


def _then(model: Model | None, severity: Severity) -> str:
    match severity:
        case Severity.ERROR if model:
            return f"; {model.family} refuses that while it thinks"
        case Severity.WARNING if model:
            return f"; {model.family} is made to work with it"
    return ""


CHECK = Check(
    code="reasoning-dropped",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.INFO,
    party=Party.CLIENT,
    title="The model's thinking is not sent back",
    explained="""\
A reply came with thinking (`reasoning_content`, or a `thinking` block) and a tool call. In the next
request the call is there and the thinking is not, or it is empty. It is not part of the OpenAI
protocol, so frameworks made for that drop it; clients of Messages leave it out to save tokens.

Kimi models that think are trained to go on from it. K2.5, K2.6, K2.7 and K2 Thinking answer
`reasoning_content is missing in assistant tool call message` (400), and so does every later request
of that conversation; an empty text counts as missing for most. K3 takes such a request and is asked
by its documentation to get the thinking of every turn back: without it, it plans anew at each step.
With another model, or with thinking turned off, this is only `info`.""",
    example="""\
data: {"choices": [{"delta": {"reasoning_content": "First I look."}}]}
data: {"choices": [{"delta": {"tool_calls": [{"id": "ls:0", …}]}}]}
next request: {"role": "assistant", "content": "", "tool_calls": [{"id": "ls:0", …}]}""",
    remedy="Send assistant messages back as they came, `reasoning_content` or `thinking` blocks "
    "with their signature included.",
    look=look,
)
