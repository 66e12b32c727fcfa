"""`moontap show`: one exchange of a saved file, by any of its ids.

An id and saved flows in; the exchange for a person, or as JSON, on stdout. Keys are masked in what
is printed, and it changes no file.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.programs import typed
from moontap.commands.terminal import put
from moontap.report.text import many, plain

if TYPE_CHECKING:
    from moontap.capture.diagnosis import Looked
    from moontap.findings.turn import Turn
    from moontap.rules import Rules

_MOST_TEXT = 10_000
_MOST_LISTED = 20

_EXAMPLE = """\
example:
  moontap show Bash_0 moontap-captures          the exchange whose reply made this call
  moontap show chatcmpl-5e1f traffic.flow       the one with this message id, or request id
  moontap show 8f3c traffic.flow --json         the one whose flow id begins so

Where an id stands for several exchanges they are listed, the newest last; a flow id is but one's.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "show",
        help="show one exchange, by a tool-call, message, request or flow id",
        description="Finds an exchange by any of its ids and shows what was in it.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "id",
        metavar="ID",
        help="a tool call's id, as the client or the server had it, a message id, a request id, "
        "or the beginning of a flow id",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line for each that was found"
    )
    parser.add_argument(
        "--all", action="store_true", help=f"list all that have the id, not the last {_MOST_LISTED}"
    )
    parser.add_argument(
        "--rules", metavar="FILE", help="YAML file with rules; default: the run's own"
    )
    parser.set_defaults(execute=show)


def show(options: argparse.Namespace) -> int:
    """Print it; exit code 0, 1 where nothing was found, 2 where something could not be read.

    Raises UsageError.
    """
    # Slow to import: mitmproxy.
    from moontap.commands.inforce import rules_for
    from moontap.commands.saved import Saved

    if not options.id:
        raise UsageError("give an id")
    rules_for((), options.rules)  # a bad one is said before anything is read
    saved = Saved("show", options.files, empty=False)
    hits, notes = _Hits(options.id), list[str]()
    for path, flows in saved.each():
        rules, note = rules_for([path], options.rules)
        if hits.read(path, flows, rules) and note:
            notes.append(note)
        saved.unread(path, hits.unread)
    found = hits.found()
    code = saved.close()
    if not found:
        put(
            f"moontap show: no tool call, message, request or flow has the id {plain(options.id)} "
            f"in {many(saved.count, 'exchange')}\n",
            sys.stderr,
        )
        return code or 1
    most = len(found) if options.all else _MOST_LISTED
    text = _as_json(found) if options.json else _as_text(found, most)
    put(hits.masked(text), sys.stdout)
    for note in dict.fromkeys(notes):
        put(f"moontap show: {plain(note)}\n", sys.stderr)
    return code


class _Hits:
    """What was found so far. An id that is one's own counts before the beginning of a flow's."""

    def __init__(self, id_: str) -> None:
        self._id = id_
        self.unread: list[str] = []
        """Why exchanges of the latest file could not be read, a line each."""
        self._masks: list[Callable[[str], str]] = []
        self._own: list[dict[str, Any]] = []
        self._begun: list[dict[str, Any]] = []

    def masked(self, text: str) -> str:
        """Once more: a key that an error echoes may be known from a later request's headers."""
        for mask in self._masks:
            text = mask(text)
        return text

    def read(self, path: Path, flows: "Iterator[Any]", rules: "Rules") -> bool:
        """A file; whether anything was found. What becomes of a call is known later, so it is put
        to the exchange then."""
        from moontap.capture.diagnosis import Diagnosis
        from moontap.findings import lines as finding_lines

        diagnosis, self.unread = Diagnosis(rules), []
        self._masks.append(diagnosis.redactor.mask_text)
        mine: dict[str, dict[str, Any]] = {}
        for looked in diagnosis.flows(flows):
            if looked.unread:
                self.unread.append(looked.unread)
            for line in looked.lines:
                _settle(mine, line)
            into = self._where(looked)
            if into is not None:
                mine[looked.flow.id] = _shown(path, looked)
                into.append(mine[looked.flow.id])
            for finding in looked.findings:
                line = finding_lines.line(finding)
                for flow in {finding.flow, *_flows_of(finding.evidence.facts)}:
                    if flow in mine:
                        mine[flow]["findings"].append(line)
        for line in diagnosis.close():
            _settle(mine, line)
        return bool(mine)

    def found(self) -> list[dict[str, Any]]:
        """Those that the id stands for, the newest last."""
        found = self._own or self._begun
        return sorted(found, key=lambda one: one["at"] or "")

    def _where(self, looked: "Looked") -> "list[dict[str, Any]] | None":
        """Where an exchange belongs; None where the id is none of its."""
        from moontap.capture.pairlog import request_id

        turn, flow = looked.turn, looked.flow
        ids = {flow.id, request_id(flow)}
        if turn and turn.got:
            got = turn.got
            ids |= {got.reply.message_id, *got.upstream_ids, *(call.id for call in got.calls)}
        if self._id in ids:
            return self._own
        return self._begun if flow.id.startswith(self._id) else None


def _settle(mine: Mapping[str, dict[str, Any]], line: Mapping[str, Any]) -> None:
    """Put a line of pairs.jsonl to the exchange that made the call."""
    one = mine.get(line["call_flow"] or "")
    for call in one["calls"] if one else ():
        if (call["choice"], call["index"], call["id"]) == tuple(
            line[name] for name in ("choice", "index", "id")
        ):
            call["duplicate"] = line["duplicate"]
            call.update({name: line[name] for name in ("status", "result", "latency_s")})
            call["result_flow"] = line["result_flow"]


def _flows_of(facts: Mapping[str, Any]) -> Iterator[str]:
    """The flows that the facts of a finding name."""
    for name, fact in facts.items():
        if name.endswith(("flow", "flows", "exchange")):
            every = fact if isinstance(fact, list) else [fact]
            yield from (one for one in every if one and isinstance(one, str))


def _shown(path: Path, looked: "Looked") -> dict[str, Any]:
    """An exchange in JSON's types. calls: what became of them comes later."""
    from moontap.capture.pairlog import request_id
    from moontap.moments import rfc3339

    flow, turn = looked.flow, looked.turn
    got = turn.got if turn else None
    request, response = flow.request, flow.response
    text = "\n".join(got.text.values()) if got else ""
    return {
        "file": str(path),
        "exchange": looked.number,
        "flow": flow.id,
        "at": rfc3339(request.timestamp_start or None),
        "method": request.method,
        "url": request.url.partition("?")[0],
        "protocol": turn.protocol.value if turn else None,
        "session": turn.session if turn else None,
        "agent": turn.agent if turn else None,
        "model": turn.model if turn else None,
        **_request(turn),
        "status": response.status_code if response else None,
        "ending": _ending(looked),
        "message_id": got.reply.message_id if got else None,
        "request_id": request_id(flow),
        "text": text[:_MOST_TEXT],
        "calls": _calls(turn),
        "results": [line for line in looked.lines if line["result_flow"] == flow.id],
        "findings": [],
        "unread": looked.unread,
    }


def _request(turn: "Turn | None") -> dict[str, Any]:
    sent = turn.sent if turn else None
    if not sent:
        return {"stream": None, "messages": 0, "tools": 0, "size": 0, "new": []}
    try:
        tools = json.loads(sent.request.asked.tools or b"[]")
    except (ValueError, RecursionError):
        tools = []
    return {
        "stream": sent.request.stream,
        "messages": len(sent.request.messages),
        "tools": len(tools) if isinstance(tools, list) else 0,
        "size": sent.size,
        "new": [
            {
                "index": index,
                "role": message.role,
                "text": message.text[:_MOST_TEXT],
                "calls": [
                    {"tool": call.name, "id": call.id, "arguments": _text(call.arguments)}
                    for call in message.calls
                ],
                "results": [
                    {
                        "id": result.id,
                        "is_error": result.is_error,
                        "content": _value(result.content),
                    }
                    for result in message.results
                ],
            }
            for index, message in sent.fresh
        ],
    }


def _calls(turn: "Turn | None") -> list[dict[str, Any]]:
    if not turn or not turn.got:
        return []
    got = turn.got
    duplicates = [one.duplicate for one in turn.delivered]
    return [
        {
            "tool": call.name,
            "id": call.id,
            "upstream_id": upstream_id,
            "rewritten": call.id != upstream_id,
            "duplicate": number < len(duplicates) and duplicates[number],
            "choice": call.choice,
            "index": call.index,
            "arguments": call.arguments[:_MOST_TEXT],
            "status": None,
            "result": None,
            "latency_s": None,
            "result_flow": None,
        }
        for number, (call, upstream_id) in enumerate(zip(got.calls, got.upstream_ids, strict=True))
    ]


def _ending(looked: "Looked") -> str:
    from moontap.bundle.rounds import ending, stopped_by

    if stopped := stopped_by(looked):
        return f"moontap stopped it, nothing was sent on ({stopped})"
    if looked.turn:
        return ending(looked.turn)
    return "" if looked.flow.response else "no reply"


def _text(arguments: bytes) -> str:
    return arguments[:_MOST_TEXT].decode("utf-8", "replace")


def _value(content: bytes) -> Any:
    """A result as the client sent it; one that is very long as text, cut."""
    if len(content) > _MOST_TEXT:
        return _text(content)
    try:
        return json.loads(content or b"null")
    except (ValueError, RecursionError):
        return _text(content)


def _as_json(found: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in found)


def _as_text(found: list[dict[str, Any]], most: int) -> str:
    from moontap.report.exchange import headline, lines

    if len(found) == 1:
        return "\n".join(lines(found[0])) + "\n"
    said = [f"{len(found)} exchanges, the newest last:"]
    if (left := len(found) - most) > 0:
        said.append(f"  … {left} before; --all lists them")
    said += [f"  {headline(one)}" for one in found[-most:]]
    last = found[-1]
    flow, file = plain(last["flow"]), shown(Path(last["file"]))
    # An id that is no word of the screen cannot be pasted, and one with a dash is an option.
    if flow == last["flow"] and not flow.startswith("-"):
        said.append(f"one of them: {typed('moontap')} show {shlex.quote(flow)} {file}")
    return "\n".join(said) + "\n"
