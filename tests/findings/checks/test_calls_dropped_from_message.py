from __future__ import annotations

import pytest

from moontap.findings.types import Party, Severity
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

CODE = "calls-dropped-from-message"
GO = [user("go")]
DONE = message(text("done"))
CUT = {"moontap.incomplete": True}
NOTHING = user("(no content)")


@pytest.mark.parametrize(
    ("exchanges", "says", "ids"),
    [
        (
            [
                Ex(GO, message(text("I look."), use())),
                Ex([*GO, said(text("I look.")), NOTHING], DONE),
            ],
            "its text alone",
            ("pwd_0",),
        ),
        (
            [
                Ex(GO, message(use())),
                Ex([*GO, said(text("[Tool use interrupted]")), NOTHING], DONE),
            ],
            "its text alone",
            ("pwd_0",),
        ),
        (
            [
                Ex(GO, message(use(), use("ls_0", "ls"))),
                Ex([*GO, said(use()), user(result())], DONE),
            ],
            "1 of its 2 calls",
            ("ls_0",),
        ),
        (
            [
                Ex(GO, completion(called(call(), content="I look.")), chat=True),
                Ex([*GO, {"role": "assistant", "content": "I look."}, user("")], chat=True),
            ],
            "its text alone",
            ("pwd:0",),
        ),
    ],
)
def test_a_message_without_its_calls(exchanges: list[Ex], says: str, ids: tuple[str]) -> None:
    (finding,) = found(CODE, *exchanges)
    assert (finding.severity, finding.party) == (Severity.INFO, Party.CLIENT)
    assert says in finding.message
    assert (finding.evidence.message, finding.evidence.ids) == (1, ids)


@pytest.mark.parametrize(
    "exchanges",
    [
        [Ex(GO, message(text("x"), use())), Ex([*GO, said(text("x"), use()), user(result())])],
        [Ex(GO, message(text("x"))), Ex([*GO, said(text("x")), user("go on")])],
        # Not delivered to its end.
        [Ex(GO, message(text("x"), use()), metadata=CUT), Ex([*GO, said(text("x")), NOTHING])],
        # Not that reply: the client asked again and used the second one.
        [
            Ex(GO, message(text("x"), use())),
            Ex(GO, message(text("x"), id_="msg_2")),
            Ex([*GO, said(text("x")), user("go on")]),
        ],
        # The whole message is gone: there is none that was rebuilt.
        [Ex(GO, message(text("x"), use())), Ex([*GO, user("go on")])],
        # The tap joined late: what was delivered is not known.
        [Ex([*GO, said(text("[Tool use interrupted]")), NOTHING])],
        [
            Ex(GO, completion(called(call())), chat=True),
            Ex([*GO, called(call()), answered()], chat=True),
        ],
    ],
)
def test_near_misses(exchanges: list[Ex]) -> None:
    assert found(CODE, *exchanges) == []


def test_it_is_told_once_in_a_conversation() -> None:
    history, exchanges = list(GO), []
    for n in range(4):
        exchanges.append(Ex(list(history), message(text(f"t{n}"), use())))
        history += [said(text(f"t{n}")), NOTHING]
    assert [f.exchange for f in found(CODE, *exchanges)] == [2]
