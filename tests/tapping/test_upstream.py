"""Which upstream is taken, and what an agent's environment becomes."""

from __future__ import annotations

import pytest

from moontap import options
from moontap.tapping import upstream
from moontap.tapping.upstream import Upstream, UpstreamError

CN, AI, CODE = "https://api.moonshot.cn", "https://api.moonshot.ai", "https://api.kimi.com"


def test_the_kimi_hosts_are_those_of_the_addon() -> None:
    assert upstream.KIMI_HOSTS == options.HOSTS


@pytest.mark.parametrize(
    ("url", "origin", "anthropic", "openai"),
    [
        (CN, CN, "/anthropic", "/v1"),
        (f"{CN}/", CN, "/anthropic", "/v1"),
        (f"{AI}/anthropic", AI, "/anthropic", "/v1"),
        (f"{AI}/anthropic/", AI, "/anthropic", "/v1"),
        (f"{AI}/anthropic/v1", AI, "/anthropic", "/v1"),
        (f"{AI}/v1", AI, "/anthropic", "/v1"),
        ("HTTPS://API.Moonshot.AI/v1", AI, "/anthropic", "/v1"),
        (CODE, CODE, "/coding", "/coding/v1"),
        (f"{CODE}/coding", CODE, "/coding", "/coding/v1"),
        (f"{CODE}/coding/", CODE, "/coding", "/coding/v1"),
        (f"{CODE}/coding/v1", CODE, "/coding", "/coding/v1"),
        ("http://127.0.0.1:8089", "http://127.0.0.1:8089", "/anthropic", "/v1"),
        ("http://[::1]:8089/v1", "http://[::1]:8089", "/anthropic", "/v1"),
        ("https://gate.example/kimi", "https://gate.example", "/kimi", "/kimi/v1"),
        ("https://gate.example/kimi/v1", "https://gate.example", "/kimi", "/kimi/v1"),
        (
            "https://gate.example/kimi/anthropic",
            "https://gate.example",
            "/kimi/anthropic",
            "/kimi/v1",
        ),
    ],
)
def test_a_url_is_understood(url: str, origin: str, anthropic: str, openai: str) -> None:
    assert upstream.parse(url) == Upstream(origin, anthropic, openai)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "begins with https://"),
        ("api.moonshot.ai", "begins with https://"),
        ("api.moonshot.ai:443", "begins with https://"),
        ("ftp://api.moonshot.ai", "begins with https://"),
        ("https://", "no host"),
        ("https://:8080", "no host"),
        ("https://a b", "no host"),
        ("https://api.moonshot.cn@127.0.0.1:80", "no user name"),
        ("https://h:99999", "not a URL"),
        ("https://h:x", "not a URL"),
        ("https://h:0", "port 0"),
        ("https://[::1", "not a URL"),
        ("https://h/?a=1", "no query"),
        ("https://h/#a", "no query"),
    ],
)
def test_a_url_that_cannot_be_one_is_an_error(url: str, said: str) -> None:
    with pytest.raises(UpstreamError, match=said) as caught:
        upstream.parse(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://u:s3cret@h", "https://h/?key=s3cret", "s3cret://h"])
def test_an_error_repeats_no_secret(url: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        upstream.parse(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "environment", "origin", "notes"),
    [
        (None, {}, CN, []),
        (None, {"ANTHROPIC_BASE_URL": ""}, CN, []),
        (None, {"ANTHROPIC_BASE_URL": f"{AI}/anthropic"}, AI, [f"upstream {AI}, as ANTHROPIC"]),
        (None, {"OPENAI_BASE_URL": f"{AI}/v1"}, AI, [f"upstream {AI}, as OPENAI_BASE_URL says"]),
        (None, {"KIMI_BASE_URL": f"{CODE}/coding/v1"}, CODE, [f"upstream {CODE}, as KIMI_BASE"]),
        (f"{CN}", {"ANTHROPIC_BASE_URL": f"{AI}/anthropic"}, CN, []),
        (
            None,
            {"ANTHROPIC_BASE_URL": f"{AI}/anthropic", "OPENAI_BASE_URL": f"{AI}/v1"},
            AI,
            [f"upstream {AI}, as ANTHROPIC_BASE_URL says"],
        ),
        (
            None,
            {"ANTHROPIC_BASE_URL": "http://localhost:3456/x"},
            "http://localhost:3456",
            ["upstream http://localhost:3456, as ANTHROPIC_BASE_URL says"],
        ),
        (
            None,
            {"OPENAI_BASE_URL": f"{CN}.evil.example/v1"},
            f"{CN}.evil.example",
            [f"upstream {CN}.evil.example, as OPENAI_BASE_URL says"],
        ),
    ],
)
def test_the_upstream_that_is_chosen(
    given: str | None, environment: dict[str, str], origin: str, notes: list[str]
) -> None:
    choice = upstream.choose(given, environment)
    assert choice.upstream.origin == origin
    assert len(choice.notes) == len(notes)
    assert all(said in note for said, note in zip(notes, choice.notes, strict=True))


GATE = "https://my.gateway.example"


@pytest.mark.parametrize(
    ("environment", "anthropic", "openai"),
    [
        ({"ANTHROPIC_BASE_URL": f"{GATE}/kimi/anthropic"}, "/kimi/anthropic", "/kimi/v1"),
        ({"ANTHROPIC_BASE_URL": GATE}, "", "/v1"),
        ({"OPENAI_BASE_URL": f"{GATE}/openai/api/"}, "/openai/api", "/openai/api"),
        (
            {"ANTHROPIC_BASE_URL": f"{GATE}/claude", "OPENAI_BASE_URL": f"{GATE}/gpt/v1"},
            "/claude",
            "/gpt/v1",
        ),
        (
            {"ANTHROPIC_BASE_URL": f"{GATE}/claude", "KIMI_BASE_URL": f"{GATE}/kimi/v1"},
            "/claude",
            "/kimi/v1",
        ),
    ],
)
def test_a_gateway_keeps_its_paths(
    environment: dict[str, str], anthropic: str, openai: str
) -> None:
    assert upstream.choose(None, environment).upstream == Upstream(GATE, anthropic, openai)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"ANTHROPIC_BASE_URL": f"{AI}/anthropic", "OPENAI_BASE_URL": f"{CN}/v1"},
            f"ANTHROPIC_BASE_URL names {AI}, OPENAI_BASE_URL names {CN}, but one tap has one "
            "upstream: say which, with --upstream URL",
        ),
        (
            {"ANTHROPIC_BASE_URL": f"{AI}/anthropic", "OPENAI_BASE_URL": f"{GATE}/v1"},
            f"ANTHROPIC_BASE_URL names {AI}, OPENAI_BASE_URL names {GATE}, but",
        ),
        ({"OPENAI_BASE_URL": "https://u:s3cret@h"}, "OPENAI_BASE_URL: no user name and password"),
        ({"KIMI_BASE_URL": "https://h/?key=s3cret"}, "or give --upstream URL"),
    ],
)
def test_no_key_goes_where_nobody_sent_it(environment: dict[str, str], said: str) -> None:
    """The default is for those who named no server, not for those whose server is unclear."""
    with pytest.raises(UpstreamError) as caught:
        upstream.choose(None, environment)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert upstream.choose(CN, environment).upstream.origin == CN


@pytest.mark.parametrize(
    ("url", "anthropic", "openai"),
    [
        (CN, "http://127.0.0.1:9/anthropic", "http://127.0.0.1:9/v1"),
        (f"{CODE}/coding", "http://127.0.0.1:9/coding", "http://127.0.0.1:9/coding/v1"),
    ],
)
def test_an_agent_gets_the_three_base_urls(url: str, anthropic: str, openai: str) -> None:
    before = {"HOME": "/h", "OPENAI_BASE_URL": "https://x/v1"}
    after = upstream.child_environment(before, "http://127.0.0.1:9", upstream.parse(url))
    assert after["HOME"] == "/h"
    assert after["ANTHROPIC_BASE_URL"] == anthropic
    assert after["OPENAI_BASE_URL"] == after["KIMI_BASE_URL"] == openai
    assert before["OPENAI_BASE_URL"] == "https://x/v1"


@pytest.mark.parametrize(
    ("before", "upper", "lower"),
    [
        ({}, "127.0.0.1,localhost", "127.0.0.1,localhost"),
        ({"NO_PROXY": "a.b"}, "a.b,127.0.0.1,localhost", "a.b,127.0.0.1,localhost"),
        ({"no_proxy": "a.b, "}, "a.b,127.0.0.1,localhost", "a.b,127.0.0.1,localhost"),
        ({"NO_PROXY": "a", "no_proxy": "b"}, "a,127.0.0.1,localhost", "b,127.0.0.1,localhost"),
        ({"NO_PROXY": "localhost"}, "localhost,127.0.0.1", "localhost,127.0.0.1"),
        ({"NO_PROXY": "*"}, "*", "*"),
    ],
)
def test_no_forward_proxy_stands_before_the_tap(
    before: dict[str, str], upper: str, lower: str
) -> None:
    after = upstream.child_environment(before, "http://127.0.0.1:9", upstream.parse(CN))
    assert (after["NO_PROXY"], after["no_proxy"]) == (upper, lower)
