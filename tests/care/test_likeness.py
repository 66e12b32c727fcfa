"""Replacements that look alike: form, determinism, and that different values stay different."""

import json
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moontap.care.likeness import like

ANY = st.text(
    st.one_of(
        st.sampled_from("abzABZ019 .,-_/@%\n\"\\'äÄßÿэЭ张伟𠮷😀がケ한1٣न\u0301\uff46\u0627"),
        st.characters(),
    ),
    max_size=12,
)


def kinds(text: str) -> list[object]:
    """Of each character what must stay: its case and class where it has a likeness, else itself."""
    return [
        (unicodedata.category(one) if one.isascii() else one.isalpha(), len(one.encode()))
        if one.isalpha() or unicodedata.category(one) == "Nd"
        else one
        for one in text
    ]


@given(ANY, st.sampled_from(["", "salt"]))
def test_the_form_stays(value: str, salt: str) -> None:
    text = value.encode("utf-8", "replace").decode()
    new = like(text, salt)
    assert len(new) == len(text)
    assert len(new.encode()) == len(text.encode())
    if "%" not in text:
        assert kinds(new) == kinds(text)
    assert new == like(text, salt)
    if any(one.isascii() and one.isalnum() for one in text) and "%" not in text:
        assert new != text


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("Alice", "[A-Z][a-z]{4}"),
        ("alice.smith+x@acme.com", r"[a-z]{5}\.[a-z]{5}\+[a-z]@[a-z]{4}\.[a-z]{3}"),
        ("+49 (30) 1234-5", r"\+\d\d \(\d\d\) \d{4}-\d"),
        ("it's\tA-1\n", "[a-z]{2}'[a-z]\t[A-Z]-[0-9]\n"),
        ("Zoë", "[A-Z][a-z][à-öø-þ]"),
        ("ДИМА", "[\u0410-\u042f]{4}"),
        ("张伟", "[一-鿿]{2}"),
        ("%E5%BC%A0 %e4%bc%9f", "(%[0-9A-F]{2}){3} (%[0-9a-f]{2}){3}"),
        ("a%20b%2F%41", "[a-z]%20[a-z]%2F%[45][0-9A-F]"),
        ("%zz%ff", "%[a-z]{2}%ff"),
        (
            "12345678-1234-4abc-8def-1234567890ab",
            "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
        ),
        ("user_" + "0a" * 32, "[a-z]{4}_[a-z0-9]{64}"),
        ("ABCDEF0123456789ABCDEF0123456789", "[0-9A-F]{32}"),
        ("!? …", r"!\? …"),
        ("", ""),
    ],
)
def test_examples(value: str, pattern: str) -> None:
    new = like(value, "x")
    assert re.fullmatch(pattern, new)
    assert (new == value) == (not any(one.isalnum() for one in value))


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_json_numbers_stay_numbers(number: float) -> None:
    text = json.dumps(number)
    new = like(text, "")
    assert type(json.loads(new)) is type(number)
    assert text.partition("e")[2] == new.partition("e")[2]


@pytest.mark.parametrize(("one", "other"), [("alice", "ALICE"), ("alice", "aLiCe"), ("é", "É")])
def test_case_is_kept_and_does_not_count(one: str, other: str) -> None:
    assert like(one, "").lower() == like(other, "").lower()


@pytest.mark.parametrize("value", ["Alice Smith", "alice@acme", "张 伟", "a/b"])
def test_an_escaped_value_is_the_same_value(value: str) -> None:
    assert like(quote(value, safe=""), "") == quote(like(value, ""), safe="")


def test_a_salt_changes_all() -> None:
    values = ["alice", "4711", "customer-000123", "张伟"]
    assert not {like(value, "a") for value in values} & {like(value, "b") for value in values}


@pytest.mark.parametrize(
    "values",
    [
        [f"{number:04}" for number in range(0, 10000, 7)],
        [f"customer-{number:06}" for number in range(2000)],
        [f"user{number}@example.com" for number in range(2000)],
        [a + b + c for a in "abcdefghijklm" for b in "abcdefghijklm" for c in "abcdefghijklm"],
    ],
    ids=["pins", "customers", "mails", "words"],
)
def test_different_values_stay_different(values: Iterable[str]) -> None:
    given = list(values)
    assert len({like(value, "") for value in given}) == len(given)


def test_what_is_refused_is_not_used() -> None:
    taken = set("abcdefghijklmnopqrstuvw")
    assert {like(value, "", taken.__contains__) for value in "abc"} <= set("xyz")
    assert like("a", "", lambda _: True)  # and it ends
