"""Keys without a shape, told by the name before them; and that the search is linear."""

from __future__ import annotations

import time

import pytest
from mitmproxy.test import tflow, tutils

from moontap.redact.flow import Redactor

TOKEN = "Zq8vTfW3nB6yKpR1sXc9LmD4"
JWT = "eyJhbGciOiJIUzI1NiJ9abc.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4fwpM"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer @",
        "curl -H 'authorization: Bearer @' -d x",
        "sent Bearer @ to it",
        "x-api-key: @",
        "-H 'x-api-key: @'",
        '{"api_key":"@"}',
        '{"apiKey": "@", "a": 1}',
        r"{\"api_key\":\"@\"}",
        r"{\\\"x-api-key\\\": \\\"@\\\"}",
        "export MOONSHOT_API_KEY=@",
        "ANTHROPIC_AUTH_TOKEN='@'",
        "client_secret=@&grant=x",
        'headers = {"Authorization": "Bearer @"}',
    ],
)
def test_a_key_is_told_by_the_name_before_it(text: str) -> None:
    masked = Redactor().mask_text(text.replace("@", TOKEN))
    assert TOKEN not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "text",
    [
        "Bearer authentication-required for this endpoint",
        "the Bearer of this letter is known to everybody",
        "api_key=os.environ.get_the_key_of_moonshot",
        "api_key=config.api_key_v2_production",
        "api_key: $MOONSHOT_API_KEY and nothing else",
        "set the api key in the settings-dialog-of-the-app",
        "max_tokens: 12345678901234567890",
        "auth_token=<your-token-goes-here>",
        "api-key = required_by_the_server_since_march",
        f"commit {TOKEN} is fine",
        '{"type":"authentication_error","message":"invalid x-api-key"}',
    ],
)
def test_words_are_left_alone(text: str) -> None:
    assert Redactor().mask_text(text) == text


def test_a_key_that_a_text_or_a_flow_shows_is_known_everywhere() -> None:
    redactor = Redactor()
    assert TOKEN in redactor.mask_text(f"echo {TOKEN}")
    redactor.learn_text(f"x-api-key: {TOKEN}")
    assert redactor.mask_text(f"echo {TOKEN}") == "echo " + "*" * len(TOKEN)
    redactor = Redactor()
    headers = ((b"authorization", b"Bearer " + TOKEN.encode()), (b"cookie", b"sid=abcdefgh12"))
    redactor.learn(tflow.tflow(req=tutils.treq(headers=headers)))
    assert redactor.mask_text(f"{TOKEN} abcdefgh12") == "*" * len(TOKEN) + " abcdefgh12"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (JWT, True),
        (f"a {JWT}.abc.def b", True),
        (f"-{JWT}", True),
        ("eyJ" * 9 + JWT, True),
        (JWT.rpartition(".")[0], False),
        ("eyJhbGci.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4fwpM", False),
    ],
)
def test_json_web_tokens(text: str, found: bool) -> None:
    assert ("****" in Redactor().mask_text(text)) is found
    body = b'{"a":"%s"}' % text.encode()
    assert (Redactor().mask_body(body) != body) is found


@pytest.mark.parametrize(
    "piece",
    [
        *("\n", "\r\n", " \n", "\t", "sk-", "-sk-", "eyJ", "-eyJ", "xoxa-", "\\", '\\"', '"'),
        *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "api_key=", "Bearer ", '"api_key":"'),
        *("authorization: *\n", "authorization", "\x1b[1m", "glpat-", "A1b2", "=", "data: {\n\n"),
    ],
)
def test_no_text_takes_time_quadratic_in_its_length(piece: str) -> None:
    """4,000 blank lines before a record took `moontap lint` minutes."""
    text = "zz" + piece * (60_000 // len(piece))
    redactor = Redactor()
    begun = time.process_time()
    redactor.mask_text(text)
    redactor.mask_body(text.encode())
    redactor.mask_body(b'{"a":"' + text.encode())
    assert time.process_time() - begun < 2  # as it was: from 9 s on
