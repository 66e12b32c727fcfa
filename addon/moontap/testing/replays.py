"""A replay for a test. A path and settings in, a running server out.

It imports mitmproxy and hypercorn.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from moontap.replay import library, pace, results
from moontap.replay.server import Replay
from moontap.rules import load_rules


@asynccontextmanager
async def player(
    path: Path, speed: str | float, once: bool, any_result: bool, rules: str | None
) -> AsyncIterator[Replay]:
    """Play a flow file, or a folder of them.

    speed: `none`, `original` or a factor. rules: the path of a rules file. Raises ValueError for a
    bad one of these (RulesError among them), Unreadable for a file that is none of flows.
    """
    paced, given = pace.parse(str(speed)), load_rules(rules)
    if any_result:
        given = results.any_result(given)
    read = await asyncio.to_thread(library.load, [path], given)
    async with Replay(read, pace=paced, once=once) as replay:
        yield replay
