"""One reply as it flows: kept as it came, changed where it must be, handed on at once.

Upstream's chunks in, the client's bytes out. No mitmproxy in it; the clock is handed in. Never
raises and never gives `b""` in mid-stream, which mitmproxy would send as the end of the body.
"""

from collections.abc import Callable, Sequence

from moontap.kept import Chunks
from moontap.rewrite import CallIds, Rewriter, StreamRewriter, WholeRewriter
from moontap.wire.encoding import Decoder
from moontap.wire.protocol import Wire

_BLANK = b" \t\r\n"


class LookingRewriter:
    """The rewriter that a reply's first bytes ask for: `{` begins a whole reply, all else a stream.

    Content types are missing or wrong at times, and a stream held as if it came whole would show
    the client nothing until its end. Blanks before (sent to keep a connection alive) go on at once.
    """

    def __init__(self, wire: Wire, ids: CallIds) -> None:
        self._wire = wire
        self._ids = ids
        self._chosen: Rewriter | None = None

    @property
    def fault(self) -> str | None:
        return self._chosen.fault if self._chosen else None

    def feed(self, data: bytes) -> bytes:
        """Take upstream's next bytes; give what may go on to the client now (perhaps `b""`)."""
        if self._chosen is None:
            start = data.lstrip(_BLANK)
            if not start:
                return data
            kind = WholeRewriter if start.startswith(b"{") else StreamRewriter
            self._chosen = kind(self._wire, self._ids)
        return self._chosen.feed(data)

    def flush(self) -> bytes:
        """The end of the reply: what is still held."""
        return self._chosen.flush() if self._chosen else b""


class ReplyTap:
    """What mitmproxy calls with each chunk of a reply (`flow.response.stream`).

    rewriter: None leaves the bytes alone. decoder: undoes a content encoding for the rewriter.
    clock: seconds. Once per reply.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        rewriter: LookingRewriter | None = None,
        decoder: Decoder | None = None,
    ) -> None:
        self._clock = clock
        self._rewriter = rewriter
        self._decoder = decoder
        self._started = clock()
        self._received: list[bytes] = []
        self._delivered: list[bytes] = []
        self._chunks = Chunks()
        self._ended = False
        self._failure: str | None = None

    @property
    def upstream_body(self) -> bytes:
        """What upstream sent so far, as it came."""
        return b"".join(self._received)

    @property
    def client_body(self) -> bytes:
        """What was handed on so far."""
        return b"".join(self._delivered) if self._rewriter else self.upstream_body

    @property
    def received(self) -> Sequence[bytes]:
        """The pieces of `upstream_body` so far; it grows."""
        return self._received

    @property
    def delivered(self) -> Sequence[bytes]:
        """The pieces of `client_body` so far; it grows."""
        return self._delivered if self._rewriter else self._received

    @property
    def rewrites(self) -> bool:
        """Whether what is handed on may differ from what upstream sent."""
        return self._rewriter is not None

    @property
    def chunks(self) -> Chunks:
        """Size in bytes and arrival in milliseconds since the headers, for each chunk."""
        return self._chunks

    @property
    def fault(self) -> str | None:
        """Why some part could not be read, where that was so."""
        if self._failure:
            return self._failure
        if self._decoder and self._decoder.failed:
            return "a content encoding that does not decode"
        return self._rewriter.fault if self._rewriter else None

    def __call__(self, data: bytes) -> bytes | list[bytes]:
        if not data:
            rest = self.end()
            return [rest] if rest else []
        self._received.append(data)
        self._chunks.append([len(data), round((self._clock() - self._started) * 1000, 1)])
        if self._rewriter is None:
            return data
        try:
            out = self._rewriter.feed(self._decoder.feed(data) if self._decoder else data)
        except Exception as error:  # mitmproxy would drop the chunk
            self._failure = f"an error of moontap's own: {error!r}"
            out = data
        if not out:
            return []
        self._delivered.append(out)
        return out

    def end(self) -> bytes:
        """The clean end of the body: what is still held back. Nothing at a second call."""
        if self._rewriter is None or self._ended:
            return b""
        self._ended = True
        held = self._rewriter.feed(self._decoder.flush()) if self._decoder else b""
        rest = held + self._rewriter.flush()
        if rest:
            self._delivered.append(rest)
        return rest
