from __future__ import annotations

import pytest

from moontap.report.text import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("你\u202eb", r"你\u202eb"),
        ("\ud83d \U000e0041", r"\ud83d \U000e0041"),
        ("\\x1b \x1b", r"\x1b \x1b"),
        ("".join(map(chr, range(32))), "".join(map("\\x{:02x}".format, range(32)))),
    ],
)
def test_what_is_not_printable_is_an_escape(text: str, shown: str) -> None:
    for old, new in ((r"\x09", r"\t"), (r"\x0a", r"\n"), (r"\x0d", r"\r")):
        shown = shown.replace(old, new)
    assert plain(text) == shown
    assert plain(text * 1000) == shown * 1000
