"""Exchanges that stand in saved flows more than once, told from others that only share their id.

Flows in, in the order of their files; which of them to show, and under which id, out. It holds no
flow.
"""

import hashlib
import re
import uuid
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mitmproxy import http

_IN_ADDRESS = re.compile(r"[0-9a-f-]+")  # mitmweb opens no flow whose id is anything else

type _Key = tuple[str, Hashable]


class Snapshots:
    """Hand it every flow with `note`, then each once more to `shows`, in the same order.

    One exchange has one id and begins at one time. It comes again as a snapshot of a stream under
    way, or from a cut of its capture. A client replay keeps the id and begins anew.
    """

    def __init__(self) -> None:
        self._best: dict[_Key, tuple[tuple[bool, ...], int, int]] = {}
        self._noted = self._asked = 0
        self._ids: dict[str, _Key] = {}

    def note(self, flow: "http.HTTPFlow") -> None:
        """Compare it with the others of its exchange: the most complete one is shown."""
        key, (ended, size) = _key(flow), _completeness(flow)
        known = self._best.get(key)
        if known is None or (ended, size) > known[:2]:
            self._best[key] = (ended, size, self._noted)
        self._noted += 1

    def shows(self, flow: "http.HTTPFlow") -> bool:
        """Whether this is the one of its exchange; if so, with an id that no other has. One that
        has been written since is shown."""
        key, number = _key(flow), self._asked
        self._asked += 1
        if self._best.setdefault(key, ((), 0, number))[2] != number:
            return False
        own = self._ids.setdefault(flow.id, key) == key
        if not own or not _IN_ADDRESS.fullmatch(flow.id):
            flow.id = str(uuid.uuid4())
        return True


def _key(flow: "http.HTTPFlow") -> _Key:
    begun: Hashable = flow.request.timestamp_start
    if not begun:  # others' files: nothing but what was said tells them apart
        response = flow.response.raw_content if flow.response else None
        digest = hashlib.sha256(f"{flow.request.method} {flow.request.url}\n".encode())
        for body in (flow.request.raw_content, response):
            digest.update(hashlib.sha256(body or b"").digest())
        begun = digest.digest()
    return flow.id, begun


def _completeness(flow: "http.HTTPFlow") -> tuple[tuple[bool, ...], int]:
    """How far it has come: the more, the greater."""
    response, whole = flow.response, not flow.metadata.get("moontap.incomplete")
    if response is None:
        return (False, whole, flow.error is not None), 0
    return (True, whole, response.timestamp_end is not None), len(response.raw_content or b"")
