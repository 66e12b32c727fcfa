"""Taps in a process of their own, one after the other: the child's side of `taps`.

A line of JSON with a tap's settings in, its URL out; `settle` and `close` in, where its capture is
out. mitmproxy allows one running proxy a process (its context is global), and writes to the root
logger: neither is a test's to bear.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from moontap.tapping.tap import Tap
    from moontap.tapping.trouble import Troubles

type _Say = Callable[[dict[str, Any]], None]

_PATIENCE = 1.0
"""Seconds that `settle` waits for replies that are under way."""


def main() -> None:
    """Serve taps until stdin ends."""
    with _channel() as out:

        def say(message: dict[str, Any]) -> None:
            out.write(json.dumps(message) + "\n")
            out.flush()

        confdir = sys.argv[1]
        while line := sys.stdin.readline():
            asyncio.run(_serve(json.loads(line), confdir, say))


def _channel() -> TextIO:
    """stdout as the parent reads it; what else prints goes to stderr from now on."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


async def _serve(settings: dict[str, Any], confdir: str, say: _Say) -> None:
    from mitmproxy.addons.proxyserver import Proxyserver

    from moontap.redact.flow import Redactor
    from moontap.rules import RulesError, load_rules
    from moontap.tapping.tap import Settings, TapError, tapping
    from moontap.tapping.trouble import Troubles, listening
    from moontap.tapping.upstream import parse

    upstream = parse(settings.pop("upstream"))
    try:
        troubles = Troubles(Redactor(load_rules(settings.get("rules"))).mask_text)
        with listening(troubles):
            async with tapping(Settings(upstream, confdir=confdir, **settings), troubles) as tap:
                server = tap.master.addons.get("proxyserver")
                say({"url": tap.url})
                await _commands(tap, troubles, say)
            # mitmproxy leaves its listening socket to the end of the process.
            assert isinstance(server, Proxyserver)
            for instance in server.servers:
                with contextlib.suppress(Exception):
                    await instance.stop()
    except (TapError, RulesError) as error:
        say({"error": str(error)})
        return
    say(_state(tap, troubles))


async def _commands(tap: "Tap", troubles: "Troubles", say: _Say) -> None:
    while (await asyncio.to_thread(sys.stdin.readline)).strip() == "settle":
        await tap.addon.settled(_PATIENCE)
        say(_state(tap, troubles))


def _state(tap: "Tap", troubles: "Troubles") -> dict[str, Any]:
    folder = tap.addon.recorder.path
    return {"folder": str(folder) if folder else None, "troubles": list(troubles.lines)}


if __name__ == "__main__":
    main()
