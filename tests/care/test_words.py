"""What the rules name, found in texts: words, paths, patterns; and what it becomes."""

import re

import pytest

from moontap.care.words import Kind, Words
from moontap.rules import Scrub


def found(rules: Scrub, text: str, *ids: str) -> list[str]:
    return [text[start:end] for start, end in Words(rules, ids).find(text)]


@pytest.mark.parametrize(
    ("name", "text", "matches"),
    [
        ("Alice", "alice, ALICE and Alice's alice_2 alice3 -alice-", None),
        ("Alice", "malice Alicent Aliceä", []),
        ("Alice", "k%3Dalice x\\nalice \x1b[32malice\x1b[0m", None),
        ("Zoë", "Zoë ZOË Zoe\u0308", ["Zoë", "ZOË", "Zoe\u0308"]),
        ("Zoë", "zo%C3%AB", ["zo%C3%AB"]),
        ("Alice Smith", "Alice  Smith alice\nsmith Alice%20Smith Alice+Smith AliceSmith", 4),
        ("张伟", "我是张伟先生", ["张伟"]),
        ("x1", "x1 x11 ax1 x1b", ["x1"]),
        ("acme-corp", "@acme-corp/x acme_corp", ["acme-corp"]),
        ("a.c", "abc a.c", ["a.c"]),
        # a protocol's own word, whole, is no name
        ("text", "text", []),
        ("text", "a text", ["text"]),
    ],
)
def test_names(name: str, text: str, matches: list[str] | int | None) -> None:
    hits = found(Scrub(names=(name,)), text)
    if isinstance(matches, int):
        assert len(hits) == matches
    elif matches is None:
        assert len(hits) == len(re.findall(name, text, re.I))
    else:
        assert hits == matches


@pytest.mark.parametrize(
    ("rule", "text", "paths"),
    [
        ("/home/al", "see /home/al/x/a.py.", ["/home/al/x/a.py"]),
        ("/home/al", "(/home/al) '/home/al/b c'", ["/home/al", "/home/al/b"]),
        ("/home/al", "/home/al/a.py:12: error", ["/home/al/a.py"]),
        ("/home/al", "/home/alice /home/al-old/x", ["/home/al-old/x"]),
        ("/home/al", "file:///home/al/x ~/x", ["///home/al/x"]),
        ("/home/al", r"\/home\/al\/x \\/home\\/al", [r"\/home\/al\/x", r"\\/home\\/al"]),
        ("/home/al", "p=%2Fhome%2Fal%2Fx&q", ["%2Fhome%2Fal%2Fx"]),
        ("/home/al", r"/home/al/My\ Files/x\n/home/al", [r"/home/al/My\ Files/x", "/home/al"]),
        ("/home/al", "/HOME/Al/x", ["/HOME/Al/x"]),
        ("/home/al", "在/home/al/x\uff0c然后", ["/home/al/x"]),
        ("/home/al/", "/home/al/x", ["/home/al/x"]),
        ("/home/a l", "/home/a l/x /home/a%20l/y", ["/home/a l/x", "/home/a%20l/y"]),
        (r"C:\Users\al", r"in C:\Users\al\x.txt, C:\\Users\\al\\y", None),
        (r"C:\Users\al", "c:/users/al/x", ["c:/users/al/x"]),
        ("/srv/müller", "/srv/m%C3%BCller/x", ["/srv/m%C3%BCller/x"]),
    ],
)
def test_paths(rule: str, text: str, paths: list[str] | None) -> None:
    expected = [r"C:\Users\al\x.txt", r"C:\\Users\\al\\y"] if paths is None else paths
    assert found(Scrub(paths=(rule,)), text) == expected


def test_paths_become_paths_with_common_folders() -> None:
    words = Words(Scrub(("alice", "tmp"), ("/home/alice", r"C:\Users\alice.smith")))

    def new(path: str) -> str:
        assert words.kind(path) is Kind.PATH
        return words.replacement(path)

    a, b = new("/home/alice/src/a.py"), new("/home/alice/src/b.py")
    assert re.fullmatch(r"/[a-z]{4}/[a-z]{5}/[a-z]{3}/[a-z]\.py", a)
    assert a.rpartition("/")[0] == b.rpartition("/")[0]
    assert a != b
    assert new(r"\/home\/alice\/src\/a.py") == a.replace("/", r"\/")
    assert new("%2Fhome%2Falice%2Fsrc%2Fa.py") == a.replace("/", "%2F")
    assert new("/home/alice").rpartition("/")[2] == words.replacement("alice")
    # what looks like an extension is one only at the end, behind the rule's own words, and no name
    for path in ("/home/alice/x.smith/a.md", "/home/alice/x.tmp", r"C:\Users\alice.smith"):
        changed = new(path)
        assert "smith" not in changed
        assert "tmp" not in changed
    assert new("/home/alice/.bashrc").endswith("/." + words.replacement("bashrc"))


def test_overlaps_are_one_value() -> None:
    rules = Scrub(("alice smith",), (), (re.compile(r"smith-\d+"),))
    assert found(rules, "x alice smith-22 y") == ["alice smith-22"]


@pytest.mark.parametrize("text", ["0", "12", "999", "-5", "tool_use", "[DONE]"])
def test_what_the_protocols_need_is_left(text: str) -> None:
    assert found(Scrub(texts=(re.compile(r"\w+"),)), text) == []


def test_ids_word_for_word() -> None:
    uuid = "12345678-1234-4abc-8def-1234567890ab"
    text = f"/x/{uuid}.jsonl {uuid}0 {uuid.upper()} org-12345 xorg-12345"
    assert found(Scrub(), text, uuid, "org-12345") == [uuid, "org-12345"]
    words = Words(Scrub(), [uuid])
    assert words.kind(uuid) is Kind.IDENTITY
    assert words.replacement(uuid) != uuid


def test_a_replacement_is_never_what_a_rule_names() -> None:
    letters = [chr(code) for code in range(ord("a"), ord("y"))]
    words = Words(Scrub(names=tuple(letters)))
    assert {words.replacement(one) for one in letters} <= {"y", "z"}


def test_what_was_put_in_is_left_alone() -> None:
    rules = Scrub(texts=(re.compile(r"\d{4,}"), re.compile(r"[a-z]+-\d+")))
    first = Words(rules)
    first.begin(frozenset())
    once = first.sub("pin 1234, ab-5678, 90123", lambda kind: None)
    assert re.fullmatch(r"pin \d{4}, [a-z]{2}-\d{4}, \d{5}", once)
    again = Words(rules)
    again.begin(first.made)
    assert again.find(once) == []
    assert len(Words(rules).find(once)) == 3
