from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from moontap.findings.types import Finding
from moontap.jsonpaths import compile_path
from moontap.rules import ProgressRules, Rules
from moontap.rules.progress import Ignore
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    found,
    message,
    result,
    said,
    text,
    use,
    user,
)

type Step = tuple[str, dict[str, Any], Any]
"""A tool, its arguments and its result; None: it never comes back."""

PWD: Step = ("pwd", {}, "/w")
LS: Step = ("ls", {"path": "."}, "a b")


def messages(steps: Iterable[Step], ids: Callable[[int], str] = "toolu_{}".format) -> list[Ex]:
    history: list[Any] = [user("go")]
    exchanges = []
    for number, (tool, arguments, answer) in enumerate(steps):
        one = use(ids(number), tool, **arguments)
        exchanges.append(Ex(list(history), message(one)))
        if answer is None:  # as Claude Code sends it
            history += [said(text("Let me see.")), user("(no content)")]
        else:
            history += [said(one), user(result(ids(number), answer))]
    return [*exchanges, Ex(history, message(text("done")))]


def chat(steps: Iterable[Step], ids: Callable[[int], str] = "call_{}".format) -> list[Ex]:
    history: list[Any] = [user("go")]
    exchanges = []
    for number, (tool, arguments, answer) in enumerate(steps):
        one = call(ids(number), tool, str(arguments).replace("'", '"'))
        exchanges.append(Ex(list(history), completion(called(one)), chat=True))
        if answer is None:
            history += [{"role": "assistant", "content": "Let me see."}, user("(no content)")]
        else:
            history += [called(one), answered(ids(number), answer)]
    return [*exchanges, Ex(history, completion({"role": "assistant", "content": ""}), chat=True)]


def counts(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(f.evidence.facts["count"], f.severity.value) for f in findings]


SAME = [(3, "info"), (5, "warning"), (8, "warning"), (12, "error")]
LOST = [(3, "warning"), (5, "warning"), (8, "error"), (12, "error")]


@pytest.mark.parametrize("write", [messages, chat])
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([PWD] * 13, SAME, id="one call"),
        pytest.param([PWD] * 2, [], id="twice"),
        pytest.param([PWD, LS] * 5, SAME[:2], id="two in turn"),
        pytest.param([PWD, LS, ("c", {}, "1"), ("d", {}, "1")] * 3, SAME[:1], id="four in turn"),
        pytest.param([(str(n % 5), {}, "1") for n in range(25)], [], id="five in turn"),
        pytest.param([("pwd", {}, f"{n} %") for n in range(13)], [], id="polling"),
        pytest.param([("cat", {"n": n}, "") for n in range(13)], [], id="other arguments"),
        pytest.param([("$web_search", {"q": 1}, '{"q":1}')] * 13, [], id="web search"),
        pytest.param([("pwd", {}, None)] * 13, LOST, id="no result ever"),
        pytest.param([PWD, PWD, LS, PWD, PWD], [], id="something else between"),
    ],
)
def test_how_often(
    write: Callable[[list[Step]], list[Ex]],
    steps: list[Step],
    expected: list[tuple[int, str]],
) -> None:
    assert counts(found("no-progress", *write(steps))) == expected


@pytest.mark.parametrize("write", [messages, chat])
@pytest.mark.parametrize(
    ("answer", "ids", "party", "says"),
    [
        (
            "/w",
            "toolu_{}",
            "api",
            "pwd was called 3 times in a row with the same arguments, and the",
        ),
        ("/w", "pwd_0", "api", "the same each time (also under the same id, pwd_0)."),
        (None, "toolu_{}", "client", "and no result came back."),
        # Its first use was lost as well: not for its id.
        (None, "pwd_0", "client", "and no result came back."),
    ],
)
def test_who_did_it(
    write: Callable[..., list[Ex]], answer: str | None, ids: str, party: str, says: str
) -> None:
    [finding] = found("no-progress", *write([("pwd", {}, answer)] * 3, ids.format))
    assert finding.party.value == party
    assert says in finding.message
    assert finding.evidence.facts["lost"] == (answer is None)
    assert finding.evidence.facts["ids_reused"] == ("same id" in says)
    assert finding.evidence.facts["last_flow"] == "flow-3"
    assert finding.evidence.excerpt == "{}"


@pytest.mark.parametrize("write", [messages, chat])
def test_a_client_that_pairs_by_id(write: Callable[..., list[Ex]]) -> None:
    steps = [PWD, *[("ls", {}, None)] * 3]
    [finding] = found("no-progress", *write(steps, "x_0".format))
    assert (finding.severity.value, finding.party.value) == ("warning", "client")
    assert "x_0 had been used as an id before, and the client most likely" in finding.message
    assert "moontap_rewrite=all" in finding.remedy


@pytest.mark.parametrize("write", [messages, chat])
def test_the_same_id_with_other_arguments_is_progress(write: Callable[..., list[Ex]]) -> None:
    steps: list[Step] = [("ls", {"path": str(n)}, str(n)) for n in range(9)]
    assert found("no-progress", *write(steps, "ls_0".format)) == []


def test_a_person_who_speaks_starts_it_again() -> None:
    first, second = messages([PWD] * 2)[:2]
    history = [*second.messages, said(use("toolu_1")), user(result("toolu_1"), text("and now?"))]
    third = Ex(history, message(use("toolu_2")))
    history = [*history, said(use("toolu_2")), user(result("toolu_2"))]
    # Results and a text in one message: typed while the tool ran.
    assert found("no-progress", first, second, third, Ex(history)) == []
    between = [
        *second.messages,
        said(use("toolu_1")),
        user(result("toolu_1")),
        said("hm"),
        user("go"),
    ]
    more = [*between, said(use("toolu_2")), user(result("toolu_2"))]
    assert found("no-progress", first, second, Ex(between, message(use("toolu_2"))), Ex(more)) == []


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([user("go")], [(3, "info"), (5, "info"), (8, "info"), (12, "info")]),
        ([user("go"), said(use("x")), user(result("x"))], LOST),
    ],
)
def test_an_agent_that_keeps_no_reply(history: list[Any], expected: list[tuple[int, str]]) -> None:
    exchanges = [Ex(history, message(use("pwd_0"))) for _ in range(14)]
    findings = found("no-progress", *exchanges)
    assert counts(findings) == expected
    assert "sent the same request again each time" in findings[0].message


def loop(*tools: str, replies: int, beside: Any = None, order: int = 1) -> list[Ex]:
    """The same calls in each reply. beside: a block beside their results."""
    history: list[Any] = [user("go")]
    exchanges = []
    for number in range(replies):
        uses = [use(f"{tool}-{number}", tool) for tool in tools][:: order if number % 2 else 1]
        results = [result(one["id"], "x") for one in uses]
        exchanges.append(Ex(list(history), message(*uses)))
        history += [said(*uses), user(*results, *([beside] if beside else []))]
    return [*exchanges, Ex(history, message(text("done")))]


@pytest.mark.parametrize(
    ("exchanges", "expected", "says"),
    [
        (loop(*"abcde", replies=12), SAME, "The same 5 calls of a and b and c and d and 1 more"),
        (loop(*"ab", replies=12, order=-1), SAME, "The same 2 calls of b and a were made"),
        (loop("a", replies=5, beside=text("try again")), [], ""),
        (loop("a", replies=5, beside=text("<system-reminder>x</system-reminder>")), SAME[:2], ""),
        (loop("a", replies=5, beside=text("(no content)")), SAME[:2], ""),
    ],
)
def test_replies_are_counted(
    exchanges: list[Ex], expected: list[tuple[int, str]], says: str
) -> None:
    findings = found("no-progress", *exchanges)
    assert counts(findings) == expected
    assert not findings or says in findings[-1].message


# As they are after the redaction; live, the guard sees them as they were.
MASK = "sk-" + "*" * 24


@pytest.mark.parametrize("write", [messages, chat])
@pytest.mark.parametrize(
    ("step", "masked"),
    [
        (("token", {}, MASK), True),
        (("token", {}, '{"key":"*****"}'), True),
        (("login", {"key": "*" * 9}, "ok"), True),
        (("token", {}, "**bold** and *** a rule"), False),
    ],
)
def test_masked_texts_may_have_differed(
    write: Callable[..., list[Ex]], step: Step, masked: bool
) -> None:
    findings = found("no-progress", *write([step] * 12))
    top = (12, "warning") if masked else (12, "error")
    assert counts(findings) == [*SAME[:3], top]
    assert ("may have differed" in findings[-1].message) is masked
    assert findings[-1].evidence.facts["masked"] is masked


@pytest.mark.parametrize("write", [messages, chat])
def test_a_second_run_with_equal_ids_counts_as_the_first(write: Callable[..., list[Ex]]) -> None:
    """K2 numbers calls from the start of a conversation: its second run sends the same bytes."""
    short, long = write([PWD] * 2), write([PWD] * 6)
    assert counts(found("no-progress", *short, *long)) == SAME[:2]
    assert counts(found("no-progress", *long, *long)) == SAME[:2] * 2


@pytest.mark.parametrize("choice", ["any", "tool"])
def test_data_in_a_form_needs_no_result(choice: str) -> None:
    ask = {"tool_choice": {"type": choice, "name": "pwd"}}
    assert found("no-progress", *[Ex([user("go")], message(use()), ask) for _ in range(9)]) == []


@pytest.mark.parametrize("write", [messages, chat])
def test_the_same_program_run_again_is_no_loop(write: Callable[..., list[Ex]]) -> None:
    assert found("no-progress", *(write([PWD]) * 9)) == []


@pytest.mark.parametrize(
    ("rules", "steps", "expected"),
    [
        (ProgressRules(thresholds=(2,)), [PWD] * 4, [2]),
        (ProgressRules(exempt=frozenset({"p*"})), [PWD] * 9, []),
        (ProgressRules(exempt=frozenset()), [("$web_search", {}, "")] * 3, [3]),
        (
            ProgressRules(ignore=(Ignore(results=(compile_path("$.at"),)),)),
            [("pwd", {}, f'{{"at":{n},"ok":1}}') for n in range(3)],
            [3],
        ),
        (
            ProgressRules(ignore=(Ignore("ls", arguments=(compile_path("$.why"),)),)),
            [("ls", {"why": str(n)}, "a") for n in range(3)],
            [3],
        ),
    ],
)
def test_what_counts_is_for_the_rules_to_say(
    rules: ProgressRules, steps: list[Step], expected: list[int]
) -> None:
    findings = found("no-progress", *messages(steps), rules=Rules(progress=rules))
    assert [f.evidence.facts["count"] for f in findings] == expected
