"""Whether a flow file still comes to what its sheet says; and the sheet anew where it should.

A flow file in; a `Wrong` with a text for a person out, or nothing. A file that is damaged is used
as far as it goes, and fails all the same.
"""

import asyncio
import difflib
import json
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.diagnosis import Diagnosis
from moontap.capture.reader import FlowFile, Loss, Unreadable
from moontap.capture.upstream import before_the_tap
from moontap.findings import lines as finding_lines
from moontap.yamlfile import YamlError
from tests.golden import oracle, outcome, sheet, ways
from tests.golden.sheet import Expectation, Sheet
from tests.proxying import HOST, flows_of

OFFLINE, PROXY = "offline", "proxy"
_CONTEXT = 9  # lines: enough to see which exchange or pair it is


class Wrong(Exception):
    """What is wrong with a flow, for a person to read."""


def command(shown: str) -> str:
    """What to type to have a sheet written."""
    return f"scripts/test --fast {shown} --update-flows"


def check(file: Path, shown: str, way: str) -> None:
    """Compare one way's outcome with the sheet. shown: the file's name in messages."""
    with _quiet():
        _check(file, shown, way)


def update(file: Path, shown: str) -> str:
    """Write the sheet's expectation anew; what changed, as a diff. Both ways must agree."""
    with _quiet():
        return _update(file, shown)


def _check(file: Path, shown: str, way: str) -> None:
    path = sheet.path_of(file)
    if not path.exists():
        raise Wrong(f"{shown} has no {path.name} beside it; write one with\n  {command(shown)}")
    about = _read(path, shown)
    if not about.expected:
        raise Wrong(f"{path.name} has no 'expect:' yet; write it with\n  {command(shown)}")
    flows, loss = _load(file, shown)
    found, complaints = _run(flows, about.options, way)
    parts = []
    if loss:
        parts.append(f"{shown}: {loss}; {_flows(len(flows))} could be used")
    parts += complaints
    if about.expected != sheet.dump(found) and (diff := _diff(about, found, path.name, way)):
        parts.append(diff)
        parts.append(f"If that is as it should be: {command(shown)}")
    if parts:
        raise Wrong("\n".join(parts))


def _update(file: Path, shown: str) -> str:
    path = sheet.path_of(file)
    flows, loss = _load(file, shown)
    if loss:
        raise Wrong(f"{shown}: {loss}; its sheet is left as it is")
    rewritten = any(flow.metadata.get(metadata.REWRITTEN) for flow in flows)
    about = _read(path, shown) if path.exists() else None
    options = about.options if about else {"moontap_rewrite": "all" if rewritten else "off"}
    found, complaints = _run(flows, options, OFFLINE)
    live, more = _run(flows, options, PROXY)
    if wrong := [*complaints, *more]:
        raise Wrong("\n".join(wrong))
    if diff := _diff(found, live, OFFLINE, PROXY):
        raise Wrong(f"{shown}: the two ways do not agree; its sheet is left as it is\n{diff}")
    changed = _diff(about, found, f"{path.name} before", "now")
    sheet.write(path, found, rewritten)
    _read(path, shown)  # a new one is not complete yet, and says so
    return changed


def _run(
    flows: Sequence[http.HTTPFlow], options: dict[str, str], way: str
) -> tuple[Expectation, list[str]]:
    """What came of it, and what is wrong whatever the sheet says. What the guard answered no
    upstream has seen, and nobody can play."""
    flows = [flow for flow in flows if metadata.BLOCKED not in flow.metadata]
    bare = [_at_the_api(before_the_tap(flow)) for flow in flows]
    with tempfile.TemporaryDirectory(prefix="moontap-golden-") as kept, _errors() as errors:
        folder = Path(kept)
        got: dict[int, bytes] = {}
        if way == OFFLINE:
            captured = asyncio.run(ways.offline(bare, folder, options))
        else:
            captured, got = asyncio.run(ways.through_proxy(flows, bare, folder, options))
        made = flows_of(captured)
        complaints = [*errors, *oracle.complaints(bare, made), *_recording(flows, made)]
        complaints += _diagnosis(captured)
        if way == PROXY:
            complaints += _transport(flows, made, got)
        return outcome.outcome(captured), complaints


def _recording(recorded: Sequence[http.HTTPFlow], made: Sequence[http.HTTPFlow]) -> Iterator[str]:
    """What the tap saved when it recorded must come out again: the file may not change unseen."""
    for number, (before, after) in enumerate(zip(recorded, made, strict=False), 1):
        if metadata.CALLS not in before.metadata:
            continue  # no tap has recorded it, or none could read it
        if outcome.delivered(before.response) != outcome.delivered(after.response):
            yield f"exchange {number}: its client got other bytes when it was recorded"
        for name in (metadata.CALLS, metadata.REWRITTEN, metadata.SESSION):
            if (then := before.metadata.get(name)) != (now := after.metadata.get(name)):
                yield f"exchange {number}: {name} was {then!r} when it was recorded, now {now!r}"


def _diagnosis(captured: Path) -> Iterator[str]:
    """What the run found must come of what it saved: read later, each word the same."""
    then = outcome.logged(captured / "findings.jsonl")
    diagnosis = Diagnosis()
    now = [
        json.loads(json.dumps(finding_lines.line(finding)))
        for looked in diagnosis.flows(flows_of(captured))
        for finding in looked.findings
    ]
    for before, after in zip_longest(then, now):
        if before != after:
            yield f"found by the run: {before}\nfound in what it saved: {after}"
    for code, fault in diagnosis.judge.faults.items():
        yield f"the check {code} failed: {fault}"


def _at_the_api(flow: http.HTTPFlow) -> http.HTTPFlow:
    """As if it had gone to the host that is tapped here: a stand-in listens elsewhere."""
    request = flow.request
    if request.host != HOST:
        request.scheme, request.host, request.port = "https", HOST, 443
    return flow


def _transport(
    recorded: Sequence[http.HTTPFlow], made: Sequence[http.HTTPFlow], got: dict[int, bytes]
) -> Iterator[str]:
    """What only a real connection can show: upstream's chunks, and the client's bytes."""
    for number, (before, after) in enumerate(zip(recorded, made, strict=False)):
        sizes = ways.chunk_sizes(before)
        noted = [int(size) for size, _ in after.metadata.get(metadata.CHUNKS, ())]
        if sizes is not None and sizes != noted:
            yield f"exchange {number + 1}: chunks of {sizes} came in as {noted}"
        body = after.response.raw_content if after.response else b""
        if not after.metadata.get(metadata.INCOMPLETE) and got[number] != body:
            yield f"exchange {number + 1}: the client got other bytes than were saved"


def _load(file: Path, shown: str) -> tuple[list[http.HTTPFlow], Loss]:
    flows = FlowFile(file)
    try:
        found = list(flows)
    except Unreadable as error:
        raise Wrong(str(error).replace(str(file), shown)) from None
    if not found:
        raise Wrong(f"{shown} holds no exchange")
    return found, flows.loss


def _read(path: Path, shown: str) -> Sheet:
    try:
        return sheet.read(path, str(Path(shown).with_suffix(".yaml")))
    except YamlError as error:
        raise Wrong(str(error)) from None


def _diff(before: Sheet | Expectation | None, after: Expectation, name: str, other: str) -> str:
    try:
        was = before.expect if isinstance(before, Sheet) else before
    except YamlError as error:
        raise Wrong(str(error)) from None
    left, right = (sheet.dump(one).splitlines() if one else [] for one in (was, after))
    lines = difflib.unified_diff(left, right, name, other, lineterm="", n=_CONTEXT)
    return "\n".join(lines)


def _flows(count: int) -> str:
    return "1 flow" if count == 1 else f"{count} flows"


@contextmanager
def _errors() -> Iterator[list[str]]:
    """What is logged as an error meanwhile: an addon's exception is but a log line in mitmproxy."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name.startswith(("mitmproxy", "moontap")):
                found.append(f"logged: {record.getMessage()}")

    keep = Keep(logging.ERROR)
    logging.getLogger().addHandler(keep)
    try:
        yield found
    finally:
        logging.getLogger().removeHandler(keep)


@contextmanager
def _quiet() -> Iterator[None]:
    """mitmproxy sets the root logger's level, and leaves it."""
    level = logging.getLogger().level
    try:
        yield
    finally:
        logging.getLogger().setLevel(level)
