"""One exchange for a person: what was asked, what was new in it, what came back, what was wrong.

A dict of JSON types in, as `moontap show --json` prints it, lines of text out. Pure. Nothing from
the wire reaches the screen as markup or control sequence.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moontap.findings.types import Severity
from moontap.report.text import latency, many, plain, short

_ID, _TEXT, _VALUE = 80, 300, 200
_MOST = 12

type Shown = Mapping[str, Any]


def lines(one: Shown) -> Iterator[str]:
    """All of it."""
    for line in _lines(one):
        yield plain(line)


def headline(one: Shown) -> str:
    """It in a line: when, which flow, its calls."""
    calls = ", ".join(_call_in_short(call) for call in one["calls"]) or _outcome(one)
    return plain(f"{one['at'] or '(no time)'}  {one['flow']}  {calls}")


def _lines(one: Shown) -> Iterator[str]:
    yield f"exchange {one['exchange']} of {one['file']}"
    yield f"  flow      {one['flow']}  {one['at'] or ''}".rstrip()
    yield f"  request   {one['method']} {one['url']}"
    if one["unread"]:
        yield f"  not read: {one['unread']}"
    if one["session"] is not None:
        agent = f", agent {one['agent']}" if one["agent"] else ""
        yield f"  session   {one['session']}{agent}"
        yield f"  asked     {_asked(one)}"
        yield from _some("  new", [_message(message) for message in one["new"]])
    yield f"  answer    {_outcome(one)}"
    yield f"  message   {short(one['message_id'], _ID) or '(no message id)'}"
    yield f"  request id  {short(one['request_id'], _ID) or '(none)'}"
    if one["text"]:
        yield f"  text      {short(one['text'], _TEXT)}"
    for call in one["calls"]:
        yield from _call(call)
    yield from _some("  results that it brought", [_result(line) for line in one["results"]])
    by_code: dict[str, list[Shown]] = {}
    for finding in one["findings"]:
        by_code.setdefault(finding["code"], []).append(finding)
    for same in by_code.values():
        # The latest of the most severe: what is said again says more.
        finding = max(reversed(same), key=lambda one: Severity(one["severity"]).rank)
        at = finding["evidence"]["exchange"]
        notes = [f"found at exchange {at}"] if at != one["exchange"] else []
        if len(same) > 1:
            span = f"{same[0]['evidence']['exchange']} to {same[-1]['evidence']['exchange']}"
            notes.append(f"{len(same)} times, exchange {span}")
        later = f" ({'; '.join(notes)})" if notes else ""
        message = short(finding["message"], _TEXT)
        yield f"  {finding['severity']}: {finding['code']}{later}: {message}"
        if finding["remedy"]:
            yield f"    what to do: {short(finding['remedy'], _TEXT)}"
        yield f"    {finding['link']}"


def _asked(one: Shown) -> str:
    streamed = "streamed" if one["stream"] else "whole"
    return (
        f"{one['model'] or '(no model)'}, {streamed}, {many(one['messages'], 'message')}, "
        f"{many(one['tools'], 'tool')}, {one['size']:,} bytes"
    )


def _some(title: str, said: Sequence[str]) -> Iterator[str]:
    """The last of them: the newest are at the end."""
    if not said:
        return
    yield title
    if (left := len(said) - _MOST) > 0:
        yield f"    … {left} before"
    for line in said[-_MOST:]:
        yield f"    {line}"


def _message(message: Shown) -> str:
    parts = [short(message["text"], _VALUE)] if message["text"] else []
    parts += [
        f"call {call['tool']} {short(call['id'], _ID)} {short(call['arguments'], _VALUE)}"
        for call in message["calls"]
    ]
    parts += [
        f"result of {short(result['id'], _ID)}: {short(result['content'], _VALUE)}"
        for result in message["results"]
    ]
    return f"{message['index']} {message['role']}: {' | '.join(parts) or '(empty)'}"


def _outcome(one: Shown) -> str:
    status = f"status {one['status']}" if one["status"] else ""
    return ", ".join(filter(None, (status, one["ending"]))) or "none"


def _call(call: Shown) -> Iterator[str]:
    yield f"  call      {_call_in_short(call)} {short(call['arguments'], _VALUE)}"
    if call["result"] is not None:
        took = latency(call["latency_s"])
        yield f"    result  {short(call['result'], _VALUE)}" + (f"  ({took})" if took else "")


def _call_in_short(call: Shown) -> str:
    notes = [f"upstream {call['upstream_id']}"] if call["rewritten"] else []
    notes += ["used before"] if call["duplicate"] else []
    notes += [call["status"]] if call["status"] else []
    about = f" ({', '.join(notes)})" if notes else ""
    return f"{call['tool']} {short(call['id'], _ID) or '(no id)'}{about}"


def _result(line: Shown) -> str:
    return (
        f"{line['tool'] or '(no call)'} {short(line['id'], _ID)}, {line['status']}: "
        f"{short(line['result'], _VALUE)}"
    )
