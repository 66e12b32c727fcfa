"""A tap in this process: mitmproxy in reverse mode on loopback, with the addon in it.

Settings in; an async context out, whose URL an agent can be given. It prints nothing and sets no
signal handler: those who use it do.
"""

import asyncio
import errno
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mitmproxy import addons as default
from mitmproxy import exceptions, options
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.master import Master

from moontap.addon import Moontap
from moontap.tapping.upstream import Upstream

LISTEN = "127.0.0.1"


class TapError(Exception):
    """The tap does not start; one line for a person."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a tap is to be. port 0 takes a free one; directory "" keeps nothing on disk.

    upstream_ca: a PEM file to trust instead of the usual authorities. confdir: where mitmproxy
    keeps its own authority; None takes its usual place.
    """

    upstream: Upstream
    rewrite: str = "all"
    id_style: str = "auto"
    directory: str = "moontap-captures"
    rules: str | None = None
    guard: str = "warn"
    upstream_ca: str | None = None
    port: int = 0
    confdir: str | None = None


@dataclass(frozen=True, slots=True)
class Tap:
    """A tap that listens. url: `http://127.0.0.1:PORT`. ended: set when mitmproxy itself ends."""

    addon: Moontap
    master: Master
    url: str
    ended: "asyncio.Task[None]"


def plain_master(opts: options.Options) -> Master:
    """mitmproxy as mitmdump has it, without what prints to the terminal."""
    master = Master(opts)
    master.addons.add(*default.default_addons())
    return master


@asynccontextmanager
async def tapping(
    settings: Settings,
    *others: object,
    make_master: Callable[[options.Options], Master] = plain_master,
    **more: Any,
) -> AsyncIterator[Tap]:
    """Run a tap. others: addons after ours. more: further mitmproxy options.

    On leaving, calls that still wait are logged and the files are closed. Raises TapError.
    """
    addon = Moontap()
    mode = f"reverse:{settings.upstream.origin}@{LISTEN}:{settings.port}"
    async with running(
        [addon, *others],
        make_master,
        settings.confdir,
        mode=[mode],
        # Eager connects upstream before there is a request: where that fails the agent sees a
        # dropped connection, not a 502 that says why, and there is no flow to keep.
        connection_strategy="lazy",
        moontap_rewrite=settings.rewrite,
        moontap_id_style=settings.id_style,
        moontap_dir=settings.directory,
        moontap_rules=settings.rules,
        moontap_guard=settings.guard,
        ssl_verify_upstream_trusted_ca=settings.upstream_ca,
        **more,
    ) as (master, task):
        yield Tap(addon, master, _url(master, mode, settings.port), task)


@asynccontextmanager
async def running(
    addons: Sequence[object],
    make_master: Callable[[options.Options], Master],
    confdir: str | None = None,
    **opts: Any,
) -> "AsyncIterator[tuple[Master, asyncio.Task[None]]]":
    """Run a mitmproxy with addons of ours; the task is done when it ends of itself.

    confdir: as in `Settings`. opts: mitmproxy options. Raises TapError.
    """
    with ExitStack() as stack:
        ready, master = _Ready(), make_master(options.Options())
        stack.callback(_stop_logging, master)
        if check := master.addons.get("errorcheck"):
            check.finish()  # it would end the process; what went wrong is raised here instead
            master.addons.remove(check)
        # The slot in which `-s` puts scripts: before mitmproxy's own `save`.
        master.addons.get("scriptloader").addons.extend(addons)
        for one in addons:
            master.addons.register(one)
        master.addons.add(ready)
        try:
            master.options.update(confdir=confdir or _confdir(stack), **opts)
        except exceptions.OptionsError as error:
            raise TapError(str(error)) from None
        task = asyncio.create_task(master.run())
        try:
            await _started(task, ready)
            yield master, task
        finally:
            await _begun(task, ready)
            master.shutdown()
            await asyncio.wait({task})
        task.result()


def _stop_logging(master: Master) -> None:
    """A mitmproxy that never ran leaves a handler behind, which raises once its event loop is
    closed: after a tap that was refused, the first warning of the next one ended the process."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if getattr(handler, "master", None) is master:
            root.removeHandler(handler)


class _Ready:
    """mitmproxy's `running` hook as something to wait for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def running(self) -> None:
        self.event.set()


async def _begun(task: "asyncio.Task[None]", ready: _Ready) -> None:
    """Wait until it runs, or has ended. Left before that, a listener of mitmproxy's that is just
    being made answers an interpreter that is gone: Ctrl-C was a segmentation fault."""
    waiter = asyncio.create_task(ready.event.wait())
    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()


async def _started(task: "asyncio.Task[None]", ready: _Ready) -> None:
    await _begun(task, ready)
    if task.done():
        try:
            task.result()
        except OSError as error:  # mitmweb's page cannot listen
            raise TapError(str(error).partition("\n")[0]) from None
        raise TapError("mitmproxy ended while it was starting")


def _url(master: Master, mode: str, port: int) -> str:
    server = cast(Proxyserver, master.addons.get("proxyserver")).servers[mode]
    if server.listen_addrs:
        return f"http://{LISTEN}:{server.listen_addrs[0][1]}"
    error = server.last_exception
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        raise TapError(f"port {port} is in use; give another one, or --port 0 for any free one")
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        raise TapError(f"port {port} is not allowed; give one from 1024 on, or --port 0")
    raise TapError(f"cannot listen on {LISTEN}:{port}: {error}")


def _confdir(stack: ExitStack) -> str:
    """mitmproxy's own folder, or, where that cannot be written, one for this run.

    mitmproxy makes its certificate authority at start, although nothing here ever asks for it: in
    reverse mode the agent speaks plain HTTP over loopback. A read-only home must not stop the tap.
    """
    usual = Path(options.CONF_DIR).expanduser()
    try:
        usual.mkdir(parents=True, exist_ok=True)
        if os.access(usual / "mitmproxy-ca.pem", os.R_OK) or os.access(usual, os.W_OK):
            return str(usual)
    except OSError:
        pass
    return stack.enter_context(tempfile.TemporaryDirectory(prefix="moontap-"))
