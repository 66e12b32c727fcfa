"""Short pieces of what was said, for evidence. Texts in, one short line out. Pure."""

_LONGEST = 160


def excerpt(text: bytes | str, around: int = 0, limit: int = _LONGEST) -> str:
    """At most `limit` characters of a text, from shortly before `around` on; what is left out
    shows as `…`."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    start = max(0, around - 40)
    piece = text[start : start + limit]
    return ("…" if start else "") + piece + ("…" if start + limit < len(text) else "")
