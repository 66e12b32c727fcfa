"""What a test recorded, as a flow file without secrets.

Capture folders in, a file out: whole or not at all. Imports mitmproxy.
"""

from collections.abc import Sequence
from pathlib import Path

from mitmproxy import http

from moontap.care.outfile import write_flows
from moontap.care.scrub import scrubber_for
from moontap.rules import load_rules
from moontap.testing.flows import flows


def keep(own: Path | None, fronts: Sequence[Path | None], path: Path, rules: str | None) -> int:
    """Save what a recording tap has in `own`; how many exchanges that is. Replaces the file.

    fronts: of the taps that the test had before it. Where a single one saw all, its capture is
    saved instead: a tap that makes ids unique sends its agent's new ids upstream, so that calls and
    results agree in its own capture alone. Raises RulesError, Refused.
    """
    if own is None:
        return 0
    recorded = flows(own)
    if len(fronts) == 1 and fronts[0] and len(seen := flows(fronts[0])) == len(recorded):
        recorded = [_sent_to(one, recorded[0].request) for one in seen]
    given = load_rules(rules)
    scrubber = scrubber_for(recorded, given)
    for one in recorded:
        scrubber.scrub(one)
    write_flows(path, recorded, force=True)
    return len(recorded)


def _sent_to(flow: http.HTTPFlow, request: http.Request) -> http.HTTPFlow:
    """The flow as if sent to where the request went: a port of this machine means nothing later."""
    flow.request.scheme, flow.request.port = request.scheme, request.port
    flow.request.host = request.host
    flow.request.headers["host"] = request.headers.get("host", request.pretty_host)
    return flow
