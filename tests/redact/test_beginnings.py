"""Growing request bodies: what was found clean is not searched again, and no secret slips by."""

import json

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.redact.flow import Redactor
from moontap.redact.secrets import Needles

KEY = "sk-ABCDEFGHIJ0123456789abcdefghij"
WORDS = "the quick brown fox jumps over the lazy dog "


def body(turns: int, plant: str = "", at: int = -1) -> bytes:
    """A conversation of some 20 KB a turn, with a text planted in one of them."""
    texts = [WORDS * 450 + (plant if n == at else "") for n in range(turns)]
    return json.dumps({"messages": [{"role": "user", "content": text} for text in texts]}).encode()


def flow_of(content: bytes, key: str = KEY) -> http.HTTPFlow:
    flow = tflow.tflow()
    headers = ((b"authorization", b"Bearer " + key.encode()), (b"content-type", b"text/plain"))
    flow.request = http.Request.make("POST", "https://api.moonshot.cn/v1/x", content, headers)
    return flow


@pytest.mark.parametrize("at", range(40))
def test_a_secret_anywhere_in_a_later_turn(at: int) -> None:
    redactor = Redactor()
    clean = flow_of(body(max(30, at)))
    assert redactor.redact(clean) == 1  # the header
    dirty = flow_of(body(40, f" {KEY} ", at))
    redactor.redact(dirty)
    assert KEY.encode() not in (dirty.request.raw_content or b"")
    assert len(dirty.request.raw_content or b"") == len(body(40, f" {KEY} ", at))


@pytest.mark.parametrize("cut", range(0, len(KEY) + 2, 3))
def test_a_secret_across_the_end_of_what_was_clean(cut: int) -> None:
    redactor = Redactor()
    whole = body(40, f" {KEY} ", 20)
    start = whole.index(KEY.encode())
    # The first body ends so that its remembered beginning ends within the key.
    first = whole[: start + cut] + b"." * 2 * 64 * 1024
    redactor.redact(flow_of(first, "sk-another-key-0123456789abcdefg"))
    later = flow_of(whole, "sk-another-key-0123456789abcdefg")
    redactor.redact(later)
    assert KEY.encode() not in (later.request.raw_content or b"")


def test_clean_for_one_key_is_not_clean_for_another() -> None:
    redactor = Redactor()
    content = body(40, " not-a-shape-but-a-password ", 3)
    redactor.redact(flow_of(content))
    other = flow_of(content, "not-a-shape-but-a-password")
    redactor.redact(other)
    assert b"password" not in (other.request.raw_content or b"")


def test_only_the_end_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    candidates = Needles.candidates

    def counted(self: Needles, text: bytes) -> list[int]:
        searched.append(len(text))
        return candidates(self, text)

    monkeypatch.setattr(Needles, "candidates", counted)
    redactor = Redactor()
    redactor.redact(flow_of(body(60)))
    redactor.redact(flow_of(body(61)))
    assert max(searched) == len(body(60))
    assert searched[-1] < len(body(61)) / 3
