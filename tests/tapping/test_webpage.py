"""mitmweb's page as `moontap proxy --web` and `moontap look` set it up, served in this process."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import httpx
import pytest
from mitmproxy import flowfilter, http
from mitmproxy.test import tflow
from mitmproxy.tools.web.master import WebMaster

from moontap.tapping import webpage
from moontap.tapping.tap import TapError, running


@asynccontextmanager
async def page(conf: Path, port: int = 0) -> AsyncIterator[tuple[WebMaster, httpx.AsyncClient]]:
    """A master with the page, and a browser that keeps cookies."""
    options = webpage.web_options(port) | {"server": False}
    async with (
        running([], webpage.web_master, str(conf), **options) as (master, _),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        yield cast(WebMaster, master), client


async def test_it_listens_on_loopback_alone(tmp_path: Path) -> None:
    async with page(tmp_path) as (master, client):
        assert master.options.web_host == "127.0.0.1"
        port = master.options.web_port
        assert port
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.2:{port}/")


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TapError, match=f"{port}.* in use"):
            async with page(tmp_path, port):
                pass


async def test_what_it_shows_at_first_stands_in_the_link(tmp_path: Path) -> None:
    async with page(tmp_path) as (master, _):
        own, _, shown = webpage.link(master).partition("#")
        assert own == master.web_url
        assert unquote(shown) == f"/flows?s={webpage.FILTER}"
        # One word for a shell, and for a terminal that makes links of what looks like one.
        assert not set(shown) & set(" ()|&!'\"")
        assert master.options.web_columns == list(webpage.COLUMNS)
        assert master.options.web_open_browser is False


def _exchange(method: str, path: str, status: int | None) -> http.HTTPFlow:
    """status: None: it failed; 0: it is under way."""
    flow = tflow.tflow(resp=bool(status), err=status is None)
    flow.request.method, flow.request.path = method, path
    if flow.response and status:
        flow.response.status_code = status
    return flow


@pytest.mark.parametrize(
    ("method", "path", "status", "shown"),
    [
        ("POST", "/anthropic/v1/messages?beta=true", 200, True),
        ("POST", "/v1/chat/completions", 200, True),
        ("POST", "/v1/chat/completions", 400, True),
        ("POST", "/v1/chat/completions", None, True),
        ("GET", "/v1/models", 200, True),
        ("HEAD", "/anthropic", 200, False),
        ("HEAD", "/anthropic", 404, False),
        ("HEAD", "/anthropic", None, True),
        ("POST", "/anthropic/v1/messages/count_tokens", 200, False),
        ("POST", "/anthropic/v1/messages/count_tokens?beta=true", 200, False),
        ("POST", "/anthropic/v1/messages/count_tokens", 401, True),
        ("POST", "/anthropic/v1/messages/count_tokens", None, True),
        ("POST", "/anthropic/v1/messages/count_tokens", 0, True),
    ],
)
def test_it_hides_no_request_that_went_wrong(
    method: str, path: str, status: int | None, shown: bool
) -> None:
    chosen = cast(Callable[[Any], bool], flowfilter.parse(webpage.FILTER))
    assert bool(chosen(_exchange(method, path, status))) is shown
