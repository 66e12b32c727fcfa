"""The mitmproxy addon: hooks and options, wired to what does the work.

A request of a tapped host is read before it goes out, its reply is rewritten and kept as it
flows, and the finished exchange is recorded. Nothing here decides about ids, pairs or files.
"""

import asyncio
import hashlib
import logging
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitmproxy import command, ctx, http, tls, version
from mitmproxy import flow as flows
from mitmproxy.addonmanager import Loader
from mitmproxy.proxy.mode_specs import ReverseMode

from moontap import __version__, options
from moontap.capture import metadata, runfile
from moontap.capture.recorder import Recorder
from moontap.gate import Gate
from moontap.guard.types import Guarding
from moontap.identity import identify, shelf
from moontap.ids import IdMemory, Mode, Namer, Style, style_for
from moontap.kept import Edits, Kept
from moontap.live import LookingRewriter, ReplyTap
from moontap.looking import contentviews
from moontap.looking.board import Board
from moontap.looking.commands import Commands
from moontap.looking.feed import Feed
from moontap.rewrite import CallIds, heal
from moontap.rules import Rules
from moontap.screen import mask_dumper, mask_log
from moontap.wire.encoding import Decoder, decode_prefix
from moontap.wire.history import HistoryReader
from moontap.wire.protocol import Wire, of_request
from moontap.wire.types import Request

logger = logging.getLogger(__name__)

_NO_BODY = (204, 205)
_AT_ONCE = 1.0  # seconds that a person's command may take
_PATIENCE = 5.0  # seconds that a request waits for the guard, when the disk is slow, say


@dataclass(slots=True)
class _Open:
    """An exchange under way. ids: None where nothing is rewritten. memory: its session's shelf."""

    flow: http.HTTPFlow
    wire: Wire | None
    ids: CallIds | None = None
    memory: str | None = None
    tap: ReplyTap | None = None


class Moontap:
    """Records every tool call with its result, and can make reused tool-call ids unique."""

    def __init__(self) -> None:
        self._hosts = frozenset(options.HOSTS)
        self._mode = Mode.OFF
        self._style = Style.AUTO
        self._guarding = Guarding.WARN
        self._rules = Rules()
        self._memory = IdMemory()
        self._history = HistoryReader()
        self._open: dict[str, _Open] = {}
        self._closed = False
        self.board = Board()
        self._feed = Feed(self.board, self._mask)
        self.recorder = self._recorder(None)
        self._gate = Gate(self._rules, self.recorder, _has_commands)
        self.addons = [Commands(self.board, lambda: self.recorder, lambda: self._rules)]
        # One thread: exchanges are recorded in the order in which they ended, off the event loop.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="moontap")

    # options

    def load(self, loader: Loader) -> None:
        options.declare(loader)
        self.board.attach(loader.master)

    def configure(self, updated: set[str]) -> None:
        given = ctx.options
        if "moontap_hosts" in updated:
            self._hosts = options.hosts(given.moontap_hosts)
        if "moontap_rewrite" in updated:
            self._mode = options.choice("moontap_rewrite", Mode, given.moontap_rewrite)
        if "moontap_id_style" in updated:
            self._style = options.choice("moontap_id_style", Style, given.moontap_id_style)
        if "moontap_guard" in updated:
            self._guarding = options.choice("moontap_guard", Guarding, given.moontap_guard)
        if "moontap_rules" in updated:
            self._rules = options.rules(given.moontap_rules)
        if "moontap_fold" in updated:
            contentviews.View.fold = options.fold(given.moontap_fold)
        if "moontap_notes" in updated:
            self.board.notes = given.moontap_notes
        self._renew(updated)
        # Without a guard nobody wants to hear of it while it goes on; `findings.jsonl` has it.
        off = self._guarding is Guarding.OFF
        # What the guard does it says itself.
        self.recorder.quiet = frozenset(("guard-stopped", *(("no-progress",) if off else ())))

    def _renew(self, updated: set[str]) -> None:
        """Begin anew with what cannot change within a run, while there is no exchange yet."""
        if late := {"moontap_dir", "moontap_rules"} & updated:
            if self.recorder.counts.exchanges:
                logger.warning("moontap: %s takes effect after a restart", ", ".join(sorted(late)))
                return
            folder = options.folder(ctx.options.moontap_dir)
            self.recorder = self._recorder(folder)
            self._gate = Gate(self._rules, self.recorder, _has_commands)

    def _recorder(self, folder: Path | None) -> Recorder:
        recorder = Recorder(folder, self._rules, self._describe)
        recorder.observer = self.board
        return recorder

    def running(self) -> None:
        kept = ctx.options.moontap_dir or "nowhere"
        logger.info(
            "moontap: rewriting %s, guard %s, captures go to %s", self._mode, self._guarding, kept
        )
        if self._rules.guard.limits_sessions and self._guarding is not Guarding.BLOCK:
            logger.warning("moontap: the rules limit sessions; that needs moontap_guard=block")
        mask_dumper(ctx.master.addons, self._mask)
        mask_log(self._mask)
        contentviews.install(self._mask, self.board.look_at, lambda: self._rules, self.board.facts)
        if app := getattr(ctx.master, "app", None):
            # Only mitmweb has one, and only there is what this imports loaded already.
            from moontap.looking import mitmweb

            mitmweb.install(app)

    def _mask(self, text: str) -> str:
        return self.recorder.mask(text)

    # scope

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Leave TLS to hosts that are not tapped alone: it passes with its own certificate."""
        if isinstance(data.context.client.proxy_mode, ReverseMode):
            return
        address = data.context.server.address
        names = {data.client_hello.sni, address[0] if address else None}
        if not any(name and name.lower() in self._hosts for name in names):
            data.ignore_connection = True

    def _is_tapped(self, flow: http.HTTPFlow) -> bool:
        if not self._hosts.isdisjoint(
            (flow.request.pretty_host.lower(), flow.request.host.lower())
        ):
            return True
        if isinstance(flow.client_conn.proxy_mode, ReverseMode):
            return True
        return _is_capture(flow)

    # the exchange

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if self._closed or not self._is_tapped(flow):
            return
        metadata.shorten(flow.metadata)
        if flow.is_replay == "request":
            self.board.forget(flow)
            for name in metadata.ALL:  # what the recorded run left: this is a new exchange
                flow.metadata.pop(name, None)
        wire = of_request(flow.request.method, flow.request.path)
        self._open[flow.id] = _Open(flow, wire)
        if wire and flow.live:
            flow.request.headers["accept-encoding"] = "identity"

    async def request(self, flow: http.HTTPFlow) -> None:
        exchange = self._open.get(flow.id)
        if exchange is None or exchange.wire is None or _is_capture(flow):
            return
        if self._mode is not Mode.OFF:
            self._prepare(exchange, exchange.wire)
        if self._guarding.acts and flow.live and flow.response is None:
            await self._guard(flow, exchange.wire)
        if flow.live and flow.response is None and flow.id in self._open:
            self._feed.ask(flow)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        exchange, response = self._open.get(flow.id), flow.response
        if exchange is None or response is None:
            return
        if response.raw_content is not None or not flow.live:
            return  # complete already, or never kept: a replay
        exchange.tap = self._tap(exchange, response)
        response.stream = exchange.tap
        if exchange.wire:
            self._feed.begin(flow, exchange.wire, exchange.tap)

    async def response(self, flow: http.HTTPFlow) -> None:
        exchange = self._ended(flow)
        if exchange is None:
            return
        self._whole(exchange)
        self._finish(exchange, complete=flow.error is None)  # a loaded flow may have both
        await self._record(flow)

    async def error(self, flow: http.HTTPFlow) -> None:
        exchange = self._ended(flow)
        if exchange is None:
            return
        self._finish(exchange, complete=False)
        await self._record(flow)

    def done(self) -> None:
        """The run ends: exchanges under way are kept as far as they came."""
        self._closed = True
        self._worker.shutdown(wait=True)
        for exchange in self._open.values():
            self._finish(exchange, complete=False)
            self.recorder.keep(exchange.flow)
        self._open.clear()
        self.recorder.log()
        self.board.close()
        self.recorder.close()
        counts = self.recorder.counts
        if counts.exchanges:
            logger.info(
                "moontap: %d calls, %d pairs, %d rewritten, %d unanswered in %d requests",
                *(counts.calls, counts.pairs, counts.rewritten, counts.unanswered),
                counts.exchanges,
            )
        if counts.lost:
            logger.error("moontap: %d records could NOT be written", counts.lost)

    # the parts

    async def _guard(self, flow: http.HTTPFlow, wire: Wire) -> None:
        """Remind the model, or answer in place of upstream, where that is due."""
        # On the thread that records, and so after every reply that has ended.
        loop, gate = asyncio.get_running_loop(), self._gate
        try:
            due = loop.run_in_executor(self._worker, gate.ask, flow, wire, self._guarding)
            step = await asyncio.wait_for(due, _PATIENCE)
            if step and flow.response is None:
                gate.take(flow, step)
            elif step:
                self._worker.submit(gate.undone, flow)
        except Exception as error:  # whatever it is, the traffic goes on
            if isinstance(error, TimeoutError):
                self._worker.submit(gate.undone, flow)  # it may be under way
            self._fault("guard", flow, error if isinstance(error, ValueError) else repr(error))

    @command.command("moontap.guard.release")  # type: ignore[untyped-decorator]
    def release(self, flows: Sequence[flows.Flow] = ()) -> Sequence[str]:
        """Let agents go on that the guard has stopped: those of the flows given, or all."""
        asked = self._worker.submit(self._gate.release, [flow.id for flow in flows])
        try:
            count = asked.result(_AT_ONCE)
        except TimeoutError:  # the disk is slow; it comes to that all the same
            return ["the guard lets them go on in a moment: see the event log"]
        if not count:
            return ["the guard has stopped none of them"]
        return [f"the guard lets go on what it had stopped: {count}"]

    def _ended(self, flow: http.HTTPFlow) -> _Open | None:
        """The exchange that ends with this flow; None for one that is not tapped."""
        exchange = self._open.pop(flow.id, None)
        tap = flow.response.stream if flow.response else None
        if exchange is None and isinstance(tap, ReplyTap) and not self._closed:
            # Begun under an instance that a reload of the script has ended in the middle.
            flow.metadata.pop(metadata.INCOMPLETE, None)
            return _Open(flow, of_request(flow.request.method, flow.request.path), tap=tap)
        return exchange

    def _prepare(self, exchange: _Open, wire: Wire) -> None:
        """Learn which ids are taken; heal a history that carries duplicates already."""
        flow = exchange.flow
        body = flow.request.get_content(strict=False) or b""
        if flow.request.stream:
            self._fault("streamed", flow, "its body is not kept (stream_large_bodies)")
        request = Request(None, False, None, ())
        try:
            request = self._history.read(wire, body)
        except Exception as error:
            self._fault("request", flow, error)
        style = style_for(self._style, request.model)
        ids = request.call_ids
        taken = set(ids)
        if len(taken) < len(ids):
            taken |= self._heal(flow, wire, body, request, style)
        identity = identify(flow.request.headers, request.session)
        exchange.memory = shelf(identity, request)
        taken |= self._memory.used(exchange.memory)
        exchange.ids = CallIds(
            Namer(self._mode, style, taken), lambda: hashlib.sha256(body).hexdigest()
        )

    def _heal(
        self, flow: http.HTTPFlow, wire: Wire, body: bytes, request: Request, style: Style
    ) -> frozenset[str]:
        """Make the ids of a history unique that was saved before the tap was there; the new ids."""
        try:
            healed = heal(wire, body, request.messages, style)
            if healed:
                flow.request.content = healed.body
                flow.metadata[metadata.HEALED] = Edits(list(edit) for edit in healed.edits)
                return healed.ids
        except Exception as error:
            self._fault("history", flow, error)
        return frozenset()

    def _tap(self, exchange: _Open, response: http.Response) -> ReplyTap:
        """What the reply's chunks run through; sets the headers that go before them."""
        rewriter = _rewriter(exchange, response)
        coding = response.headers.get("content-encoding")
        if rewriter and not Decoder.can_decode(coding):
            self._fault("encoding", exchange.flow, f"unknown content-encoding {coding!r}")
            rewriter = None
        if rewriter is None:
            return ReplyTap(time.time)
        if coding:
            exchange.flow.metadata[metadata.UPSTREAM_ENCODING] = coding
            response.headers.pop("content-encoding")
        if response.headers.pop("content-length", None) and exchange.flow.request.is_http11:
            response.headers["transfer-encoding"] = "chunked"
        return ReplyTap(time.time, rewriter, Decoder(coding))

    def _whole(self, exchange: _Open) -> None:
        """Rewrite a reply that was complete before it was seen: mitmproxy's own replay."""
        flow, response = exchange.flow, exchange.flow.response
        if exchange.tap or response is None or not response.raw_content:
            return
        raw, coding = response.raw_content, response.headers.get("content-encoding")
        body = decode_prefix(raw, coding)
        rewriter = _rewriter(exchange, response)
        if rewriter is None:
            return
        changed = rewriter.feed(body)
        if not flow.error:  # where it broke off, a live client has not got what is held till then
            changed += rewriter.flush()
        if rewriter.fault:
            self._fault("stream", flow, rewriter.fault)
        if changed == body:
            return
        flow.metadata[metadata.UPSTREAM_BODY] = Kept(raw)
        if coding:
            flow.metadata[metadata.UPSTREAM_ENCODING] = coding
            response.headers.pop("content-encoding")
        response.raw_content = changed
        if "content-length" in response.headers:
            response.headers["content-length"] = str(len(changed))

    def _finish(self, exchange: _Open, *, complete: bool) -> None:
        """Put what flowed into the flow, and remember the ids it used."""
        flow, tap, ids = exchange.flow, exchange.tap, exchange.ids
        self._feed.end(flow)
        if ids and exchange.memory is not None:
            self._memory.add(exchange.memory, ids.used)
        if not complete:
            flow.metadata[metadata.INCOMPLETE] = True
        if tap is None or flow.response is None:
            return
        upstream, client = tap.upstream_body, tap.client_body
        flow.response.raw_content = client
        if complete or flow.error:  # else it goes on: a reload of the script is a `done`, too
            flow.response.stream = False  # lets the buffers go
        flow.metadata[metadata.CHUNKS] = tap.chunks
        if upstream != client:
            flow.metadata[metadata.UPSTREAM_BODY] = Kept(upstream)
        else:
            if complete or flow.error:
                flow.metadata.pop(metadata.UPSTREAM_ENCODING, None)
            # Of a stream that was kept once before it ended: at a reload, or to be looked at.
            flow.metadata.pop(metadata.UPSTREAM_BODY, None)
        if tap.fault:
            self._fault("stream", flow, tap.fault)

    async def _record(self, flow: http.HTTPFlow) -> None:
        # The client gets the end of a stream once the exchange is on the disk, and not before: a
        # killed process has lost none that ended. (What has a content-length ends with its last
        # byte, which mitmproxy has sent by now.) The log of its pairs can follow.
        loop = asyncio.get_running_loop()
        kept = loop.run_in_executor(self._worker, self.recorder.keep, flow)
        if self._guarding.acts:
            self._worker.submit(self._gate.heard, flow)
        self._worker.submit(self.recorder.log)
        await kept
        self.board.settle(flow)

    async def settled(self, patience: float) -> None:
        """Wait until the exchanges that have ended are recorded and their pairs are logged.

        patience: seconds for those under way. A reply with a content-length ends for its client
        with its last byte, a moment before mitmproxy tells us.
        """
        deadline = time.monotonic() + patience
        while self._open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        if not self._closed:
            await asyncio.wrap_future(self._worker.submit(lambda: None))

    def _fault(self, about: str, flow: http.HTTPFlow, reason: object) -> None:
        path = flow.request.path.partition("?")[0]
        self.recorder.say(
            about, "moontap: passed through unchanged: %s %s: %s", flow.request.method, path, reason
        )

    def _describe(self) -> Mapping[str, Any]:
        """What `run.json` holds."""
        names = sorted(name for name, _ in ctx.options.items() if name.startswith("moontap_"))
        return {
            "moontap": __version__,
            "mitmproxy": version.VERSION,
            "python": platform.python_version(),
            "options": {name: getattr(ctx.options, name) for name in ["mode", *names]},
            "rules": runfile.noted(ctx.options.moontap_rules),
        }


def _has_commands() -> bool:
    """Whether there is a place to type mitmproxy's commands: in mitmproxy and mitmweb, which keep
    what they show in a view."""
    return ctx.master.addons.get("view") is not None


def _is_capture(flow: http.HTTPFlow) -> bool:
    """Whether a flow was tapped before: what it holds is what happened, and stays."""
    return any(name in flow.metadata for name in metadata.ALL) and not flow.live


def _rewriter(exchange: _Open, response: http.Response) -> LookingRewriter | None:
    """The rewriter for a reply, or None where nothing in it is to change."""
    if not (exchange.wire and exchange.ids) or not 200 <= response.status_code < 300:
        return None
    if response.status_code in _NO_BODY or response.headers.get("content-length") == "0":
        return None  # with another framing instead, a client would wait for a body
    return LookingRewriter(exchange.wire, exchange.ids)
