"""What the addon is compared with: mitmproxy that streams replies and does nothing else."""

from mitmproxy import http


def responseheaders(flow: http.HTTPFlow) -> None:
    assert flow.response
    flow.response.stream = True
