"""What a request asks for beside its history: tools, settings, the system prompt, in short.

JSON texts in, lines on a page out. Pure.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from moontap.looking.views.page import Page
from moontap.looking.views.parts import said_in
from moontap.looking.views.words import filled, one_line
from moontap.wire import jsontext

_APART = frozenset(("messages", "model", "stream", "tools", "functions", "system", "metadata"))
"""Members of a request that have a place of their own on the page."""

_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


def tools_of(body: Mapping[str, bytes]) -> list[tuple[str, int | None, bytes]]:
    """Of each declared tool its name, how many parameters it has (None where that is not said) and
    its declaration."""
    return [
        (*_declared(bytes(raw)), bytes(raw))
        for key in ("tools", "functions")
        for raw in jsontext.decode(_RAWS, body.get(key, b"")) or ()
    ]


def put_tools(page: Page, tools: list[tuple[str, int | None, bytes]]) -> None:
    """`tools:` with their names, and in how many parameters each takes."""
    if not tools:
        page.field("tools", "none")
        return
    page.field("tools", len(tools), "name (number of parameters)")
    with page.under():
        if page.fold is None:
            for name, _, raw in tools:
                page.json(one_line(name, 64), raw.decode("utf-8", "replace"))
            return
        words = [
            one_line(name, 64) + (f" ({count})" if count is not None else "")
            for name, count, _ in tools
        ]
        for line in filled(words, page.room):
            page.line(line)


def put_settings(page: Page, body: Mapping[str, bytes]) -> None:
    """Every other member of the request: `tool_choice`, `max_tokens`, `thinking` and the like."""
    for name, value in body.items():
        if name not in _APART:
            if page.fold is None:
                page.json(one_line(name, 40), value.decode("utf-8", "replace"))
            else:
                text = value[:400].decode("utf-8", "replace")
                name = one_line(name, 40)
                page.field(name, one_line(text, page.room - len(name) - 2))


def put_system(page: Page, raw: bytes) -> None:
    """The system prompt of Messages: how long it is, and how it begins."""
    if not raw:
        return
    blocks = jsontext.decode(_RAWS, raw) if raw[:1] == b"[" else None
    texts = [said_in(raw)] if blocks is None else [said_in(b"[%b]" % block) for block in blocks]
    if page.fold is None:
        for text in texts:
            page.text("system", text)
        return
    start = f"{sum(map(len, texts)):,} characters: "
    # Claude Code's first text is a line for billing.
    first = next((text for text in texts if not text.startswith("x-anthropic-")), "")
    page.field("system", start + one_line(first, page.room - len(start) - len("system: ")))


def _declared(raw: bytes) -> tuple[str, int | None]:
    """Messages, Chat Completions, and its `functions` of old."""
    tool = _loaded(raw)
    for key in ("function", "custom"):
        if isinstance(tool.get(key), dict):
            tool = tool[key]
            break
    schema = tool.get("input_schema", tool.get("parameters"))
    members = schema.get("properties") if isinstance(schema, dict) else None
    name = jsontext.string(tool.get("name")) or jsontext.string(tool.get("type")) or "(no name)"
    return name, len(members) if isinstance(members, dict) else None


def _loaded(raw: bytes) -> dict[str, Any]:
    try:
        tool = jsontext.loads(raw)
    except ValueError:
        return {}
    return tool if isinstance(tool, dict) else {}
