"""The end of a command that runs until somebody ends it. Signals in; it prints nothing."""

import asyncio
import signal
from contextlib import suppress


async def asked_to_end() -> None:
    """Wait for Ctrl-C, or a signal to end."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with suppress(NotImplementedError, AttributeError):
            loop.add_signal_handler(getattr(signal, name), stop.set)
    await stop.wait()


async def signal_or(ended: "asyncio.Task[None]") -> None:
    """Wait for Ctrl-C, a signal to end, or mitmproxy's own end."""
    waiter = asyncio.create_task(asked_to_end())
    await asyncio.wait({waiter, ended}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
