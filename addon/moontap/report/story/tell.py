"""The account of a conversation as lines.

A conversation with its findings in; lines out, as wide as asked for, and about forty at most where
not all is asked for.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence

from moontap.findings.types import Finding, Party, Severity
from moontap.report.story.causes import IDS, Causes, Group, causes
from moontap.report.story.conversation import Account, Figures, Loop
from moontap.report.story.fold import fold, unfolded
from moontap.report.story.guarded import guarded
from moontap.report.story.limits import limits
from moontap.report.story.remedy import Advice, Ran, advice, typed
from moontap.report.story.rows import numbers, words
from moontap.report.story.told import Told
from moontap.report.text import many, plain, short

_GROWING = ("no-progress",)
_EFFECTS = 6
_MESSAGE = 300
_REMEDY = 400
_UNKNOWN = Ran()
_QUOTED = re.compile(r"'[^']*'")
_FIXED = "\u2007"  # a space that textwrap does not know, and that `plain` leaves none of

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


def tell(
    account: Account, title: str, file: str, *, width: int, full: bool = False, ran: Ran = _UNKNOWN
) -> list[str]:
    """The lines. title: what to call the conversation. file: where it is, as a person would type
    it. full: each exchange on its own, and what is only good to know. ran: how the tap ran."""
    found = causes(account.findings)
    lines = [*wrapped(f"{title}: {about(account)}", width)]
    for said in guarded(account):
        lines += wrapped(said, width)
    lines += ["", *_rows(account, found, width, full=full), ""]
    lines += _verdict(account, found, width)
    if full and found.info:
        lines += ["Good to know:", *_groups(account, found.info, width)]
    if unknown := limits(account, typed(account)):
        lines += ["What this does not show:"]
        for one in unknown:
            lines += wrapped(one, width, "  ")
    lines += _try(advice(found, account, file, ran), width)
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
            at.setdefault(_begun(account, finding), []).append(finding.code)

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
    begun = _begun(account, root.first)
    where = f"exchange {begun}"
    if flow := _flow(account, root.first, begun):
        where += f" (flow {short(flow, 40)})"
    yield f"Where it went wrong first: {where}"
    yield from _groups(account, [root], width)
    if found.effects:
        yield "What came of it:"
        yield from _groups(account, found.effects, width)
    if found.others:
        yield "Beside that:"
        yield from _groups(account, found.others, width)
    if sums := figures(account.figures):
        yield from wrapped(f"In figures: {sums}.", width)
    yield from wrapped(f"Most likely: {_who(account, found)}.", width)


def _groups(account: Account, groups: Sequence[Group], width: int) -> Iterator[str]:
    """A line or two for each code: its first finding, or the latest where that says more."""
    for group in groups[:_EFFECTS]:
        where, one, note = str(group.first.exchange), group.first, ""
        if group.code in _GROWING:
            # The latest says how far it got.
            where, one = _span(account, group), group.last
        elif len(group.findings) > 1:
            note = f", {len(group.findings)} times up to exchange {group.last.exchange}"
        tail = f"[{group.code}, {group.worst.value}{note}]"
        yield from wrapped(f"exchange {where}: {_sentence(account, one)} {tail}", width, "  ")
    if (left := len(groups) - _EFFECTS) > 0:
        yield f"  and {left} more kinds; --full shows where"


def _loop(account: Account, finding: Finding) -> Loop | None:
    """The loop that a finding is about, where it is about one."""
    return account.loop(finding.evidence.facts) if finding.code in _GROWING else None


def _begun(account: Account, finding: Finding) -> int:
    """Where a thing began: it is found at the third time, but a loop begins with the first."""
    loop = _loop(account, finding)
    return min(loop.begun, finding.exchange) if loop else finding.exchange


def _flow(account: Account, finding: Finding, begun: int) -> str | None:
    if begun == finding.exchange:
        return finding.flow
    return next((one.flow for one in account.exchanges if one.number == begun), finding.flow)


def _span(account: Account, group: Group) -> str:
    first, last = _begun(account, group.first), group.last.exchange
    if loop := _loop(account, group.last):
        last = max(last, loop.last)
    return str(first) if first == last else f"{first}-{last}"


def _sentence(account: Account, finding: Finding) -> str:
    """What was found. A loop is said to be as long as it was, not as the last threshold."""
    said, loop = finding.message.rstrip("."), _loop(account, finding)
    if loop:
        count = f"{finding.evidence.facts.get('count')} times in a row"
        said = said.replace(count, f"{loop.count} times in a row", 1)
    return short(said, _MESSAGE)


def figures(sums: Figures) -> str:
    """What of a conversation counts, in figures."""
    said = []
    if sums.reused:
        rest = sums.reused - sums.seen
        some = "all" if rest == sums.reused else f"{rest} of them"
        healed = f", {some} made unique by moontap" if rest else ""
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
    if account.stops:
        text = "Nothing else went wrong here that moontap looks for"
    elif not account.findings:
        text = "Nothing went wrong here that moontap looks for"
    else:
        text = "Nothing went wrong here; --full shows what is only good to know"
    said = figures(sums)
    return f"{text}. In figures: {said}." if said else f"{text}."


def _try(advised: Advice | None, width: int) -> Iterator[str]:
    if advised is None:
        return
    remedy = short(advised.text.rstrip("."), _REMEDY)
    yield from wrapped(f"What to try: {remedy}." if remedy else "What to try:", width)
    yield f"    {plain(advised.command)}"


def wrapped(text: str, width: int, head: str = "", *, paths: bool = False) -> list[str]:
    """Lines of a paragraph; those after the first stand under its text. paths: what stands in
    single quotes is one, and stays whole."""
    text = plain(text)
    if paths:
        text = _QUOTED.sub(lambda path: path[0].replace(" ", _FIXED), text)
    lines = textwrap.wrap(
        text,
        max(width, len(head) + 40),
        initial_indent=head,
        subsequent_indent=" " * (len(head) if head else 2),
        break_long_words=False,  # nobody can paste half a path
        break_on_hyphens=False,
    )
    return [line.replace(_FIXED, " ") for line in lines] if paths else lines
