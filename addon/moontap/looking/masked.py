"""A flow as people may see it: a copy without secrets.

A mitmproxy flow in, a copy out. Secrets are taken out of the bodies, before anything is folded
or wrapped: half a key is no longer known for one. The flow itself is never changed.
"""

from typing import NamedTuple

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.recorder import copy_to_save
from moontap.looking.bounds import Left, cut_short
from moontap.redact.flow import Redactor


class Masked(NamedTuple):
    """The copy, and what is to be said of what it lacks."""

    flow: http.HTTPFlow
    left: Left


def masked(flow: http.HTTPFlow, redactor: Redactor) -> Masked:
    """The copy, live where the flow is. redactor: of one thread."""
    shown = copy_to_save(flow)
    live = {name: flow.metadata[name] for name in metadata.LIVE if name in flow.metadata}
    shown.metadata.update(live)
    left = cut_short(shown)
    redactor.redact(shown)
    return Masked(shown, left)
