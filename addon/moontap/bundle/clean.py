"""What goes into a bundle, scrubbed and then checked: flows, and the texts made of them.

Flows and texts in, clean ones out, and the places that are not clean after all: the check is that
of `moontap scrub --check`. It never says what stands in a place.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mitmproxy import connection, http

from moontap.capture import metadata
from moontap.care import made
from moontap.care.connections import forget
from moontap.care.identities import Known
from moontap.care.parts import Finding
from moontap.care.scrub import Scrubber, scrubber_for
from moontap.care.words import Kind
from moontap.rules import Rules

_PLACE = "response body"
_MEMBER = re.compile(r"^\$\[(\d+)\]")


class Cleaner:
    """known: whom all of the evidence names, not only what goes into the bundle. salt: as in
    `care.scrub`. counts: the places replaced in flows."""

    def __init__(self, rules: Rules, known: Known, salt: str) -> None:
        self.counts: Counter[Kind] = Counter()
        self._rules = rules
        self._scrubber = Scrubber(rules, known, salt)
        self._made: set[bytes] = set()

    def flows(self, flows: Iterable[http.HTTPFlow]) -> list[http.HTTPFlow]:
        """Clean flows in place."""
        cleaned = list(flows)
        for flow in cleaned:
            self.counts += self._scrubber.scrub(flow)
            self._made |= made.read(flow)
        return cleaned

    def text(self, text: str) -> str:
        """Clean a text, or JSON, which stays JSON."""
        flow = self._flow(text)
        counts = self._scrubber.scrub(flow)
        self._made |= made.read(flow)
        if not counts:
            return text  # also what no encoder takes
        assert flow.response
        return (flow.response.raw_content or b"").decode("utf-8", "replace")

    def left_in_flows(self, flows: Iterable[http.HTTPFlow]) -> list[str]:
        """Where flows are not clean: `flow 2: request header cookie: secret`."""
        copies = [_copy(flow) for flow in flows]
        own = scrubber_for(copies, self._rules)
        found: dict[str, None] = {}
        for number, flow in enumerate(copies, 1):
            for scrubber in (self._scrubber, own):
                for finding in scrubber.findings(_copy(flow)):
                    found[f"flow {number}: {finding}"] = None
        return list(found)

    def left_in(self, text: str) -> list[str]:
        """Where a text is not clean: `$.result: secret`, or its kind alone."""
        return [_said(finding) for finding in self._scrubber.findings(self._flow(text))]

    def members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Clean an object of ours: what its members hold, not what they are called."""
        clean = json.loads(self.text(json.dumps(list(value.values()))))
        return dict(zip(value, clean, strict=True))

    def left_in_members(self, value: Mapping[str, Any]) -> list[str]:
        """Where what it holds is not clean: `$.result: secret`."""
        names = list(value)
        return [
            _MEMBER.sub(lambda at: f"$.{names[int(at[1])]}", place)
            for place in self.left_in(json.dumps(list(value.values())))
        ]

    def _flow(self, text: str) -> http.HTTPFlow:
        """A flow that has the text as its reply, and nothing else: what is scrubbed are flows."""
        nowhere = ("127.0.0.1", 0)
        client = connection.Client(peername=nowhere, sockname=nowhere)
        flow = http.HTTPFlow(client, connection.Server(address=None))
        flow.request = http.Request.make("GET", "https://api.moonshot.cn/")
        kind = "application/json" if text.startswith(("{", "[")) else "text/plain"
        body = text.encode("utf-8", "surrogatepass")
        flow.response = http.Response.make(200, body, {"content-type": kind})
        forget(flow)
        if self._made:
            flow.metadata[metadata.SCRUBBED] = b"".join(sorted(self._made))
        return flow


def _copy(flow: http.HTTPFlow) -> http.HTTPFlow:
    copy = http.HTTPFlow.from_state(flow.get_state())
    assert isinstance(copy, http.HTTPFlow)
    return copy


def _said(finding: Finding) -> str:
    place = finding.where.removeprefix(_PLACE).strip()
    return f"{place}: {finding.kind}" if place else str(finding.kind)
