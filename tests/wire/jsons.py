"""JSON texts as servers and clients may spell them, for hypothesis."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st


class Pairs(list[tuple[str, Any]]):
    """An object, its members in order; a key may stand twice."""


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_ODD = st.sampled_from(
    ["", "id", "type", '"', "\\", '\\"', "[", "]}", "a\nb", "\x00", "é", "😀", "/"]
)
STRINGS = st.one_of(_TEXT, _ODD)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**25), 10**25),
        st.floats(allow_nan=False, allow_infinity=False),
        STRINGS,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(STRINGS, inner), max_size=4).map(Pairs)
    ),
    max_leaves=12,
)


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[Any] = VALUES) -> bytes:
    """JSON texts with white space and escapes wherever they may stand."""
    # A seed, because drawing each choice makes hypothesis a hundred times slower.
    choose = random.Random(draw(st.integers(0, 1 << 32)))

    def space() -> str:
        return choose.choice(["", "", "", " ", "\n", "\t\r ", "  "])

    def string(text: str) -> str:
        return '"' + "".join(map(character, text)) + '"'

    def character(c: str) -> str:
        plain = json.dumps(c, ensure_ascii=choose.random() < 0.5)[1:-1]
        if choose.random() < 0.8 or ord(c) > 0xFFFF:
            return plain
        return (
            r"\/"
            if c == "/"
            else f"\\u{ord(c):04x}"
            if choose.random() < 0.5
            else f"\\u{ord(c):04X}"
        )

    def spell(value: Any) -> str:
        if isinstance(value, str):
            return string(value)
        if isinstance(value, Pairs):
            members = (
                f"{space()}{string(key)}{space()}:{space()}{spell(inner)}{space()}"
                for key, inner in value
            )
            return "{" + (",".join(members) or space()) + "}"
        if isinstance(value, dict):
            return spell(Pairs(value.items()))
        if isinstance(value, list):
            return "[" + (",".join(space() + spell(v) + space() for v in value) or space()) + "]"
        return json.dumps(value)

    return (space() + spell(draw(values)) + space()).encode()
