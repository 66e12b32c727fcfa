"""The differences of two captures as lines of text.

What was compared in, lines out, the first parting first. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from moontap.care.difference import Call, Compared, Conversation, Difference, Kind, values
from moontap.report.text import many, plain, short

_VALUE, _CALL = 60, 90
_BEFORE = 15
_MOST = 20


def lines(compared: Sequence[Compared], ids: bool) -> Iterator[str]:
    """All there is to say; one line where the captures are the same."""
    differences = [(one, each) for one in compared for each in one.differences]
    if differences:
        yield _parting(*differences[0], several=len(compared) > 1)
        for one in compared:
            yield from _conversation(one, several=len(compared) > 1)
        yield ""
    yield _summary(compared, [each for _, each in differences], ids)


def _parting(where: Compared, first: Difference, several: bool) -> str:
    """The first difference, for a person in a hurry."""
    of = f" of {_name(where)}" if several else ""
    call = first.a or first.b
    assert call
    if first.kind in (Kind.ONLY_A, Kind.ONLY_B, Kind.ARGUMENTS):
        # What stands there on the other side says more than that it is not the same.
        a, b = _there(where.a, first.a, first.b), _there(where.b, first.b, first.a)
        return f"they part at call {call.number}{of}: A {a} · B {b}"
    return f"they part at call {call.number}{of}, {_call(call)}: {_what(first)}"


def _there(conversation: Conversation | None, own: Call | None, other: Call | None) -> str:
    """The call of one side, or the one that stands in its place, or that there is none."""
    if own:
        return _call(own)
    calls = conversation.calls if conversation else ()
    at = other.number if other else 1
    return _call(calls[at - 1]) if at <= len(calls) else "has no more calls"


def _conversation(one: Compared, several: bool) -> Iterator[str]:
    if several and one.differences:
        yield ""
        yield f"{_name(one)}:"
    for kind in Kind:
        found = [each for each in one.differences if each.kind is kind]
        if not found:
            continue
        yield ""
        yield f"{kind.value} ({len(found)})"
        yield from (f"  {_number(each)}  {_about(each)}" for each in found[:_MOST])
        if len(found) > _MOST:
            yield f"  and {len(found) - _MOST} more"


def _name(one: Compared) -> str:
    """The conversation, by its names in both captures where they differ."""
    found = dict.fromkeys(_names(conversation) for conversation in (one.a, one.b) if conversation)
    return " / ".join(found)


def _names(one: Conversation) -> str:
    agent = f" agent {one.agent}" if one.agent else ""
    return short(f"session {one.session}{agent}", _CALL)


def _number(each: Difference) -> str:
    """Where the call stands on either side."""
    if each.a and each.b:
        same = each.a.number == each.b.number
        return f"call {each.a.number}" if same else f"call {each.a.number} (B {each.b.number})"
    call = each.a or each.b
    return f"call {call.number}" if call else ""


def _about(each: Difference) -> str:
    call = each.a or each.b
    assert call
    if each.kind in (Kind.ONLY_A, Kind.ONLY_B):
        return f"{_call(call)}: {call.line['status']}"
    if each.kind is Kind.ARGUMENTS:
        return f"{plain(str(call.line['tool']))}: {_what(each)}"
    return f"{_call(call)}: {_what(each)}"


def _what(each: Difference) -> str:
    """What is different about two calls that stand side by side."""
    assert each.a
    assert each.b
    a, b = each.a.line, each.b.line
    match each.kind:
        case Kind.STATUS:
            return f"A {a['status']} · B {b['status']}"
        case Kind.ID:
            return f"A {_ids(a)} · B {_ids(b)}"
        case Kind.RESULT:
            return _values(a["result"], b["result"]) or "differs behind what is kept of it"
        case _:
            return _values(a["arguments"], b["arguments"])


def _values(a: Any, b: Any) -> str:
    found = values(_text(a), _text(b))
    said = (
        (f"{plain(path)}: " if path else "") + f"A {_one(mine, theirs)} · B {_one(theirs, mine)}"
        for path, mine, theirs in found
    )
    return "; ".join(said)


def _text(value: Any) -> Any:
    """Content blocks of one text as this text: clients write a result either way."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        block = value[0]
        if block.keys() <= {"type", "text", "cache_control"} and isinstance(block.get("text"), str):
            return block["text"]
    return value


def _one(value: Any, other: Any) -> str:
    """A value; of a long text what stands around the first character that differs."""
    if value is ...:
        return "-"
    if not isinstance(value, str):
        return short(value, _VALUE) or "null"
    start = 0
    if isinstance(other, str) and max(len(value), len(other)) > _VALUE:
        pairs = enumerate(zip(value, other, strict=False))
        differs = next((at for at, (x, y) in pairs if x != y), min(len(value), len(other)))
        start = max(0, differs - _BEFORE)
    return f'"{"…" if start else ""}{short(value[start:], _VALUE)}"'


def _ids(line: Any) -> str:
    upstream = "" if line["id"] == line["upstream_id"] else f" (upstream {line['upstream_id']})"
    return plain(f"{line['id']}{upstream}")


def _call(call: Call) -> str:
    return f"{plain(str(call.line['tool'] or 'a result'))} {short(call.line['arguments'], _CALL)}"


def _summary(compared: Sequence[Compared], all_: Sequence[Difference], ids: bool) -> str:
    same = sum(one.same for one in compared)
    kinds = [(kind, sum(each.kind is kind for each in all_)) for kind in Kind]
    said = ", ".join(f"{count} {kind.value}" for kind, count in kinds if count)
    said = f"different: {said}" if said else "the same"
    said += f"; {many(same, 'call')} side by side"
    said += f" in {many(len(compared), 'conversation')}" if len(compared) != 1 else ""
    other = sum(one.other_ids for one in compared)
    if other and not ids:
        said += f"; ids differ in {other} of them (--ids compares them)"
    return said


def as_json(compared: Iterable[Compared]) -> Iterator[dict[str, Any]]:
    """One object a difference: what it is, where, and both lines of `pairs.jsonl`."""
    for one in compared:
        for each in one.differences:
            yield {
                "v": 1,
                "kind": each.kind.value,
                "a_call": each.a.number if each.a else None,
                "b_call": each.b.number if each.b else None,
                "a": dict(each.a.line) if each.a else None,
                "b": dict(each.b.line) if each.b else None,
            }
