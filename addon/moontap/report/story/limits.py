"""What the evidence does not hold, and which setting or command would give it.

A conversation and where it comes from in; sentences out, none where nothing is missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from moontap.report.story.conversation import Account
from moontap.report.story.remedy import Ran
from moontap.report.text import many


@dataclass(frozen=True, slots=True)
class Source:
    """Where an account comes from. name: the file as a person would type it. exchanges, paired:
    how many there are, and how many of these are with a model. tapped: the tap recorded it, not a
    mitmproxy without. off: codes that the rules turn off. failed: codes of checks that failed.
    rules: what there is to say of the rules in force. ran: how the tap ran. unread: how many
    exchanges could not be read."""

    name: str
    exchanges: int
    paired: int
    tapped: bool = True
    off: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rules: str = ""
    ran: Ran = field(default_factory=Ran)
    unread: int = 0


def limits(account: Account, typed: str) -> list[str]:
    """Of a conversation. typed: the command that runs its agent behind the tap."""
    return list(_limits(account, typed))


def _limits(account: Account, typed: str) -> Iterator[str]:
    exchanges = account.exchanges
    known = exchanges[0].known
    if known:
        yield (
            f"The first {many(known, 'message')} had been said before the capture began: what the "
            f"server had sent then, and under which ids, is not known. From the start: {typed}"
        )
    if len(exchanges) == 1:
        yield (
            "There is one request only, so what the client did with the reply cannot be told. "
            f"The whole run: {typed}"
        )
    elif account.waiting:
        yield (
            f"It ends with {many(account.waiting, 'call')} whose result is not in it: whether the "
            "client kept them cannot be told. Let the run go on, or end by itself."
        )
    if all(one.none and not one.stopped for one in exchanges):
        yield "No reply was recorded, so everything here is from the requests alone."
    if not account.named and any(one.code == "request-retried" for one in account.findings):
        yield (
            "The client names no session, so a second agent with the same prompt looks like a "
            "retry. metadata.user_id (Messages) or prompt_cache_key (Chat) tells them apart."
        )


def general(source: Source) -> list[str]:
    """Of a whole file."""
    said = [source.rules] if source.rules else []
    if source.paired and not source.tapped:
        said.append(
            "It was recorded without moontap: there are no times of chunks, so whether a stream "
            "stood still cannot be told, nor what the server had sent where something on the way "
            'changed it. With them: mitmdump -s "$(moontap path)", or moontap run'
        )
    if source.off:
        said.append(f"The rules turn off: {', '.join(source.off)} (findings.off).")
    if source.failed:
        said.append(f"These checks failed, which is a fault of moontap: {', '.join(source.failed)}")
    return said
