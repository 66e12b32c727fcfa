from __future__ import annotations

import re
from typing import Any

import pytest

from moontap.standin.mint import IdForm, Mint, call_ids
from moontap.standin.seen import Protocol

NAMES = ["Bash", "Read"]


@pytest.mark.parametrize(
    ("how", "protocol", "form", "in_history", "expected"),
    [
        (Mint.RESPONSE, Protocol.MESSAGES, None, 5, ["Bash_0", "Read_1"]),
        (Mint.RESPONSE, Protocol.CHAT, None, 5, ["Bash:0", "Read:1"]),
        (Mint.RESPONSE, Protocol.MESSAGES, IdForm.COLON, 5, ["Bash:0", "Read:1"]),
        (Mint.RESPONSE, Protocol.CHAT, IdForm.UNDERSCORE, 5, ["Bash_0", "Read_1"]),
        (Mint.HISTORY, Protocol.MESSAGES, None, 0, ["Bash_0", "Read_1"]),
        (Mint.HISTORY, Protocol.MESSAGES, None, 210, ["Bash_210", "Read_211"]),
    ],
)
def test_reusing_mints(how: Mint, protocol: Protocol, form: Any, in_history: int,
                       expected: list[str]) -> None:  # fmt: skip
    made = call_ids(
        how, NAMES, protocol=protocol, form=form, in_history=in_history, nonce="n", choice=1
    )
    assert made == expected


@pytest.mark.parametrize(
    ("protocol", "shape"),
    [
        (Protocol.MESSAGES, r"toolu_[0-9a-f]{24}"),
        (Protocol.CHAT, r"chatcmpl-tool-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ],
)
def test_unique_ids_differ_by_reply_choice_and_place(protocol: Protocol, shape: str) -> None:
    def ids(nonce: str, choice: int) -> list[str]:
        return call_ids(
            Mint.UNIQUE,
            NAMES,
            protocol=protocol,
            form=None,
            in_history=0,
            nonce=nonce,
            choice=choice,
        )

    made = [i for nonce in "ab" for choice in (0, 1) for i in ids(nonce, choice)]
    assert len(set(made)) == 8
    assert all(re.fullmatch(shape, i) for i in made)
    assert ids("a", 0) == ids("a", 0)
