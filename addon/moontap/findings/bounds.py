"""Keeps what a finding says short: an id or a tool's name from the wire may be megabytes long.

A `Found` in, the same with its texts cut out. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moontap.findings.types import Evidence, Found

MESSAGE = 1000
"""Characters of a sentence."""

TEXT = 300
"""Characters of an id, an excerpt or a fact. No id that anybody makes comes near it, so that ids
can be looked for as they are."""

ITEMS = 100
"""Of a list."""


def bounded(found: Found) -> Found:
    """What is left out shows as `…`."""
    evidence = found.evidence
    small = Evidence(
        evidence.message,
        evidence.block,
        evidence.choice,
        evidence.index,
        tuple([_text(id_) if id_ else id_ for id_ in evidence.ids[:ITEMS]]),
        _text(evidence.excerpt),
        {name: _fact(value) for name, value in evidence.facts.items()},
    )
    return replace(found, message=_text(found.message, MESSAGE), evidence=small)


def _fact(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case list() | tuple():
            return [_fact(one) for one in value[:ITEMS]]
        case Mapping():
            return {_text(str(name)): _fact(one) for name, one in list(value.items())[:ITEMS]}
    return value


def _text(text: str, most: int = TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
