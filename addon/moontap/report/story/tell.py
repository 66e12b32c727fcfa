"""The account of a conversation as lines.

A conversation with its findings in; lines out, as wide as asked for, and about forty at most where
not all is asked for.
"""

import textwrap
from collections.abc import Iterator, Sequence

from moontap.findings.types import Finding, Party, Severity
from moontap.report.story.causes import IDS, Causes, Group, causes
from moontap.report.story.conversation import Account, Figures
from moontap.report.story.fold import fold, unfolded
from moontap.report.story.limits import limits
from moontap.report.story.remedy import command, typed
from moontap.report.story.rows import numbers, words
from moontap.report.story.told import Told
from moontap.report.summary import many
from moontap.report.text import plain, short

_GROWING = ("no-progress",)
_EFFECTS = 6
_MESSAGE = 300
_REMEDY = 400

_PARTIES = {
    Party.API: "the model, or the API in front of it",
    Party.CLIENT: "the client (the agent's own code, or what it is built with)",
    Party.SDK_RETRY: "the SDK, which sends a request again by itself",
    Party.NETWORK: "the network, or a proxy on the way",
    Party.TOOL: "a tool",
}
_SAYS_SO = {
    Party.API: "the server says so itself",
    Party.CLIENT: "the server says what in the request it does not take",
}
_WHY = {
    Party.API: "it shows in what the server sent, before the client had any part in it",
    Party.CLIENT: "it shows in what the client sent, and nothing that it had got explains it",
    Party.SDK_RETRY: "the request is the one before, and nobody had decided anything new",
    Party.NETWORK: "the exchange ended before the reply did",
    Party.TOOL: "it shows in what the tool answered",
}


def tell(account: Account, title: str, file: str, *, width: int, full: bool = False) -> list[str]:
    """The lines. title: what to call the conversation. file: where it is, as a person would type
    it. full: each exchange on its own, and what is only good to know."""
    found = causes(account.findings)
    lines = [*wrapped(f"{title}: {about(account)}", width)]
    lines += ["", *_rows(account, found, width, full=full), ""]
    lines += _verdict(account, found, width)
    if full and found.info:
        lines += ["Good to know:", *_groups(found.info, width)]
    if unknown := limits(account, typed(account)):
        lines += ["What this does not show:"]
        for one in unknown:
            lines += wrapped(one, width, "  ")
    lines += _try(account, found, file, width)
    return lines


def about(account: Account) -> str:
    """Who talked to whom, and how much, in a line."""
    who = [short(account.model, 40) or "no model named", account.protocol]
    if account.agent:
        who.append(short(account.agent.split()[0], 40))
    if account.sub:
        who.append(f"sub-agent {short(account.sub, 20)}")
    calls = many(account.figures.calls, "call")
    requests = many(len(account.exchanges), "request")
    return f"session {short(account.session, 44)}; {', '.join(who)}; {requests}, {calls}"


def _rows(account: Account, found: Causes, width: int, *, full: bool) -> Iterator[str]:
    """The exchanges; where something is found for the first time, its code behind."""
    at: dict[int, list[str]] = {}
    seen = set()
    for finding in account.findings:
        if finding.code not in seen and (full or finding.severity is not Severity.INFO):
            seen.add(finding.code)
            at.setdefault(finding.exchange, []).append(finding.code)

    def notable(one: Told) -> bool:
        return one.number in at

    rows = unfolded(account.exchanges) if full else fold(account.exchanges, notable)
    column = max(len(numbers(row)) for row in rows)
    root = found.root.code if found.root else None
    before = None
    for row in rows:
        codes = [code for one in row.exchanges for code in at.get(one.number, ())]
        yield from wrapped(words(row, before), width, f"  {numbers(row):>{column}}  ")
        if codes:
            if root in codes:
                codes.sort(key=lambda code: code != root)
                codes[0] += " (it begins here)"
            yield from wrapped(f"<< {', '.join(codes)}", width, " " * (column + 4))
        before = row if row.cycle else None


def _verdict(account: Account, found: Causes, width: int) -> Iterator[str]:
    root = found.root
    if root is None:
        yield from wrapped(_well(account), width)
        return
    first = root.first
    where = f"exchange {first.exchange}"
    if first.flow:
        where += f" (flow {short(first.flow, 40)})"
    yield f"Where it went wrong first: {where}"
    yield from _groups([root], width)
    if found.effects:
        yield "What came of it:"
        yield from _groups(found.effects, width)
    if found.others:
        yield "Beside that:"
        yield from _groups(found.others, width)
    if sums := figures(account.figures):
        yield from wrapped(f"In figures: {sums}.", width)
    yield from wrapped(f"Most likely: {_who(account, found)}.", width)


def _groups(groups: Sequence[Group], width: int) -> Iterator[str]:
    """A line or two for each code: its first finding, or the latest where that says more."""
    for group in groups[:_EFFECTS]:
        where, one, note = str(group.first.exchange), group.first, ""
        if group.code in _GROWING:
            # The latest says how far it got.
            where, one = _span(group), group.last
        elif len(group.findings) > 1:
            note = f", {len(group.findings)} times up to exchange {group.last.exchange}"
        tail = f"[{group.code}, {group.worst.value}{note}]"
        yield from wrapped(f"exchange {where}: {_sentence(one)} {tail}", width, "  ")
    if (left := len(groups) - _EFFECTS) > 0:
        yield f"  and {left} more kinds; --full shows where"


def _span(group: Group) -> str:
    first, last = group.first.exchange, group.last.exchange
    return str(first) if first == last else f"{first}-{last}"


def _sentence(finding: Finding) -> str:
    return short(finding.message.rstrip("."), _MESSAGE)


def figures(sums: Figures) -> str:
    """What of a conversation counts, in figures."""
    said = []
    if sums.reused:
        rest = sums.reused - sums.seen
        healed = f", {rest} of them made unique by moontap" if rest else ""
        said.append(
            f"{sums.reused} of {many(sums.calls, 'call')} came under an id that the server had "
            f"used before{healed}"
        )
    if sums.dropped:
        pairs = f"{many(sums.dropped, 'pair')} of call and result"
        if sums.repaired:
            requests = many(sums.repaired, "request")
            said.append(f"the client dropped {pairs}, and repaired its history so in {requests}")
        else:
            said.append(f"the history went on without {pairs}: a rewind, or a compaction")
    if sums.lost:
        said.append(f"{many(sums.lost, 'call')} stayed without a result")
    if sums.orphans:
        said.append(f"{many(sums.orphans, 'result')} had no call")
    if sums.empty:
        said.append(f"{many(sums.empty, 'user turn')} said nothing")
    return "; ".join(said)


def _who(account: Account, found: Causes) -> str:
    root = found.root
    assert root is not None
    codes = {group.code for group in (root, *found.effects)}
    if root.code in IDS and "pair-dropped-by-client" in codes and account.figures.reused:
        return (
            f"{_PARTIES[Party.API]}, together with a client that pairs by id. The server gave "
            "different calls the same id; the client kept one of them and dropped the others with "
            "their results, so the model never saw its own work and did it again. Unique ids end "
            "it, whoever makes them"
        )
    why = (_SAYS_SO if root.code == "api-refused" else _WHY).get(root.party, _WHY[root.party])
    return f"{_PARTIES[root.party]}: {why}"


def _well(account: Account) -> str:
    sums = account.figures
    if not account.findings:
        text = "Nothing went wrong here that moontap looks for"
    else:
        text = "Nothing went wrong here; --full shows what is only good to know"
    said = figures(sums)
    return f"{text}. In figures: {said}." if said else f"{text}."


def _try(account: Account, found: Causes, file: str, width: int) -> Iterator[str]:
    text = command(found, account, file)
    if text is None or found.root is None:
        return
    remedy = short(found.root.first.remedy.rstrip("."), _REMEDY)
    yield from wrapped(f"What to try: {remedy}." if remedy else "What to try:", width)
    yield f"    {plain(text)}"


def wrapped(text: str, width: int, head: str = "") -> list[str]:
    """Lines of a paragraph; those after the first stand under its text."""
    return textwrap.wrap(
        plain(text),
        max(width, len(head) + 40),
        initial_indent=head,
        subsequent_indent=" " * (len(head) if head else 2),
        break_on_hyphens=False,
    )
