"""mitmweb's page as `moontap proxy --web` and `moontap look` set it up, served in this process."""

from __future__ import annotations

import asyncio
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

from moontap.addon import Moontap
from moontap.cli import main
from moontap.tapping import webpage
from moontap.tapping.tap import TapError, running
from moontap.tapping.trouble import Troubles, listening
from tests.saved import conversation

FLOWS = Path(__file__).parents[2] / "flows"


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


async def test_what_a_command_says_is_in_the_event_log_and_not_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    troubles = Troubles(str)
    options = webpage.web_options(0) | {"server": False, "moontap_dir": ""}
    with listening(troubles, page=True):
        async with running([Moontap()], webpage.web_master, str(tmp_path), **options) as (it, _):
            for flow in conversation(["pwd"], session=None):
                await it.load_flow(flow)
            it.commands.execute("moontap.pairs @all")
            await asyncio.sleep(0)
            logged = [entry.msg for entry in cast(WebMaster, it).events.data]
    assert any("pwd" in line for line in logged), logged
    assert not troubles.lines
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["proxy", "--web", "--no-open", "--port", "0", "--dir", "", "--web-port"], "--web-port"),
        (["look", "--no-open", str(FLOWS / "messages-clean.flow"), "--port"], "--port"),
    ],
)
def test_a_command_names_its_option_for_a_port_that_is_taken(
    command: list[str],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*command, str(port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"127.0.0.1:{port}: give another {option}, or 0 for any free one" in line
