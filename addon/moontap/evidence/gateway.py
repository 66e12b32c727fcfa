"""The pages that gateways answer with in place of an API: their status, told by their title.

HTML in, a status out. Pure. Any other page is nothing of what can be read.
"""

import re
from http import HTTPStatus

_HEADING = re.compile(rb"<(?:title|h1)\b[^<>]{0,200}>([^<]{0,300})", re.I)
_ENOUGH = 1 << 16  # bytes of a page that hold its title
# Cloudflare's own, and spellings of nginx and of load balancers.
_PHRASES = {
    "gateway time-out": 504,
    "service temporarily unavailable": 503,
    "web server is down": 521,
    "connection timed out": 522,
    "a timeout occurred": 524,
} | {one.phrase.lower(): one.value for one in HTTPStatus if one >= 400}
_NUMBER = re.compile(r"\b([45]\d\d)\b")
_BEFORE = re.compile(
    r"\b(?:error|status|http(?:/[\d.]+)?)[\s:#-]{1,3}(?:code[\s:]{1,3})?[45]\d\d\b"
)
_ALONE = re.compile(r"[45]\d\d(?:[\s:|-]{0,3}error)?")


def status(page: bytes) -> int | None:
    """The status of an error page; None where its title or heading names none.

    A number by itself tells nothing (`404 recipes`): words of HTTP must stand beside it, or alone.
    """
    for found in _HEADING.finditer(page[:_ENOUGH]):
        said = " ".join(found[1].decode("utf-8", "replace").lower().split())
        number = _NUMBER.search(said)
        phrase = next((one for one in _PHRASES if one in said), None)
        if number and (phrase or _BEFORE.search(said) or _ALONE.fullmatch(said)):
            return int(number[1])
        if phrase and said in (phrase, f"error: {phrase}", f"{phrase}!", f"{phrase}."):
            return _PHRASES[phrase]
    return None
