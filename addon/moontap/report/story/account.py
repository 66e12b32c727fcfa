"""The account of a file: its conversations, those with trouble first and in full.

Conversations in, lines out.
"""

from collections.abc import Iterator, Mapping

from moontap.report.story.causes import causes
from moontap.report.story.conversation import Account
from moontap.report.story.limits import Source, general
from moontap.report.story.tell import about, tell, wrapped
from moontap.report.text import many, plain

TOLD, LISTED = 4, 12
"""Conversations that are told, and those that are but named, where not all is asked for."""


def account(
    source: Source, accounts: Mapping[int, Account], *, width: int, full: bool = False
) -> list[str]:
    """The lines. accounts: by number, as they are to be called. full: tell all of all of them."""
    return list(_account(source, accounts, width, full))


def _account(
    source: Source, accounts: Mapping[int, Account], width: int, full: bool
) -> Iterator[str]:
    troubled = [number for number, one in accounts.items() if one.troubled]
    yield from wrapped(_head(source, accounts, len(troubled)), width, paths=True)
    for line in general(source):
        yield from wrapped(line, width, "  ", paths=True)
    told = list(accounts) if full or len(accounts) == 1 else troubled[:TOLD]
    for number in told:
        yield ""
        title = f"Conversation {number}" if len(accounts) > 1 else "The conversation"
        yield from tell(
            accounts[number], title, source.name, width=width, full=full, ran=source.ran
        )
    rest = [number for number in accounts if number not in told]
    rest.sort(key=lambda number: not accounts[number].troubled)
    if rest:
        yield ""
        yield "The other conversations:" if told else "The conversations:"
        for number in rest[:LISTED]:
            one = accounts[number]
            yield from wrapped(f"{about(one)}; {_outcome(one)}", width, f"  {number}: ")
        more = f"and {len(rest) - LISTED} more; " if len(rest) > LISTED else ""
        yield f"  {more}--full tells each of them"


def _head(source: Source, accounts: Mapping[int, Account], troubled: int) -> str:
    if not source.exchanges:
        return f"{plain(source.name)}: there is no HTTP exchange in it"
    if not source.paired and source.unread:
        return (
            f"{plain(source.name)}: {many(source.exchanges, 'exchange')}, none with a model that "
            f"could be read; {source.unread} could not"
        )
    if not source.paired:
        return (
            f"{plain(source.name)}: none of {many(source.exchanges, 'exchange')} is with a model "
            "in a protocol that is read (POST to …/v1/messages or …/chat/completions). Does the "
            "agent talk to another host? moontap_hosts names those that are tapped"
        )
    nothing = "nothing went wrong" + (" in the others" if source.unread else "")
    wrong = f"something went wrong in {troubled}" if troubled else nothing
    if stopped := sum(bool(one.stops) for one in accounts.values()):
        wrong = f"moontap stopped {stopped}, {wrong}"
    said = [
        many(source.exchanges, "exchange"),
        *([f"{source.paired} with a model"] if source.paired < source.exchanges else []),
        *([f"{source.unread} not read"] if source.unread else []),
        many(len(accounts), "conversation"),
        wrong if len(accounts) > 1 or not troubled else _alone(stopped > 0),
    ]
    return f"{plain(source.name)}: {', '.join(said)}"


def _alone(stopped: bool) -> str:
    return "moontap stopped it" if stopped else "something went wrong"


def _outcome(one: Account) -> str:
    found = causes(one.findings)
    if found.root is None:
        return "moontap stopped it" if one.stops else "nothing went wrong"
    codes = [group.code for group in (found.root, *found.effects, *found.others)]
    return f"{', '.join(codes[:4])}" + (f" and {len(codes) - 4} more" if len(codes) > 4 else "")
