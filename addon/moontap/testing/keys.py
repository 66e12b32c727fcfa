"""Which key there is to record with, and for which server.

The environment in; a key and an upstream, or the reason why there is none. It never prints a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from moontap.tapping.upstream import ANTHROPIC, OPENAI, Upstream, choose
from moontap.testing.served import Key

KEYS: Mapping[str, str | None] = {
    "MOONSHOT_API_KEY": None,
    "KIMI_API_KEY": None,
    "ANTHROPIC_AUTH_TOKEN": ANTHROPIC,
    "ANTHROPIC_API_KEY": ANTHROPIC,
    "OPENAI_API_KEY": OPENAI,
}
"""Variables with a key, and the one that must name its server. Without that an SDK's key may be for
its vendor, and the default upstream is another's."""

NO_KEY = (
    "--moontap-record needs a key, and nothing was called: set MOONSHOT_API_KEY or KIMI_API_KEY, "
    "ANTHROPIC_AUTH_TOKEN with ANTHROPIC_BASE_URL, or OPENAI_API_KEY with OPENAI_BASE_URL"
)


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and the key for it."""

    upstream: Upstream
    key: Key


def access(environment: Mapping[str, str]) -> Access | None:
    """What to record with; None without a key. Raises UpstreamError."""
    for name, server in KEYS.items():
        if environment.get(name) and (server is None or environment.get(server)):
            return Access(choose(None, environment).upstream, Key(environment[name]))
    return None
