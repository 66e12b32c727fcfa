"""A flow as people may see it: a copy without secrets.

A mitmproxy flow in, a copy out. Secrets are taken out of the bodies, before anything is cut short
or wrapped: half a key is no longer known for one. The flow itself is never changed.
"""

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.recorder import copy_to_save
from moontap.redact.flow import Redactor


def masked(flow: http.HTTPFlow, redactor: Redactor) -> http.HTTPFlow:
    """The copy, live where the flow is. redactor: of one thread."""
    shown = copy_to_save(flow)
    live = {name: flow.metadata[name] for name in metadata.LIVE if name in flow.metadata}
    shown.metadata.update(live)
    redactor.redact(shown)
    return shown
