"""Secrets out of a flow on its way to the disk.

A copy of a flow goes in and is edited in place; how many secrets were masked comes out. Live
traffic is never touched, and a body that could not be checked is never kept.
"""

import base64
import logging
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from mitmproxy import http
from mitmproxy.flow import Flow

from moontap.capture import metadata
from moontap.redact import assigned
from moontap.redact.body import mask_body, mask_plain
from moontap.redact.coded import decoded, sniffed
from moontap.redact.secrets import SHORTEST_VALUE, Needles, Span, merged
from moontap.rules import Rules
from moontap.wire.beginnings import Beginning, Beginnings

logger = logging.getLogger(__name__)

MASK = "***"

SECRET_HEADERS = frozenset(
    (
        "authorization",
        "x-api-key",
        "api-key",  # Azure
        "x-goog-api-key",
        "cookie",
        "set-cookie",
        "proxy-authorization",
        "msh-uid",
        "msh-gid",
    )
)
"""Header names, in lower case, whose values never reach a disk."""

# Without these a saved flow could not be read any more; a person's pattern does not apply to them.
FRAMING = frozenset(
    ("content-length", "content-type", "content-encoding", "transfer-encoding", "host", "date")
)
# Only these: the first word of anything else may be a part of the key.
SCHEMES = (
    "Bearer|Basic|Digest|Token|API-?Key|Key|OAuth|Negotiate|NTLM|Mutual|HOBA|DPoP|GNAP|Concealed"
    "|PrivateToken|SCRAM-SHA-1|SCRAM-SHA-256|vapid|AWS4-HMAC-SHA256|Hawk|SharedKey"
)
"""Schemes of the header `authorization`, as a pattern, whatever their case. Source: IANA's registry
of HTTP authentication schemes, and those of well-known APIs."""
_SCHEME = re.compile(rf"({SCHEMES})[ \t]+(\S.*)", re.DOTALL | re.I)
# Large request bodies found clean are remembered by their beginnings, of this many bytes in all.
_MOST_CLEAN = 48 * 1024 * 1024
_STEP = 64 * 1024
# Secret headers that may be others in each exchange, or that are no keys.
_MANY = frozenset(("cookie", "set-cookie", "msh-uid", "msh-gid"))
_MOST_LEARNED = 64
_DEEPEST = 64  # levels of a value; what lies deeper is starred unseen
# Their names are what `metadata` says they are, and no secret.
_OUR_KEYS = frozenset((*metadata.ALL, metadata.SCRUBBED))


class Redactor:
    """Removes secrets as the rules say, and those that always are. Keeps no flow's data.

    values: further secrets, known word for word, to be looked for in every flow.
    """

    def __init__(self, rules: Rules | None = None, values: Iterable[str] = ()) -> None:
        redact = (rules or Rules()).redact
        self._headers = SECRET_HEADERS.union(redact.headers)
        self._values = tuple(values)
        self._patterns = redact.patterns
        self._paths = redact.json_paths
        self._general = Needles(redact.patterns, self._values)
        names = "|".join(map(re.escape, sorted(self._headers)))
        self._shown_header = re.compile(
            # Blanks, not `\s`: over a stretch of blank lines that took time quadratic in it.
            rf"^([ \t]*+(?:\x1b\[\d+m)*+(?:{names})(?:\x1b\[\d+m)*+: )(?!\*).+$",
            re.I | re.M,
        )
        self._clean: Beginnings[None] = Beginnings(_MOST_CLEAN)
        self._warned = False

    def redact(self, flow: http.HTTPFlow) -> int:
        """Mask every secret in a flow, in place; the number of secrets masked.

        The flow must be a copy that only the disk will see. Bodies keep their length; one that
        was compressed and holds a secret is kept decoded, without `content-encoding`. Never
        raises; a body that cannot be checked is replaced by `*` of the same length.
        """
        carried = carried_secrets(flow, self._headers)
        needles = Needles(self._patterns, (*carried, *self._values))
        response = flow.response
        count = self._message(flow.request, needles)
        count += self._address(flow.request, needles)
        clean = None
        if response:
            body = response.raw_content
            count += self._message(response, needles)
            clean = body if body is response.raw_content else None
            count += _star(response, "reason", needles)
        if flow.error:
            count += _star(flow.error, "msg", needles)
        if flow.websocket:
            for message in flow.websocket.messages:
                message.content, found = self._body(message.content, needles)
                count += found
            count += _star(flow.websocket, "close_reason", needles)
        count += _star(flow, "comment", needles) + _star(flow, "marked", needles)
        count += self._metadata(flow, needles, clean is not None)
        _forget_backup(flow)
        return count

    def learn(self, flow: http.HTTPFlow) -> None:
        """Look from now on for the keys that a flow's headers carry, in every flow and text.

        For what is printed before all is read: a later exchange may be the one to reveal a key.
        Cookies are not learned: each response may set new ones, and each would cost a search.
        """
        self._know(carried_secrets(flow, self._headers - _MANY))

    def learn_text(self, text: str) -> None:
        """The same for the keys that a text shows as such (`x-api-key: …`)."""
        self._know(text[start:end] for start, end in assigned.spans(text))

    def _know(self, values: Iterable[str]) -> None:
        new = [one for one in values if one not in self._values and one.strip("*")]
        if new and len(self._values) < _MOST_LEARNED:
            self._values = tuple(dict.fromkeys((*self._values, *new)))[:_MOST_LEARNED]
            self._general = Needles(self._patterns, self._values)

    def mask_text(self, text: str) -> str:
        """Lines for a log or a screen: key shapes, the rules' patterns, the values of secret
        headers (as mitmdump prints them, in colour or not) and what is told by the name before it
        masked."""
        spans = merged([*self._general.find(text), *assigned.spans(text)])
        return self._shown_header.sub(rf"\1{MASK}", _with_stars(text, spans))

    def mask_body(self, body: bytes, *, streamed: bool = False) -> bytes:
        """A body that belongs to no flow, of the same length: as in `redact`, by its structure.

        streamed: it is an event stream. Never raises.
        """
        return self._body(body, self._general, streamed)[0]

    def _message(self, message: http.Message, needles: Needles) -> int:
        count = _star(message, "http_version", needles, patterns=False)
        for headers in (message.headers, message.trailers):
            if headers is not None:
                count += self._header_fields(headers, needles)
        body = message.raw_content
        if not body or self._is_clean(message, body, needles):
            return count
        encoding = message.headers.get("content-encoding")
        kept, found, undone = self._encoded(body, encoding, needles, is_stream(message))
        if found:
            message.raw_content = kept
        if undone:
            message.headers.pop("content-encoding", None)
            if "content-length" in message.headers:
                message.headers["content-length"] = str(len(kept))
        return count + found

    def _is_clean(self, message: http.Message, body: bytes, needles: Needles) -> bool:
        """Whether a large plain request body holds no secret, as most do not.

        It repeats the conversation so far, which was found clean before: then only its end is
        looked at, with as much before it as a secret that began there could take.
        """
        plain = isinstance(message, http.Request) and "content-encoding" not in message.headers
        if not plain or len(body) < 4 * _STEP or self._patterns or self._paths:
            return False
        known = self._clean.find(body, needles.values)
        start = max(0, len(known.text) - _STEP) if known else 0
        if sniffed(body) or needles.candidates(body[start:]):
            return False
        if not known or len(body) - len(known.text) > 4 * _STEP:
            # What stands at the end changes from turn to turn: cache marks, reminders.
            new = Beginning(body[: len(body) - 2 * _STEP], needles.values, None)
            self._clean.keep(new, instead_of=known)
        return True

    def _header_fields(self, headers: http.Headers, needles: Needles) -> int:
        count = 0
        fields = []
        for raw_name, raw_value in headers.fields:
            name, value = _decode(raw_name).lower(), _decode(raw_value)
            if name in self._headers:
                masked = _masked_header(name, value)
                count += masked != value
            else:
                masked, found = _starred(value, needles, patterns=name not in FRAMING)
                count += found
                if len(name) >= SHORTEST_VALUE and name not in FRAMING:
                    # A star may stand in a name: RFC 9110, 5.6.2.
                    starred, found = _starred(_decode(raw_name), needles, patterns=False)
                    if found:
                        raw_name = _encode(starred)
                        count += found
            fields.append((raw_name, _encode(masked)))
        headers.fields = tuple(fields)
        return count

    def _address(self, request: http.Request, needles: Needles) -> int:
        path, mark, query = request.path.partition("?")
        # Patterns stay away from the path: what an exchange is, is read from it.
        path, in_path = _starred(path, needles, patterns=False)
        query, in_query = _starred(query, needles)
        if in_path or in_query:
            request.path = path + mark + query
        count = in_path + in_query
        for name in ("scheme", "authority"):
            count += _star(request, name, needles, patterns=False)
        # `request.method` is in capitals, whatever was sent; `request.host` would rewrite headers.
        method, found = _starred(_decode(request.data.method), needles, patterns=False)
        request.data.method = _encode(method)
        return count + found + _star(request.data, "host", needles, patterns=False)

    def _metadata(self, flow: http.HTTPFlow, needles: Needles, clean: bool) -> int:
        data = flow.metadata
        count = self._upstream_body(flow, needles, clean)
        # The sizes and times of chunks are numbers, thousands of them.
        for key in data.keys() - {metadata.UPSTREAM_BODY, metadata.CHUNKS}:
            if key == "proxyauth":
                # mitmproxy keeps the user's name and password for the proxy itself here.
                found = data[key] != [MASK, MASK]
                data[key] = [MASK, MASK]
            else:
                data[key], found = self._value(data[key], needles)
            count += found
        flow.metadata, found = self._keys(data, needles)
        return count + found

    def _keys(self, data: dict[Any, Any], needles: Needles) -> tuple[dict[Any, Any], int]:
        """The same under keys without secrets; where two become one, the later gets more stars."""
        new: dict[Any, Any] = {}
        count = 0
        for key, value in data.items():
            found = 0
            if key not in _OUR_KEYS:
                starred, found = self._value(key, needles)
            if found:
                count += found
                while starred in new or starred in data:
                    starred += b"*" if isinstance(starred, bytes) else "*"
                key = starred
            new[key] = value
        return (new, count) if count else (data, 0)

    def _upstream_body(self, flow: http.HTTPFlow, needles: Needles, clean: bool) -> int:
        """clean: the client's body, which differs in ids alone, holds nothing secret."""
        data = flow.metadata
        body, encoding = data.get(metadata.UPSTREAM_BODY), data.get(metadata.UPSTREAM_ENCODING)
        if not isinstance(body, bytes):
            return 0
        if not isinstance(encoding, str):
            encoding = None
        plain = encoding is None and not (self._patterns or self._paths)
        if clean and plain and not sniffed(body) and not needles.candidates(body):
            return 0
        kept, found, undone = self._encoded(body, encoding, needles, is_stream(flow.response))
        data[metadata.UPSTREAM_BODY] = kept
        if undone:
            data.pop(metadata.UPSTREAM_ENCODING, None)
        return found

    def _value(self, value: Any, needles: Needles, depth: int = 0) -> tuple[Any, int]:
        """A value of flow.metadata, which may be a list or dict of values."""
        if depth > _DEEPEST:
            return MASK, 1
        if isinstance(value, str):
            return _starred(value, needles)
        if isinstance(value, bytes):
            return self._body(value, needles)
        if isinstance(value, list | tuple):
            pairs = [self._value(item, needles, depth + 1) for item in value]
            count = sum(found for _, found in pairs)
            return ([item for item, _ in pairs] if count else value), count
        if isinstance(value, dict):
            items = {key: self._value(item, needles, depth + 1) for key, item in value.items()}
            renamed, count = self._keys({key: item for key, (item, _) in items.items()}, needles)
            return renamed, count + sum(found for _, found in items.values())
        return value, 0

    def _encoded(
        self, body: bytes, encoding: str | None, needles: Needles, streamed: bool
    ) -> tuple[bytes, int, bool]:
        """A body under a content encoding: what to keep, secrets masked, whether it is decoded."""
        try:
            plain = decoded(body, encoding)
        except Exception as error:
            return self._blank(body, error), 1, False
        if plain is not None:
            masked, found = self._body(plain, needles, streamed)
            if found:
                return masked, found, True
        masked, found = self._body(body, needles, streamed)
        return masked, found, False

    def _body(self, body: bytes, needles: Needles, streamed: bool = False) -> tuple[bytes, int]:
        try:
            return mask_body(body, needles, self._paths, streamed)
        except Exception as error:
            if self._paths:
                # Without its structure nobody can say what the paths would have selected.
                return self._blank(body, error), 1
            try:
                self._warn("a body was searched without regard to its structure", error)
                return mask_plain(body, needles)
            except Exception as second:
                return self._blank(body, second), 1

    def _blank(self, body: bytes, error: Exception) -> bytes:
        self._warn("a body that could not be searched for secrets is kept as '*'", error)
        return b"*" * len(body)

    def _warn(self, what: str, error: Exception) -> None:
        # The error's text may quote the body, so only its kind is said.
        if not self._warned:
            self._warned = True
            kind = type(error).__name__
            logger.warning("moontap: %s (%s); further ones are not reported", what, kind)


def carried_secrets(flow: http.HTTPFlow, names: Set[str]) -> Iterator[str]:
    """What the flow's secret headers carry. names: theirs, in lower case."""
    for headers in _all_headers(flow):
        for raw_name, raw_value in headers.fields:
            name = _decode(raw_name).lower()
            if name in names:
                yield from _carried(name, _decode(raw_value))


def _all_headers(flow: http.HTTPFlow) -> Iterable[http.Headers]:
    for message in (flow.request, flow.response):
        if message:
            yield message.headers
            if message.trailers is not None:
                yield message.trailers


def is_stream(message: http.Message | None) -> bool:
    """Whether a message is declared as an event stream."""
    return message is not None and "event-stream" in message.headers.get("content-type", "").lower()


def _masked_header(name: str, value: str) -> str:
    scheme = _SCHEME.fullmatch(value) if "authorization" in name else None
    return f"{scheme[1]} {MASK}" if scheme else MASK


def _carried(name: str, value: str) -> Iterator[str]:
    """The secrets in the value of a secret header, without scheme, cookie names and attributes."""
    if name in ("cookie", "set-cookie"):
        pairs = value.split(";")
        for pair in pairs if name == "cookie" else pairs[:1]:
            yield pair.partition("=")[2].strip().strip('"')
        return
    scheme = _SCHEME.fullmatch(value.strip())
    token = scheme[2] if scheme else value.strip()
    yield token
    # Where more than a key stands there, it is one of the words.
    yield from (word for word in token.split() if "=" not in word.rstrip("="))
    if scheme and scheme[1].lower() == "basic":
        try:
            user = base64.b64decode(token, validate=True).decode("utf-8", "surrogateescape")
        except ValueError:
            return
        yield user
        yield user.partition(":")[2]


def _starred(text: str, needles: Needles, patterns: bool = True) -> tuple[str, int]:
    """A short text with its secrets as stars, one for each byte of UTF-8."""
    spans = needles.find(text, patterns)
    return _with_stars(text, spans), len(spans)


def _with_stars(text: str, spans: Sequence[Span]) -> str:
    parts, done = list[str](), 0
    for start, end in spans:
        length = len(text[start:end].encode("utf-8", "surrogatepass"))
        parts += (text[done:start], "*" * length)
        done = end
    return "".join((*parts, text[done:])) if parts else text


def _star(of: object, name: str, needles: Needles, patterns: bool = True) -> int:
    """Mask the secrets of an attribute that is a short text; how many there were."""
    text = getattr(of, name)
    if not text:
        return 0
    starred, found = _starred(text, needles, patterns)
    if found:
        setattr(of, name, starred)
    return found


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _forget_backup(flow: Flow) -> None:
    """mitmproxy's copy from before a person edited the flow is saved with it, secrets and all."""
    flow._backup = None
