"""mitmweb's own page, without a browser: its HTTP interface and the stream of its updates.

One mitmweb's port in, bytes of answers and seconds until they came out. Raises BenchError where it
answers with anything but what it is asked for.
"""

import asyncio
import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from .errors import BenchError
from .rig import TOKEN

_TIMEOUT_S = 600  # thousands of flows, loaded one by one
_XSRF = "00" * 16  # mitmweb compares a cookie with a header, both of them ours
_AUTH = {"Authorization": f"Bearer {TOKEN}"}


class Web:
    """The interface of one mitmweb, over a kept connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)

    def get(self, path: str) -> bytes:
        return self._ask("GET", path)

    def load(self, flows: bytes) -> float:
        """Show these flows in place of what is there, as `File > Open` does; seconds."""
        started = time.perf_counter()
        self._ask("POST", "/flows/dump", flows)
        return time.perf_counter() - started

    def render(self, flow: str, message: str, view: str) -> tuple[float, str]:
        """Seconds, and the text, of a content view as the page asks for it."""
        started = time.perf_counter()
        answer = self.get(f"/flows/{flow}/{message}/content/{view}.json?lines=513")
        seconds = time.perf_counter() - started
        shown = json.loads(answer)
        if view != "auto" and shown["view_name"].lower() != view.lower():
            raise BenchError(f"mitmweb shows {shown['view_name']} where {view} was asked for")
        return seconds, shown["text"]

    def filter(self, expression: str) -> tuple[float, int]:
        """Seconds until mitmweb has said which flows match, and how many."""
        payload = {"name": "search", "expr": expression}
        request = {"type": "flows/updateFilter", "payload": payload}
        seconds, answer = asyncio.run(self._watched("flows/filterUpdate", request=request))
        return seconds, len(answer["matching_flow_ids"])

    def update(self) -> float:
        """Seconds from a command that changes a flow, through mitmproxy's hooks for that, until
        every page is told."""
        arguments = {"arguments": ["@focus", f"seen {time.monotonic_ns()}"]}

        def change() -> None:
            answer = self._ask("POST", "/commands/flow.comment", json.dumps(arguments).encode())
            if b"error" in answer:
                raise BenchError(f"mitmweb did not comment a flow: {answer!r}")

        seconds, _ = asyncio.run(self._watched("flows/update", change=change))
        return seconds

    async def _watched(
        self,
        awaited: str,
        request: Mapping[str, object] | None = None,
        change: Callable[[], None] | None = None,
    ) -> tuple[float, dict[str, Any]]:
        """Seconds, and what the first message of that type says, after one thing or the other."""
        url = f"ws://127.0.0.1:{self._port}/updates"
        watching = await websocket_connect(HTTPRequest(url, headers=_AUTH))
        try:
            started = time.perf_counter()
            if request is not None:
                await watching.write_message(json.dumps(request))
            if change is not None:
                await asyncio.to_thread(change)
            while True:
                message = await asyncio.wait_for(watching.read_message(), _TIMEOUT_S)
                if message is None:
                    raise BenchError(f"mitmweb hung up before {awaited}")
                seconds = time.perf_counter() - started
                told = json.loads(message)
                if told["type"] == awaited:
                    return seconds, told["payload"]
        except TimeoutError:
            raise BenchError(f"mitmweb never told {awaited}") from None
        finally:
            watching.close()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {
            **_AUTH,
            "Cookie": f"_mitmproxy_xsrf={_XSRF}",
            "X-XSRFToken": _XSRF,
            "Content-Type": "application/json",
        }
        try:
            self._http.request(method, path, body, headers)
            answer = self._http.getresponse()
            read = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"mitmweb: {path} failed: {error!r}") from error
        if answer.status != 200:
            raise BenchError(f"mitmweb: {path} answers {answer.status}: {read[:200]!r}")
        return read
