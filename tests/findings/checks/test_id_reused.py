from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    found,
    message,
    result,
    said,
    stream,
    text,
    use,
    user,
)
from tests.samples import dump


def turns(*ids: str, **more: Any) -> list[Ex]:
    """A conversation on Messages in which each reply has one call of Bash."""
    history: list[Any] = [user("go")]
    made = []
    for n, id_ in enumerate(ids):
        made.append(Ex(list(history), message(use(id_, "Bash", c=n), id_=f"msg_{n}"), **more))
        history += [said(use(id_, "Bash", c=n)), user(result(id_))]
    return made


def chat(*ids: str) -> list[Ex]:
    """The same on Chat Completions, streamed."""
    history: list[Any] = [user("go")]
    made = []
    for n, id_ in enumerate(ids):
        arguments = f'{{"c":{n}}}'
        delta = {"tool_calls": [{"index": 0, **call(id_, "Bash", arguments)}]}
        reply = chunks({"id": f"cmpl-{n}", "choices": [{"index": 0, "delta": delta}]})
        made.append(Ex(list(history), reply, chat=True))
        history += [called(call(id_, "Bash", arguments)), answered(id_)]
    return made


def renamed(exchange: Ex, new: str) -> Ex:
    """As the tap delivers it: the client gets the new id, upstream's body is kept beside."""
    assert isinstance(exchange.reply, dict)
    exchange.metadata["moontap.upstream_body"] = dump(exchange.reply)
    exchange.reply = message(use(new, "Bash", c=1), id_=exchange.reply["id"])
    return exchange


def rewritten() -> list[Ex]:
    first, second = turns("Bash_0", "Bash_0")
    return [first, renamed(second, "Bash_0_tabcdefghij")]


def compacted() -> list[Ex]:
    """The server counts the calls it sees: after a compaction an id comes again that is gone."""
    summary: list[Any] = [user("summary"), said(use("Bash_2", "Bash", c=2)), user(result("Bash_2"))]
    named = {"metadata": {"user_id": "session-1"}}
    last = Ex(summary, message(use("Bash_1", "Bash", c=9)), named)
    return [*turns("Bash_0", "Bash_1", "Bash_2", ask=named), last]


def run(id_: str) -> list[Ex]:
    """A program that makes a call and ends."""
    (first,) = turns(id_)
    history = [*first.messages, said(use(id_, "Bash", c=0)), user(result(id_))]
    return [first, Ex(history, message(text("done")))]


def cut() -> list[Ex]:
    """A client that leaves out what came first, but for the words it began with."""
    made = turns("Bash_0", "Bash_1", "Bash_2")
    history = [*made[2].messages, said(use("Bash_2", "Bash", c=2)), user(result("Bash_2"))]
    short = [history[0], *history[5:]]
    return [*made, Ex(short, message(use("Bash_1", "Bash", c=9), id_="msg_9"))]


def later(compaction: Ex) -> Ex:
    """A summary of what `rewound` did."""
    known = [said(use("Bash_0", "Bash", c=0)), user(result("Bash_0"))]
    return replace(compaction, messages=[user("summary"), *known])


def rewound() -> list[Ex]:
    """The person edits the second message: the server counts on from what it sees."""
    named = {"metadata": {"user_id": "session-1"}}
    first, _ = turns("Bash_0", "x", ask=named)
    history = [user("go"), said(use("Bash_0", "Bash", c=0)), user(result("Bash_0"))]
    made = [first]
    for n, words in enumerate(("and b?", "no: c")):
        one = use("Bash_1", "Bash", c=n)
        asked = [*history, said("done"), user(words)]
        made.append(Ex(asked, message(one, id_=f"msg_{n}"), named))
        made.append(Ex([*asked, said(one), user(result("Bash_1"))], message(text("x")), named))
    return made


HISTORY = [
    user("go"),
    said(use("Bash_0", "Bash", c=1)),
    user(result("Bash_0")),
    said(use("Bash_0", "Bash", c=2)),
    user(result("Bash_0")),
    said("done"),
    user("more"),
]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        ("Messages", turns("Bash_0", "Bash_0"), [(2, "error", "Bash_0", 1)]),
        ("Chat Completions, streamed", chat("Bash:0", "Bash:0"), [(2, "error", "Bash:0", 1)]),
        (
            "once for each id",
            turns("a", "a", "a", "b", "b"),
            [(2, "error", "a", 1), (5, "error", "b", 1)],
        ),
        ("the tap renamed it", rewritten(), [(2, "info", "Bash_0", 0)]),
        ("gone from the history", compacted(), [(4, "warning", "Bash_1", 0)]),
        ("cut to save room", cut(), [(4, "warning", "Bash_1", 0)]),
        ("the same program run again", [*run("a"), *run("a")], [(3, "info", "a", 0)]),
        (
            "run again, and reused in it",
            [*run("a"), *turns("a", "a")],
            [(3, "info", "a", 0), (4, "error", "a", 1)],
        ),
        ("went back to an earlier point", rewound(), [(4, "info", "Bash_1", 0)]),
        (
            "went back and then compacted",
            [*rewound(), later(compacted()[3])],
            [(4, "info", "Bash_1", 0), (6, "warning", "Bash_1", 0)],
        ),
    ],
)
def test_an_id_that_comes_again(
    name: str, exchanges: list[Ex], expected: list[tuple[int, str, str, int]]
) -> None:
    findings = found("id-reused", *exchanges)
    assert [
        (
            f.exchange,
            f.severity.value,
            f.evidence.facts["upstream_id"],
            f.evidence.facts["predicted_drops"],
        )
        for f in findings
    ] == expected


@pytest.mark.parametrize(
    ("name", "exchanges"),
    [
        ("unique ids", turns("a", "b", "c")),
        ("the same request answered twice", [*turns("Bash_0"), *turns("Bash_0")]),
        ("empty ids", chat("", "")),
        (
            "two conversations of one session",
            [
                Ex([user("task A")], message(use("Bash_0")), {"metadata": {"user_id": "u"}}),
                Ex([user("task B")], message(use("Bash_0")), {"metadata": {"user_id": "u"}}),
            ],
        ),
        (
            "twice in one response, which has a code of its own",
            [Ex([user("go")], message(use("a", c=1), use("a", c=2)))],
        ),
    ],
)
def test_near_misses(name: str, exchanges: list[Ex]) -> None:
    assert found("id-reused", *exchanges) == []


@pytest.mark.parametrize(
    ("healed", "severity"), [({}, "error"), ({"moontap.healed": [[0, 0, b""]]}, "info")]
)
def test_a_history_that_came_with_reused_ids(healed: dict[str, Any], severity: str) -> None:
    (one,) = found("id-reused", Ex(HISTORY, message(text("ok")), metadata=healed))
    assert (one.severity, one.evidence.message) == (severity, 3)
    assert one.evidence.facts["first_message"] == 1


@pytest.mark.parametrize(
    ("exchanges", "minting", "form"),
    [
        (turns("Bash_0", "Bash_0"), "restarts-in-each-response", "name_n"),
        (chat("Bash:0", "Bash:0"), "restarts-in-each-response", "name:n"),
        (
            chat("functions.Bash:0", "functions.Bash:0"),
            "restarts-in-each-response",
            "functions.name:n",
        ),
        (compacted(), "counts-visible-calls", "name_n"),
        (turns("call_x", "call_x"), "same-in-each-response", "other"),
        (turns("x1", "x2", "x1"), "same-in-each-response", "other"),
        (turns("Bash_7", "b", "Bash_7"), "same-in-each-response", "name_n"),
    ],
)
def test_it_says_how_the_ids_seem_to_be_made(exchanges: list[Ex], minting: str, form: str) -> None:
    (one,) = found("id-reused", *exchanges)
    assert (one.evidence.facts["minting"], one.evidence.facts["form"]) == (minting, form)


@pytest.mark.parametrize(
    ("second", "same", "words"),
    [
        (use("a", "Bash", x=1, y=2), True, "for the same call"),
        (use("a", "Bash", x=1), False, "a call of Bash with other arguments"),
        (use("a", "Read", x=1, y=2), False, "another tool (Read after Bash)"),
    ],
)
def test_the_same_call_again_is_told_from_another_one(
    second: dict[str, Any], same: bool, words: str
) -> None:
    first = use("a", "Bash", y=2, x=1)
    history = [user("go"), said(first), user(result("a"))]
    (one,) = found("id-reused", Ex([user("go")], message(first)), Ex(history, message(second)))
    assert one.evidence.facts["same_call"] is same
    assert words in one.message


def test_streamed_messages_and_the_calls_that_will_be_dropped() -> None:
    start = {"type": "message_start", "message": {"id": "msg_2", "content": []}}
    blocks = [
        {"type": "content_block_start", "index": n, "content_block": use(id_, "Bash")}
        for n, id_ in enumerate(["Bash_0", "Bash_1", "Bash_0"])
    ]
    reply = stream(start, *blocks, {"type": "message_stop"})
    first, _ = turns("Bash_0", "x")
    history = [user("go"), said(use("Bash_0", "Bash", c=0)), user(result("Bash_0"))]
    (one,) = found("id-reused", first, Ex(history, reply))
    assert one.evidence.facts["predicted_drops"] == 2
