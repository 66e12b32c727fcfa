"""What a reply cost, in a line: `1,234 in, 56 out, 1,000 cached`.

A usage object of either protocol in, one text out. Pure.
"""

from collections.abc import Iterator, Mapping

from moontap.looking.views.words import one_line

_WORDS = {
    "input_tokens": "in",
    "prompt_tokens": "in",
    "output_tokens": "out",
    "completion_tokens": "out",
    "cache_read_input_tokens": "cached",
    "cached_tokens": "cached",
    "prompt_tokens_details.cached_tokens": "cached",
    "input_tokens_details.cached_tokens": "cached",
    "cache_creation_input_tokens": "put into the cache",
    "completion_tokens_details.reasoning_tokens": "reasoning",
    "output_tokens_details.reasoning_tokens": "reasoning",
    "total_tokens": "in all",
}
"""Public API references of both protocols; `cached_tokens` at the top is Moonshot's."""

_MOST = 12
_LONG = 60


def usage_words(usage: Mapping[str, object]) -> str:
    """The counters, each once; one that is not known by its own name. Zeros of those are left out:
    servers send a dozen."""
    said: dict[str, None] = {}
    for name, value in _counters(usage):
        word = _WORDS.get(name)
        if word is None and not value:
            continue
        text = f"{value:,}" if isinstance(value, int | float) else one_line(str(value), _LONG)
        said[f"{text} {word}" if word else f"{one_line(name, _LONG)} {text}"] = None
        if len(said) >= _MOST:
            break
    return ", ".join(said)


def _counters(usage: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Known ones first, in the order of the table; details of a counter under `counter.detail`."""
    flat: dict[str, object] = {}
    for name, value in usage.items():
        inner = value.items() if isinstance(value, dict) else ()
        flat.update({f"{name}.{key}": one for key, one in inner})
        if not isinstance(value, dict):
            flat[name] = value
    flat = {name: value for name, value in flat.items() if _is_plain(value)}
    yield from ((name, flat[name]) for name in _WORDS if name in flat)
    yield from ((name, value) for name, value in flat.items() if name not in _WORDS)


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
