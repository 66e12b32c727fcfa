"""What to try: one command to paste, for what began it.

The cause and the conversation in; words of a command line out. It runs nothing.
"""

import shlex

from moontap.findings.types import Party
from moontap.report.story.causes import IDS, Causes
from moontap.report.story.conversation import Account
from moontap.report.text import plain

# The beginning of a User-Agent, and what a person types for that agent.
_AGENTS = {
    "claude-cli/": "claude",
    "claude-code/": "claude",
    "kimicli/": "kimi",
    "kimi-cli/": "kimi",
    "anthropic/python": "python agent.py",
    "openai/python": "python agent.py",
    "asyncanthropic/python": "python agent.py",
    "asyncopenai/python": "python agent.py",
    "anthropic/js": "node agent.js",
    "openai/js": "node agent.js",
}


def typed(account: Account, *options: str) -> str:
    """The command that runs the agent behind the tap."""
    name = account.agent.lower()
    command = next((it for start, it in _AGENTS.items() if name.startswith(start)), "COMMAND")
    return " ".join(("moontap run", *options, "--", command))


def command(found: Causes, account: Account, file: str) -> str | None:
    """What to type next; None where nothing went wrong. file: as a person would type it."""
    root = found.root
    if root is None:
        return None
    codes = {group.code for group in (root, *found.effects)}
    if codes & IDS and account.figures.seen:
        return typed(account)  # it makes every id unique
    if root.code == "no-progress":
        return typed(account, "--guard block")
    where = shlex.quote(file)
    if root.party in (Party.API, Party.NETWORK):
        return f"moontap bundle {where}"
    id_ = next((id_ for id_ in root.first.evidence.ids if id_ and plain(id_) == id_), None)
    if id_ and not id_.startswith("-"):
        return f"moontap cut {where} --around {shlex.quote(id_)} --playable --out fault.flow"
    if root.first.flow:
        return f"moontap show {shlex.quote(root.first.flow)} {where}"
    return f"moontap bundle {where}"
