"""Recorded through the tap, replayed to the official SDKs: directly, and with the tap in front."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from moontap.replay.library import load
from moontap.replay.server import Replay
from moontap.rules import Rules
from moontap.standin import Standin
from tests.conftest import Start
from tests.proxying import Tap, capture, pairs, saved_flows
from tests.samples import MESSAGES, messages_request
from tests.test_addon_sdks import CALLS, SCRIPT, Loop, chat_loop, messages_loop

pytestmark = pytest.mark.usefixtures("_no_errors", "_own_home")

RUN_OF = ("called_at", "answered_at", "latency_s", "call_flow", "result_flow")
HTTP = {"trust_env": False}


def before(
    url: str, rewrite: str, captures: Path, start: Start
) -> AbstractAsyncContextManager[Tap]:
    """A tap before a server, as `moontap run` has it."""
    mode, kept = f"reverse:{url}", str(captures)
    return start(ports={}, mode=mode, moontap_rewrite=rewrite, moontap_dir=kept)


def lasting(captures: Path) -> list[dict[str, Any]]:
    """What of the pairs must not change from run to run."""
    return [
        {name: value for name, value in pair.items() if name not in RUN_OF}
        for pair in pairs(captures)
    ]


@pytest.mark.parametrize("loop", [messages_loop, chat_loop])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_session_recorded_through_the_tap_is_replayed(
    loop: Loop, stream: bool, start: Start, tmp_path: Path
) -> None:
    async with (
        Standin(SCRIPT) as standin,
        before(standin.base_url, "all", tmp_path / "first", start) as tap,
    ):
        first = await loop(tap.url, HTTP, stream)
    library = load([capture(tmp_path / "first")], Rules())

    async with Replay(library) as replay:
        # Without a tap the client gets upstream's own ids, which repeat.
        ran = await loop(replay.base_url, HTTP, stream)
        assert ran.final == first.final
        assert len(set(ran.ids)) < len(ran.ids) == len(set(first.ids)) == len(CALLS)

        for rewrite in ("all", "duplicates", "off"):
            async with before(replay.base_url, rewrite, tmp_path / rewrite, start) as tap:
                ran = await loop(tap.url, HTTP, stream)
            assert ran.final == first.final
            assert ran.results == first.results
            assert (ran.ids == first.ids) == (rewrite == "all")
        assert replay.unmatched == replay.unserved == []
        assert len(replay.asked) == 4 * len(library.exchanges)

    assert lasting(tmp_path / "all") == lasting(tmp_path / "first")
    logged = [pair["arguments"] for pair in pairs(tmp_path / "first")]
    for rewrite in ("duplicates", "off"):
        assert [pair["arguments"] for pair in pairs(tmp_path / rewrite)] == logged


@pytest.mark.parametrize("rewrite", ["all", "off", None])
async def test_a_history_that_was_healed_on_its_way_matches_as_it_came(
    rewrite: str | None, start: Start, tmp_path: Path
) -> None:
    body = messages_request([("Bash_0", "pwd", "/w"), ("Bash_0", "ls", "a"), ("Bash_0", "ls", "a")])

    async def ask(url: str) -> int:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.post(url + MESSAGES, content=body)).status_code

    async with (
        Standin(SCRIPT) as standin,
        before(standin.base_url, "all", tmp_path / "first", start) as tap,
    ):
        assert await ask(tap.url) == 200
    (recorded,) = saved_flows(tmp_path / "first")
    assert recorded.request.raw_content != body
    async with Replay(load([capture(tmp_path / "first")], Rules())) as replay:
        if rewrite is None:
            assert await ask(replay.base_url) == 200
            return
        async with before(replay.base_url, rewrite, tmp_path / "second", start) as tap:
            assert await ask(tap.url) == 200
        assert replay.unmatched == []
