"""A reply as plain data, before it takes the shape of a protocol.

In: a decision, the ids' way, the faults in force. Out: `Reply`. It never makes bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from moontap.standin.decide import Decision
from moontap.standin.mint import IdForm, Mint, call_ids, make_uuid
from moontap.standin.script import Call, Fault, FaultKind
from moontap.standin.seen import Protocol, Seen

Faults = Mapping[FaultKind, Fault]


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A call with its id; `arguments` is the JSON text as it goes out."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """`choices` holds the calls of each choice; text and thinking are the same in all."""

    message_id: str
    model: str
    created: int
    text: str
    thinking: str
    choices: tuple[tuple[ReplyCall, ...], ...]
    input_tokens: int
    output_tokens: int
    delta_chars: int

    @property
    def calls(self) -> tuple[ReplyCall, ...]:
        return self.choices[0]


def build(
    seen: Seen,
    decision: Decision,
    *,
    model: str,
    mint: Mint,
    form: IdForm | None,
    nonce: str,
    created: int,
    delta_chars: int,
    faults: Faults,
) -> Reply:
    """Mints the ids and puts the reply together. Equal arguments give an equal reply."""
    in_history = len(seen.calls)
    if FaultKind.FORGET in faults:
        in_history = max(0, in_history - faults[FaultKind.FORGET].calls)
    count = 1
    if FaultKind.CHOICES in faults and seen.protocol is Protocol.CHAT:
        count = faults[FaultKind.CHOICES].choices
    arguments = [_arguments(call) for call in decision.calls]
    names = [call.name for call in decision.calls]
    choices = []
    for choice in range(count):
        ids = _spoilt(
            call_ids(
                mint,
                names,
                protocol=seen.protocol,
                form=form,
                in_history=in_history,
                nonce=nonce,
                choice=choice,
            ),
            faults,
        )
        choices.append(tuple(map(ReplyCall, ids, names, arguments)))
    written = decision.text + decision.thinking + "".join(names + arguments)
    return Reply(
        message_id=f"chatcmpl-{make_uuid(nonce, 'message')}",
        model=model,
        created=created,
        text=decision.text,
        thinking=decision.thinking,
        choices=tuple(choices),
        input_tokens=seen.input_tokens,
        output_tokens=max(1, count * len(written) // 4),
        delta_chars=delta_chars,
    )


def _arguments(call: Call) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _spoilt(ids: list[str], faults: Faults) -> list[str]:
    if FaultKind.EMPTY_ID in faults:
        return [""] * len(ids)
    if FaultKind.SAME_ID in faults and ids:
        given = faults[FaultKind.SAME_ID].id
        return [ids[0] if given is None else given] * len(ids)
    return ids


def pieces(text: str, size: int) -> list[str]:
    """The text cut every `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def argument_pieces(text: str, size: int) -> list[str]:
    """Arguments in at least two pieces where they have two characters to share."""
    return pieces(text, max(1, min(size, (len(text) + 1) // 2)))
