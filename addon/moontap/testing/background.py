"""Servers for synchronous and asynchronous tests alike: an event loop in a thread of its own.

Async context managers in, entered; what they gave comes out. It never touches the loop that a test
itself may run in.
"""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Self

_STOP_SECONDS = 15


class Background:
    """A thread with an event loop, which starts with the first thing to run in it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enter[T](self, context: AbstractAsyncContextManager[T]) -> tuple[T, Callable[[], None]]:
        """Enter a context manager; what it gives, and what leaves it again.

        It is entered and left by one task, as task groups ask for. Raises what entering raises;
        leaving raises what leaving raises, and may be asked for more than once.
        """
        loop = self._running()
        entered: concurrent.futures.Future[T] = concurrent.futures.Future()
        leave = asyncio.Event()

        async def live() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        lived = asyncio.run_coroutine_threadsafe(live(), loop)
        value = entered.result()

        def close() -> None:
            if not lived.done():
                loop.call_soon_threadsafe(leave.set)
            lived.result(_STOP_SECONDS)

        return value, close

    def close(self) -> None:
        """End the thread."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_STOP_SECONDS)
            self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop,), name="moontap", daemon=True
            )
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(Exception):
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
