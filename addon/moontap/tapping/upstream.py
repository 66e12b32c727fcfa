"""Which server stands behind the tap, and what its base URLs become in front of it.

URLs and environment variables in, an `Upstream` and variables for the agent out. Pure: it opens
nothing, and no error repeats a URL's user name, password or query.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    """The upstream: what was given, else what the agent's own variables name, else the default.

    The agent's key goes where the tap goes, so a server that its person has named is kept, Kimi's
    or not, and of two nothing is guessed. Raises UpstreamError.
    """
    if given is not None:
        try:
            return Choice(parse(given))
        except UpstreamError as error:
            raise UpstreamError(f"--upstream: {error}") from None
    named: dict[str, Upstream] = {}
    for name in (ANTHROPIC, OPENAI, KIMI):
        if url := environment.get(name):
            try:
                named[name] = base(name, url)
            except UpstreamError as error:
                raise UpstreamError(f"{name}: {error}; or give --upstream URL") from None
    if not named:
        return Choice(parse(DEFAULT))
    first, *others = named.values()
    if any(other.origin != first.origin for other in others):
        said = ", ".join(f"{name} names {one.origin}" for name, one in named.items())
        raise UpstreamError(f"{said}, but one tap has one upstream: say which, with --upstream URL")
    chosen = Upstream(
        first.origin,
        anthropic=named.get(ANTHROPIC, first).anthropic,
        openai=named.get(OPENAI, named.get(KIMI, first)).openai,
    )
    return Choice(chosen, (f"upstream {first.origin}, as {next(iter(named))} says",))


def base(name: str, url: str) -> Upstream:
    """What a variable names; raises UpstreamError.

    Behind a host that is not Kimi's its own path is taken as it is: a
    gateway may have the Messages API at its root.
    """
    parts, _ = _split(url)
    named, path = parse(url), parts.path.rstrip("/")
    if parts.hostname in KIMI_HOSTS:
        return named
    return replace(named, anthropic=path) if name == ANTHROPIC else replace(named, openai=path)


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
