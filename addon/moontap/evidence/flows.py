"""Flows as evidence: capture folders, flow files, HAR, also where they come packed or piped.

A source in, what `capture.diagnosis` makes of each flow out. Never writes.
"""

from collections.abc import Iterator

from mitmproxy import http

from moontap.capture.diagnosis import Diagnosis, Looked
from moontap.capture.reader import FlowFile, Loss, Unreadable, flows_in
from moontap.evidence.damage import Damage
from moontap.evidence.source import Source, Unusable
from moontap.redact.flow import Redactor


def looked(source: Source, diagnosis: Diagnosis) -> Iterator[Looked]:
    """Each flow, masked, with what it comes to. Raises Unusable where none can be read."""
    _learn(source, diagnosis.redactor)
    for flow in _of_file(source) if source.path is not None else _of_memory(source):
        one = diagnosis.flow(flow)
        if one.unread:
            source.damage.append(Damage(f"exchange {one.number} was not read: {one.unread}"))
        yield one


def _learn(source: Source, redactor: Redactor) -> None:
    """Read it for the keys that its headers carry."""
    path = source.path
    records = FlowFile(path) if path is not None else flows_in(source.raw, Loss())
    try:
        for flow in records:
            redactor.learn(flow)
    except Unreadable:
        pass  # which is said when it is read for good


def _of_file(source: Source) -> Iterator[http.HTTPFlow]:
    assert source.path is not None
    file = FlowFile(source.path)
    if source.path.is_file() and not source.path.stat().st_size:
        raise Unusable(f"{source.name}: is empty")
    try:
        yield from (flow for _, flow in file.records())
    except Unreadable as error:
        raise Unusable(str(error)) from None
    _note(source, file.loss)


def _of_memory(source: Source) -> Iterator[http.HTTPFlow]:
    loss, count = Loss(), 0
    for flow in flows_in(source.raw, loss):
        count += 1
        yield flow
    if loss and not count:
        raise Unusable(f"{source.name}: holds no whole exchange: {loss}")
    _note(source, loss)


def _note(source: Source, loss: Loss) -> None:
    if loss:
        source.damage.append(Damage(f"{loss} left out", byte=loss.at))
