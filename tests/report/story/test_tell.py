"""The account of a conversation, and of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moontap.findings.types import Evidence, Finding, Party, Severity
from moontap.report.story.account import account as account_of
from moontap.report.story.conversation import Account
from moontap.report.story.limits import Source
from moontap.report.story.remedy import Ran
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


LOOP_AT = "flow-2"


def looping(turns: int, **facts: Any) -> str:
    """An agent that gets the same result again and again from its second call on; what was found
    is what the check says at its last threshold."""
    found = [
        finding(
            "no-progress",
            at,
            severity,
            message=f"Bash was called {count} times in a row, and so on.",
            evidence=Evidence(facts={"first_flow": LOOP_AT, "count": count, **facts}),
        )
        for at, count, severity in ((7, 5, Severity.WARNING), (14, 12, Severity.ERROR))
    ]
    return told(rounds(["ls", *["date"] * turns], final="Done."), found)


def test_a_loop_is_as_long_as_it_was() -> None:
    """The check counts up to its last threshold; the loop of the run was 155 calls long."""
    said = looping(30)
    assert (
        "exchange 2-32: Bash was called 30 times in a row, and so on [no-progress, error]" in said
    )
    assert "Where it went wrong first: exchange 2 (flow flow-2)" in said
    rows = " ".join(said.partition("Where it went wrong")[0].split())
    # The first of the results is that of another call.
    assert (
        '2-31 30 times: one result comes back; the model calls Bash {"command":"date"} as Bash_1; '
        "the results are the same << no-progress (it begins here)"
    ) in rows


def test_a_loop_that_nobody_counted_is_told_as_it_was_found() -> None:
    said = looping(30, first_flow="elsewhere")
    assert "exchange 7-14: Bash was called 12 times in a row" in said
    assert "Where it went wrong first: exchange 7 (flow flow-7)" in said


SEEN = rounds(["ls", "date"], id_="Bash_0", final="Done.")
UNIQUE = rounds(["ls", "date"], final="Done.")
STUCK = finding("no-progress", remedy="Make the ids unique.")
LOST = finding("no-progress", remedy="Send a result.", evidence=Evidence(facts={"lost": True}))


@pytest.mark.parametrize(
    ("exchanges", "found", "ran", "words", "command"),
    [
        (SEEN, finding("id-reused"), Ran(), "Mend id-reused.", "moontap run -- COMMAND"),
        (SEEN, finding("id-reused"), Ran("all"), "Mend id-reused.", "moontap run -- COMMAND"),
        (
            SEEN,
            finding("id-reused"),
            Ran("off"),
            "It ran with rewriting off: leave out --rewrite off",
            "moontap run -- COMMAND",
        ),
        (UNIQUE, STUCK, Ran(), "let the guard remind it", "moontap run --guard block -- COMMAND"),
        (
            UNIQUE,
            STUCK,
            Ran("all", "remind"),
            "reminders alone did not",
            "moontap run --guard block -- COMMAND",
        ),
        (UNIQUE, STUCK, Ran("all", "block"), "guard.block", "moontap show flow-1 x.flow"),
        (UNIQUE, LOST, Ran("all"), "Send a result.", "moontap run --guard block -- COMMAND"),
    ],
)
def test_nothing_is_advised_that_was_done_already(
    exchanges: list[Ex], found: Finding, ran: Ran, words: str, command: str
) -> None:
    said = told(exchanges, [found], ran=ran)
    advised = " ".join(said.partition("What to try: ")[2].split())
    assert words in advised
    assert advised.endswith(command)
    if found is STUCK:
        assert "unique" not in advised


def stopped(found: list[Finding]) -> Account:
    one = account(rounds(["ls"], final="Done."), found)
    one.exchanges[-1] = replace(one.exchanges[-1], stopped="blocked_no_progress", repeats=2)
    return one


@pytest.mark.parametrize("found", [[], [finding("no-progress", severity=Severity.INFO)], [STUCK]])
def test_a_run_that_was_stopped_says_so_first(found: list[Finding]) -> None:
    accounts = {1: stopped(found)}
    said = "\n".join(account_of(Source("x.flow", 2, 2), accounts, width=1000))
    first, _, rest = said.partition("\n")
    assert first == "x.flow: 2 exchanges, 1 conversation, moontap stopped it"
    assert "\nmoontap stopped it at exchange 2: the same had been done 2 times in a row" in rest
    assert rest.index("moontap stopped it at") < rest.index("the user says")
    assert "Nothing went wrong" not in said
    assert "moontap.guard.release" in rest
    many = {**accounts, 2: account(GOOD[0])}
    head = account_of(Source("x.flow", 4, 4), many, width=1000)[0]
    assert head.endswith("2 conversations, moontap stopped 1, something went wrong in 1")


def test_a_path_is_never_broken() -> None:
    path = f"'{'some folder/' * 12}x.flow'"
    said = file(GOOD, name=path, rules=f"rules: {path}, as in the run").splitlines()
    assert said[0].startswith(f"{path}:")
    assert any(path in line for line in said[1:])
    assert path.replace("some ", "some_") in file(GOOD, name=path.replace("some ", "some_"))


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
