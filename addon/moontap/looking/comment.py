"""An exchange in a few words, for the column of comments in mitmproxy's flow list.

Facts in, one line and a mark out. Pure. mitmweb shows about 18 characters unless the column is
widened, so what a person looks for comes first: what it called, then what went wrong with that.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from moontap.findings.types import Severity
from moontap.looking.facts import CallFact, Facts
from moontap.report.text import lasted, many, plain, short

ERROR_MARK, WARNING_MARK = ":red_circle:", ":yellow_circle:"

_TOOLS = 3  # named; the rest is counted
_NAME = 28
_CODES = 2
# How a reply ends when all is well: said of a text, where it is all there is to say.
_USUAL = (None, "tool_use", "tool_calls", "function_call", "end_turn", "stop", "stop_sequence")
# What the words before say already.
_SAID: dict[str, Callable[[Facts], bool]] = {
    "api-refused": lambda facts: bool(_error(facts)),
    "stream-error": lambda facts: bool(facts.error),
    "stream-cut": lambda facts: bool(_ending(facts)),
    "reply-empty": lambda facts: not facts.calls,
    "guard-stopped": lambda facts: bool(facts.blocked),
    "guard-reminded": lambda facts: facts.reminded,
}


def comment_of(facts: Facts) -> str:
    """Such as `Bash ×2 · 1 id rewritten`; see the table in tests/looking/test_comment.py."""
    return " · ".join(filter(None, _parts(facts)))


def mark_of(facts: Facts) -> str:
    """By the worst thing that was found; `""` for nothing, and for what is but good to know."""
    worst = {severity for severity, _ in facts.ranked()}
    if Severity.ERROR in worst:
        return ERROR_MARK
    return WARNING_MARK if Severity.WARNING in worst else ""


def tools_of(calls: Sequence[CallFact]) -> str:
    """Such as `Bash ×2, Read`, in the order in which they were first called."""
    counts = Counter(call.tool for call in calls)
    said = (
        _name(tool) + (f" ×{count}" if count > 1 else "")
        for tool, count in islice(counts.items(), _TOOLS)
    )
    more = len(counts) - _TOOLS
    return ", ".join(said) + (f" + {more} more" if more > 0 else "")


def _parts(facts: Facts) -> Iterator[str]:
    tools = tools_of(facts.calls)
    if facts.blocked:
        reason = facts.blocked.removeprefix("blocked_").replace("_", " ")
        yield f"blocked: {short(reason, _NAME)}"
        return
    if facts.asked:
        yield "waiting for the reply"
        return
    if facts.coming:
        return
    if facts.streaming:
        yield f"streaming: {tools}" if tools else "streaming"
        yield _error(facts)
        return
    if facts.reminded:
        yield "reminded"
    ending, error = _ending(facts), _error(facts)
    yield ending
    yield error
    yield tools or ("" if ending or error else _text(facts))
    yield from _trouble(facts)
    yield _answered(facts)
    if facts.stop not in _USUAL and tools:
        yield short(facts.stop, _NAME)
    if facts.rewritten:
        cured = f", {facts.cured} reused" if facts.cured else ""
        yield f"{many(facts.rewritten, 'id')} rewritten{cured}"
    if facts.healed:
        yield f"{many(facts.healed, 'old id')} rewritten"


def _name(tool: str) -> str:
    """MCP's names begin with the server's: `mcp__github__create_issue`."""
    _, _, last = tool.rpartition("__") if tool.startswith("mcp__") else ("", "", tool)
    return short(last or tool, _NAME) or "a call"


def _ending(facts: Facts) -> str:
    if facts.left:
        return "client left"
    if facts.killed:
        return "killed"
    if facts.cut:
        return "broke off" if facts.status else "no reply"
    return "not finished" if facts.unfinished else ""


def _error(facts: Facts) -> str:
    if facts.error:
        return short(facts.error, 2 * _NAME)
    return f"HTTP {facts.status}" if facts.status >= 400 else ""


def _text(facts: Facts) -> str:
    said = "empty" if any(one.code == "reply-empty" for one in facts.findings) else "only text"
    return f"{said} · {short(facts.stop, _NAME)}" if facts.stop else said


def _trouble(facts: Facts) -> Iterator[str]:
    """What went wrong: first with its calls, then what was found in it."""
    lost, of = facts.answered("unanswered"), len(facts.calls)
    if lost:
        yield "unanswered" if of == 1 else f"{lost} unanswered"
    codes = [
        code
        for severity, code in facts.ranked()
        if severity != Severity.INFO and not (code in _SAID and _SAID[code](facts))
    ]
    if facts.orphans and "result-orphan" not in codes:
        yield f"{many(len(facts.orphans), 'result')} without a call"
    yield from map(plain, codes[:_CODES])
    if len(codes) > _CODES:
        yield f"{len(codes) - _CODES} more"


def _answered(facts: Facts) -> str:
    """When all are, how long it took; while some wait, how many are."""
    got, failed, of = facts.answered("ok", "error"), facts.answered("error"), len(facts.calls)
    if facts.answered("unanswered"):
        return ""
    if not got:
        return "no result yet" if of and not facts.cut else ""
    if got < of:
        return f"{got} of {of} answered"
    times = [call.latency_s for call in facts.calls if call.latency_s is not None]
    took = f" in {lasted(max(times))}" if times else ""
    if failed == of:
        return f"failed{took}"
    return f"answered{took}" + (f", {failed} failed" if failed else "")
