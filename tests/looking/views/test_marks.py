from __future__ import annotations

from typing import Any

import pytest

from moontap.looking.views.marks import Marks, marks_of, of_odd
from tests.looking.views.asked import (
    assistant,
    calls,
    chat,
    messages,
    result,
    tool,
    use,
    user,
)

FITS = "fits together"
PAIR = [assistant(use("Bash_0")), user(result("Bash_0"))]

HISTORIES = [
    # history, what is said of it as a whole
    ([user("go")], FITS),
    ([user("go"), *PAIR], FITS),
    ([*PAIR, assistant(use("Bash_1")), user(result("Bash_1"))], FITS),
    ([*PAIR, *PAIR], "1 id reused"),
    ([*PAIR, *PAIR, *PAIR], "1 id reused"),
    ([assistant(use("a"), use("b")), user(result("b"), result("a"))] * 2, "2 ids reused"),
    ([assistant(use("a"), use("a")), user(result("a"), result("a"))], "1 id reused"),
    # Without a result: in the middle, and in the last message, as the request comes without it.
    ([assistant(use("a"), use("b")), user(result("a"))], "1 call without result"),
    ([assistant(use("a"))], "1 call without result"),
    ([assistant(use("a"), use("b")), user("never mind")], "2 calls without result"),
    # The latest call with the id takes the result; the one before goes without.
    ([assistant(use("a")), user("no"), assistant(use("a")), user(result("a"))], "1 id reused, 1 c"),
    # Results that no call can take.
    ([user(result("a"))], "1 result without call"),
    ([user(result("a")), assistant(use("a"))], "1 call without result, 1 result without call"),
    ([assistant(use("a")), user(result("a"), result("a"))], "1 doubled result"),
    ([assistant(use("a")), user(result("a")), user(result("a"))], "1 doubled result"),
    ([assistant(use("a")), user(result("a")), user(result("b"))], "1 result without call"),
    # Ids that are none are not shared.
    ([assistant(use(""), use("")), user(result(""), result(""))], "2 calls without id"),
    ([assistant(use(None)), user(result(None))], "1 call without id"),
    ([assistant(use("undefined")), user(result("undefined"))], "1 call without id"),
    ([assistant("hm"), user("(no content)")], "1 empty turn"),
    ([user("<system-reminder>x</system-reminder>")], FITS),
    ([{"role": "usr", "content": "go"}], "1 malformed message"),
]

FITS = "fits together"


def _marks(history: list[Any]) -> Marks:
    return marks_of(messages(history).request.messages)


@pytest.mark.parametrize(("history", "said"), HISTORIES)
def test_says_how_many_there_are(history: list[Any], said: str) -> None:
    assert str(_marks(history)).startswith(said)
    assert said != FITS or str(_marks(history)) == FITS


def test_the_same_for_chat_completions() -> None:
    history = [
        user("go"),
        calls(("a", "{}"), ("b", "{}")),
        tool("a"),
        tool("a"),
        calls(("a", "{}")),
        tool("a"),
        tool("c"),
        user(""),
    ]
    said = str(marks_of(chat(history).request.messages))
    assert said == (
        "1 id reused, 1 call without result, 1 result without call, 1 doubled result, 1 empty turn"
    )


def test_each_place_by_where_it_stands() -> None:
    marks = _marks(
        [
            user("go"),
            assistant(use("a"), use("b")),
            user(result("a"), result("a"), result("c")),
            assistant(use("a"), use("a")),
            user(result("a"), result("d")),
            assistant(use("d")),
        ]
    )
    assert marks.answers == {(1, 0): (2, 0), (3, 0): (4, 0)}
    assert marks.calls == {(2, 0): (1, 0), (4, 0): (3, 0)}
    assert marks.reused == {(3, 0): (1, 0), (3, 1): (3, 0)}
    assert marks.again == {(2, 1): (1, 0)}
    assert marks.strays == {(2, 2): None, (4, 1): 5}
    assert marks.unanswered == {(1, 1), (3, 1), (5, 0)}
    assert marks.of_id((3, 0), "a") == ["id reused: also the call of message 1"]
    assert marks.of_id((3, 1), "a") == ["id reused: also another call of this message"]
    assert marks.of_id((1, 0), "a") == []
    assert marks.of_call((3, 1)) == ["no result"]
    assert marks.of_result((2, 0), "a") == []
    assert marks.of_result((2, 1), "a") == ["second result for this call"]
    assert marks.of_result((2, 2), "c") == ["no call has this id"]
    assert marks.of_result((4, 1), "d") == ["its call comes later, in message 5"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "assistnat", "content": "x"}, 'role is "assistnat"'),
        ({"role": "user", "contnet": "x"}, "no content, but contnet"),
        ({"role": "user"}, "no content"),
        ({"role": "user", "content": 5}, "content is a number, not a string or a list of blocks"),
        (assistant({**use("a"), "type": "tool_us"}), 'content[0].type is "tool_us"'),
    ],
)
def test_says_what_is_wrong_with_a_form(message: dict[str, Any], said: str) -> None:
    (odd, *_) = messages([message]).request.messages[0].odd
    assert of_odd(odd) == f"malformed: {said}"


def test_another_protocols_words() -> None:
    (odd,) = chat([user(result("a"), "x")]).request.messages[0].odd
    said = 'malformed: content[0].type is "tool_result", which is of the other protocol'
    assert of_odd(odd) == said
