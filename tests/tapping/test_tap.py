"""A tap that is left while it starts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moontap.tapping.tap import Settings, tapping
from moontap.tapping.upstream import parse


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
async def test_nothing_of_it_is_left(tmp_path: Path, steps: int) -> None:
    """Ctrl-C then. A listener that was still being made ended the process with signal 11."""
    settings = Settings(parse("https://api.example"), directory="", confdir=str(tmp_path))

    async def tap() -> None:
        async with tapping(settings):
            await asyncio.Event().wait()

    before = asyncio.all_tasks()
    starting = asyncio.create_task(tap())
    for _ in range(steps):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    left = {task.get_name() for task in asyncio.all_tasks() - before}
    assert "setup_servers" not in left
