from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moontap.testing.background import Background


@asynccontextmanager
async def grouped(log: list[str]) -> AsyncIterator[str]:
    """A task group must be left by the task that entered it."""
    async with asyncio.TaskGroup():
        log.append(threading.current_thread().name)
        yield "value"
        log.append("left")


@asynccontextmanager
async def failing(at: str) -> AsyncIterator[None]:
    if at == "enter":
        raise OSError("on entering")
    yield
    raise OSError("on leaving")


def test_it_lives_until_it_is_closed(background: Background) -> None:
    log: list[str] = []
    value, close = background.enter(grouped(log))
    assert (value, log) == ("value", ["moontap"])
    close()
    close()
    assert log == ["moontap", "left"]


async def test_a_test_may_have_a_loop_of_its_own(background: Background) -> None:
    _, close = background.enter(grouped([]))
    await asyncio.sleep(0)
    close()


def test_errors_come_out(background: Background) -> None:
    with pytest.raises(OSError, match="on entering"):
        background.enter(failing("enter"))
    _, close = background.enter(failing("leave"))
    with pytest.raises(OSError, match="on leaving"):
        close()


def test_what_is_left_open_ends_with_the_thread() -> None:
    log: list[str] = []
    with Background() as background:
        background.enter(grouped(log))
        before = threading.active_count()
    assert threading.active_count() == before - 1
