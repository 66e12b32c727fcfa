"""The account of a conversation, and of a file."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Evidence, Finding, Party, Severity
from moontap.report.story.account import account as account_of
from moontap.report.story.limits import Source
from moontap.report.story.tell import tell
from tests.findings.rig import Ex, message, text, user
from tests.report.story.telling import account, finding, rounds

CLAUDE: dict[str, Any] = {"request_headers": {"user-agent": "claude-cli/2.1.328 (external, cli)"}}


def loop(turns: int) -> list[Ex]:
    return rounds(["ls", *["date"] * (turns - 1)], id_="Bash_0", lost=True, **CLAUDE)


def chain(turns: int) -> list[Finding]:
    """What is found in such a loop."""
    found = [finding("id-reused", 2, Severity.ERROR, message="Bash_0 came again, for a new call.")]
    found += [
        finding(code, exchange, Severity.WARNING, Party.CLIENT)
        for exchange in range(3, turns + 1)
        for code in ("pair-dropped-by-client", "empty-user-turn")
    ]
    return [*found, finding("no-progress", turns, Severity.ERROR, Party.CLIENT)]


def told(exchanges: list[Ex], findings: Any = (), **more: Any) -> str:
    return "\n".join(tell(account(exchanges, findings), "One", "x.flow", width=100, **more))


def test_a_loop_is_explained() -> None:
    said = told(loop(6), chain(6))
    rows = " ".join(said.partition("Where it went wrong")[0].split())
    assert rows.endswith(
        '2 one result comes back; the model calls Bash {"command":"date"} as Bash_0 (used '
        "before) << id-reused (it begins here) "
        "3-6 4 times: the client drops one call with its result, one empty user turn; the model "
        "calls the same again: one Bash, as Bash_0 (used before) "
        "<< pair-dropped-by-client, empty-user-turn, no-progress"
    ), rows
    for words in (
        "Where it went wrong first: exchange 2 (flow flow-2)",
        "Bash_0 came again, for a new call [id-reused, error]",
        "[pair-dropped-by-client, warning, 4 times up to exchange 6]",
        "5 of 6 calls came under an id that the server had used before",
        "the client dropped 4 pairs of call and result",
        "and repaired its history so in 4 requests",
        "4 user turns said nothing",
        "Most likely: the model, or the API in front of it, together with a client that pairs by",
        "\n    moontap run -- claude",
    ):
        assert words in " ".join(said.split()) or words in said, words


@pytest.mark.parametrize("turns", [6, 150])
def test_it_is_short(turns: int) -> None:
    looping = told(loop(turns), chain(turns)).splitlines()
    assert len(looping) < 40
    varied = rounds([f"step {n}" for n in range(turns)], final="Done.")
    assert len(told(varied, chain(turns)).splitlines()) < 60
    assert max(map(len, looping)) <= 100
    full = told(loop(turns), chain(turns), full=True).splitlines()
    assert len(full) > turns


def test_text_of_the_wire_moves_no_cursor() -> None:
    exchanges = rounds(["\x1b[2J", "\x1b[2J"], final="\x1b[2J\u202e")
    said = told(exchanges, [finding("odd", 1, message="\x1b[2J", remedy="\x1b[2J\n")], full=True)
    assert all(one.isprintable() or one == "\n" for one in said)


ONE = rounds(["ls"])


@pytest.mark.parametrize(
    ("exchanges", "findings", "words"),
    [
        (
            ONE,
            [],
            "There is one request only, so what the client did with the reply cannot be told.",
        ),
        (rounds(["ls"], **CLAUDE), [], "The whole run: moontap run -- claude"),
        (rounds(["ls", "date"]), [], "It ends with 1 call whose result is not in it"),
        (rounds(["ls"] * 3)[1:], [], "The first 3 messages had been said before the capture began"),
        ([Ex([user("go")]), Ex([user("go")])], [], "No reply was recorded"),
        (ONE * 2, [finding("request-retried", 2)], "The client names no session"),
    ],
)
def test_what_is_not_known_is_said(
    exchanges: list[Ex], findings: list[Finding], words: str
) -> None:
    assert words in " ".join(told(exchanges, findings).split())


def test_nothing_is_missing_where_all_is_there() -> None:
    said = told(rounds(["ls", "date"], final="Done."))
    assert "does not show" not in said
    assert "Nothing went wrong here that moontap looks for" in said
    assert "Most likely" not in said


@pytest.mark.parametrize(
    ("found", "command"),
    [
        (finding("no-progress"), "moontap run --guard block -- COMMAND"),
        (finding("stream-cut", party=Party.NETWORK), "moontap bundle x.flow"),
        (finding("id-reused"), "moontap bundle x.flow"),  # no id was seen twice: what, then?
        (
            finding("result-orphan", party=Party.CLIENT, evidence=Evidence(ids=(None, "a b"))),
            "moontap cut x.flow --around 'a b' --playable --out fault.flow",
        ),
        (finding("request-retried", party=Party.SDK_RETRY), "moontap show flow-1 x.flow"),
        (
            finding("empty-user-turn", party=Party.CLIENT, evidence=Evidence(ids=("-x",))),
            "moontap show flow-1 x.flow",
        ),
        (finding("empty-user-turn", party=Party.CLIENT, flow=None), "moontap bundle x.flow"),
    ],
)
def test_there_is_a_command_to_paste(found: Finding, command: str) -> None:
    said = told(rounds(["ls"], final="Done."), [found]).splitlines()
    assert said[-1] == f"    {command}"


def file(*conversations: tuple[list[Ex], list[Finding]], full: bool = False, **more: Any) -> str:
    accounts = {number: account(*one) for number, one in enumerate(conversations, 1)}
    given: dict[str, Any] = {"name": "x.flow", "exchanges": 9, "paired": 8}
    source = Source(**(given | more))
    return "\n".join(account_of(source, accounts, width=100, full=full))


GOOD = (rounds(["ls"], final="Done."), list[Finding]())
BAD = (rounds(["ls"], final="Done."), [finding("stream-cut")])


def test_trouble_is_told_and_the_rest_is_listed() -> None:
    said = file(GOOD, BAD, *[GOOD] * 20)
    assert said.startswith("x.flow: 9 exchanges, 8 with a model, 22 conversations, something went")
    assert "\nConversation 2: session" in said
    assert "\nConversation 1: session" not in said
    assert "\n  1: session conv" in said
    assert "\n  and 9 more; --full tells each of them" in said
    assert len(said.splitlines()) < 60
    assert "\nConversation 22: " in file(GOOD, BAD, *[GOOD] * 20, full=True)


def test_one_conversation_is_told_whatever_it_is() -> None:
    assert "\nThe conversation: session" in file(GOOD)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"exchanges": 0, "paired": 0}, "x.flow: there is no HTTP exchange in it"),
        ({"exchanges": 3, "paired": 0}, "none of 3 exchanges is with a model"),
        ({"exchanges": 3, "paired": 0}, "moontap_hosts names those that are tapped"),
        ({"tapped": False}, 'mitmdump -s "$(moontap path)", or moontap run'),
        ({"off": ("no-progress",)}, "The rules turn off: no-progress (findings.off)."),
        ({"failed": ("id-odd",)}, "These checks failed, which is a fault of moontap: id-odd"),
    ],
)
def test_what_a_file_does_not_hold_is_said(more: dict[str, Any], words: str) -> None:
    empty = [] if more.get("paired") == 0 else [GOOD]
    assert words in " ".join(file(*empty, **more).split())


def test_what_is_good_to_know_is_for_full() -> None:
    found = [finding("id-reused", 1, Severity.INFO)]
    exchanges = [*rounds(["ls"]), Ex([user("go")], message(text("Done.")))]
    assert "id-reused" not in told(exchanges, found)
    assert "Good to know:\n  exchange 1: It is about id-reused [id-reused, info]" in told(
        exchanges, found, full=True
    )
