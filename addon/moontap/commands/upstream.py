"""Which server stands behind the tap, and what its base URLs become in front of it.

URLs and environment variables in, an `Upstream` and variables for the agent out. Pure: it opens
nothing, and no error repeats a URL's user name, password or query.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

# As in the addon's `moontap_hosts`; not imported from there because that loads all of mitmproxy.
KIMI_HOSTS = ("api.moonshot.cn", "api.moonshot.ai", "api.kimi.com")
DEFAULT = "https://api.moonshot.cn"
KIMI_CODE_HOST, KIMI_CODE_PATH = "api.kimi.com", "/coding"

ANTHROPIC, OPENAI, KIMI = "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "KIMI_BASE_URL"
LOOPBACK = ("127.0.0.1", "localhost")

_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


class UpstreamError(ValueError):
    """A URL that cannot be an upstream; the text is for the person who gave it."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """origin: `scheme://host[:port]`. anthropic, openai: the paths of the two base URLs there."""

    origin: str
    anthropic: str = "/anthropic"
    openai: str = "/v1"


class Choice(NamedTuple):
    """An upstream, and what there is to say about how it was found."""

    upstream: Upstream
    notes: tuple[str, ...] = ()


def parse(url: str) -> Upstream:
    """The upstream that a URL names: bare, or a base URL as a client takes it.

    Raises UpstreamError. Paths are those of wire.md: the Open Platform has `/anthropic` and `/v1`,
    Kimi Code has both protocols under `/coding`.
    """
    parts, origin = _split(url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    bare = path.removesuffix("/anthropic")
    if not bare and parts.hostname == KIMI_CODE_HOST:
        bare = path = KIMI_CODE_PATH
    if not bare:
        return Upstream(origin)
    return Upstream(origin, anthropic=path, openai=f"{bare}/v1")


def choose(given: str | None, environment: Mapping[str, str]) -> Choice:
    """The upstream: what was given, else the Kimi host that the agent is set to, else the default.

    A key of one Kimi host is refused by the others, so the agent's own host is kept.
    Raises UpstreamError where the given URL cannot be one.
    """
    if given is not None:
        return Choice(parse(given))
    chosen: Upstream | None = None
    notes: list[str] = []
    for name in (ANTHROPIC, OPENAI, KIMI):
        if not environment.get(name):
            continue
        try:
            parts, origin = _split(environment[name])
            upstream = parse(environment[name])
        except UpstreamError:
            notes.append(f"{name} is not a URL the tap could go to; give --upstream URL")
            continue
        if parts.hostname not in KIMI_HOSTS:
            # The host alone: what else stands in the variable may be a secret.
            notes.append(f"{name} named {origin}; to have that behind the tap: --upstream {origin}")
        elif chosen is None:
            chosen = upstream
            notes.append(f"upstream {origin}, as {name} says")
        elif chosen.origin != origin:
            notes.append(f"{name} named {origin}, but one tap has one upstream: {chosen.origin}")
    return Choice(chosen or parse(DEFAULT), tuple(notes))


def variables(url: str, upstream: Upstream) -> dict[str, str]:
    """What an agent must have in its environment to go through a tap.

    url: where the tap listens, without a path.
    """
    return {
        ANTHROPIC: url + upstream.anthropic,
        OPENAI: url + upstream.openai,
        KIMI: url + upstream.openai,
    }


def child_environment(
    environment: Mapping[str, str], url: str, upstream: Upstream
) -> dict[str, str]:
    """A whole environment for an agent: the given one, sent through the tap."""
    exempt = {
        name: _with_loopback(environment.get(name) or environment.get(other) or "")
        for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY"))
    }
    return {**environment, **variables(url, upstream), **exempt}


def _split(url: str) -> tuple[SplitResult, str]:
    """A URL's parts and its origin."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UpstreamError("not a URL; write it as https://host or https://host:port") from None
    if parts.scheme not in ("http", "https"):
        raise UpstreamError("a URL begins with https:// or http://, as in https://api.moonshot.cn")
    if "@" in parts.netloc:
        raise UpstreamError("no user name and password in the URL: the agent sends its own key")
    if parts.query or parts.fragment:
        raise UpstreamError("no query and no fragment in the URL")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise UpstreamError("no host in the URL; write it as https://host or https://host:port")
    if port == 0:
        raise UpstreamError("port 0 is not one to connect to")
    return parts, f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _with_loopback(exempt: str) -> str:
    names = [name.strip() for name in exempt.split(",") if name.strip()]
    if "*" in names:
        return exempt
    return ",".join([*names, *(name for name in LOOPBACK if name not in names)])
