"""What to try: a sentence, and one command to paste, for what began it.

The cause, the conversation and how the tap ran in; words and a command line out. It runs nothing.
"""

import shlex
from dataclasses import dataclass

from moontap.findings.types import Party
from moontap.report.story.causes import IDS, Causes, Group
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

_REWRITING_OFF = (
    "It ran with rewriting off: leave out --rewrite off (mitmdump: --set "
    "moontap_rewrite=all), and each reused id reaches the client under a new name"
)
_TELL_IT = "Tell the model what came of the call and what to try instead"
_GUARD = {
    "block": f"{_TELL_IT}. The guard has stopped it; where it was right to go on, "
    "moontap.guard.release lets it, and the rules set the limit (guard.block, progress.ignore)",
    "remind": f"{_TELL_IT}, or let the guard stop it: reminders alone did not",
}
_STOPPED = (
    "Where it was right to go on, the command moontap.guard.release lets it, and the rules set the "
    "limits (section guard)"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """How the tap ran, as `run.json` has it; "" where that is not known."""

    rewrite: str = ""
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """text: a sentence. command: to paste."""

    text: str
    command: str


def typed(account: Account, *options: str) -> str:
    """The command that runs the agent behind the tap."""
    name = account.agent.lower()
    command = next((it for start, it in _AGENTS.items() if name.startswith(start)), "COMMAND")
    return " ".join(("moontap run", *options, "--", command))


def advice(found: Causes, account: Account, file: str, ran: Ran) -> Advice | None:
    """What to do next; None where nothing went wrong. file: as a person would type it.

    Nothing is advised that was done already: not unique ids where the client had them, nor a
    guard that was there.
    """
    root = found.root
    if root is None:
        stops = account.stops
        return Advice(_STOPPED, _show(stops[0].flow, file)) if stops else None
    codes = {group.code for group in (root, *found.effects)}
    if codes & IDS and account.figures.seen:
        text = _REWRITING_OFF if ran.rewrite == "off" else root.first.remedy
        return Advice(text, typed(account))  # it makes every id unique
    if root.code == "guard-stopped":
        return Advice(root.first.remedy or _STOPPED, _show(root.first.flow, file))
    if root.code == "no-progress":
        return _looping(root, account, file, ran)
    return Advice(root.first.remedy, _look(root, file))


def _looping(root: Group, account: Account, file: str, ran: Ran) -> Advice:
    """Of an agent that gets nowhere though its ids are unique."""
    last = root.last
    text = last.remedy
    if not last.evidence.facts.get("lost"):
        other = f"{_TELL_IT}, or let the guard remind it or stop it"
        text = _GUARD.get("block" if account.stops else ran.guard, other)
    if account.stops or ran.guard == "block":
        return Advice(text, _show(last.flow, file))
    return Advice(text, typed(account, "--guard block"))


def _look(root: Group, file: str) -> str:
    if root.party in (Party.API, Party.NETWORK):
        return f"moontap bundle {file}"
    id_ = next((id_ for id_ in root.first.evidence.ids if id_ and plain(id_) == id_), None)
    if id_ and not id_.startswith("-"):
        return f"moontap cut {file} --around {shlex.quote(id_)} --playable --out fault.flow"
    return _show(root.first.flow, file)


def _show(flow: str | None, file: str) -> str:
    # From the wire: what is no word of the screen cannot be pasted, and a dash makes an option.
    if not flow or flow.startswith("-") or plain(flow) != flow:
        return f"moontap bundle {file}"
    return f"moontap show {shlex.quote(flow)} {file}"
