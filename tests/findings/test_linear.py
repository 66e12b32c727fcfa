"""One exchange of thousands of calls or results costs its length, not the square of it.

The proxy's connections all stand still while an exchange is looked at. Before, the slower ones of
these took from 20 s to minutes. Cost is counted in lines of Python that are run, not in time, which
depends on what else a machine does; what C code does within a line is not seen.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import moontap
from moontap.capture.diagnosis import Diagnosis, Looked
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    completion,
    flows,
    message,
    result,
    said,
    text,
    use,
    user,
)

GO = user("go")
OK = message(text("ok"))
DONE = completion({"role": "assistant", "content": "ok"})
MARK = "<|tool_call_begin|>"


def choice(n: int, part: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": n, **part, "finish_reason": "tool_calls"}]}


def finished(n: int, id_: str | None = None) -> dict[str, Any]:
    entry = {"index": n, "id": id_ or f"c{n}", "function": {"name": "pwd", "arguments": "{}"}}
    return choice(0, {"delta": {"tool_calls": [entry]}})


def both(first: list[Any], second: list[Any], *rest: Any) -> list[Ex]:
    return [Ex([GO], message(*first)), Ex([GO, said(*second), *rest], OK)]


def cases(count: int) -> dict[str, list[Ex]]:
    """What there may be very many of, so many times."""
    numbers = range(count)
    calls = [use(f"c{n}", a=n) for n in numbers]
    others = [use(f"c{n}", a=n + 1) for n in numbers]
    same = [use("c", a=n) for n in numbers]
    equal = [use("c") for _ in numbers]
    pairs = [use(f"c{n // 2}", a=n) for n in numbers]
    results = [result(f"c{n}") for n in numbers]
    chat = [call(f"c{n}") for n in numbers]
    broken = [call(f"c{n}", arguments="{x") for n in numbers]
    tools = [answered(f"c{n}") for n in numbers]
    return {
        "answered": both(calls, calls, user(*results)),
        "results apart": both(calls, calls, *[user(one) for one in results]),
        "arguments changed": both(calls, others, user(*results)),
        "one id": both(same, same, user(*[result("c")] * count)),
        "equal": both(equal, equal, user(*[result("c", f"{n}") for n in numbers])),
        "each id twice, unanswered": both(pairs, pairs, user("go on")),
        "dropped": both(calls, [text("hm")], user("(no content)")),
        "dropped, results kept": both(calls, [text("hm")], user(*results)),
        "orphans": [Ex([GO, said("x"), user(*results)], OK)],
        "orphans apart": [Ex([GO, *[m for one in results for m in (said("x"), user(one))]], OK)],
        "answered again": [
            Ex([GO, said(use("c")), user(*[result("c", f"{n}") for n in numbers])], OK)
        ],
        "results before calls": [Ex([GO, user(*results), said(*calls)], OK)],
        "a history that nobody answers": [
            Ex([GO, said(*calls), user("x")], OK),
            Ex([GO, said(*calls), user("x"), GO], OK),
        ],
        "the same calls after a compaction": [
            Ex([GO, said(*equal), user(*[result("c", f"{n}") for n in numbers])], OK),
            Ex([user("sum"), said(*equal), user(*[result("c", f"{n}") for n in numbers])], OK),
        ],
        "all ids again": [Ex([GO], message(*calls)), Ex([GO], message(*calls, id_="msg_2"))],
        "two replies, the first one used": [
            Ex([GO], message(*calls)),
            Ex([GO], message(*others, id_="msg_2")),
            Ex([GO, said(*calls), user(*results)], OK),
        ],
        "no ids": [
            Ex([GO], message(*[use(None) for _ in numbers])),
            Ex([GO, said(*[use(None)] * count)], OK),
        ],
        "chat": [
            Ex([GO], completion(called(*chat)), chat=True),
            Ex([GO, called(*chat), *tools], DONE, chat=True),
        ],
        "arguments broken": [
            Ex([GO], completion(called(*broken)), chat=True),
            Ex([GO, called(*broken), *tools], DONE, chat=True),
        ],
        "choices": [
            Ex(
                [GO],
                chunks(*[choice(n, {"delta": called(chat[n])}) for n in numbers]),
                chat=True,
            )
        ],
        "the stop reason with each call": [
            Ex([GO], chunks(*[finished(n) for n in numbers]), chat=True)
        ],
        "other ids for one call": [
            Ex([GO], chunks(*[finished(0, f"c{n}") for n in numbers]), chat=True)
        ],
        "markup in each choice": [
            Ex(
                [user("x" * 1000)],
                chunks(*[choice(n, {"delta": {"content": f"{MARK}{n}"}}) for n in numbers]),
                chat=True,
            )
        ],
        "reminders that nothing closes": [Ex([user("<system-reminder>" * count)], OK)],
    }


def lines_of(run: Callable[[], object]) -> int:
    """How many lines of moontap's own are run."""
    own, ran = str(Path(moontap.__file__).parent), 0

    def line(code: Any, number: int) -> object:
        nonlocal ran
        if not code.co_filename.startswith(own):
            return sys.monitoring.DISABLE
        ran += 1
        return None

    watch = sys.monitoring
    watch.use_tool_id(watch.PROFILER_ID, "lines")
    try:
        watch.register_callback(watch.PROFILER_ID, watch.events.LINE, line)
        watch.set_events(watch.PROFILER_ID, watch.events.LINE)
        run()
    finally:
        watch.set_events(watch.PROFILER_ID, 0)
        watch.free_tool_id(watch.PROFILER_ID)
    return ran


def cost(exchanges: list[Ex]) -> int:
    """Of pairing and judging them, in lines."""
    made, diagnosis = flows(*exchanges), Diagnosis()
    looked: list[Looked] = []
    ran = lines_of(lambda: looked.extend(map(diagnosis.flow, made)))
    assert not diagnosis.judge.faults
    assert not any(one.unread for one in looked)
    codes = [finding.code for one in looked for finding in one.findings]
    assert all(codes.count(code) <= 100 * len(looked) for code in codes)
    return ran


SMALL, LARGE = cases(150), cases(600)


@pytest.mark.parametrize("name", SMALL)
def test_cost_is_linear(name: str) -> None:
    assert cost(LARGE[name]) < 5 * cost(SMALL[name])  # four times as much; its square were sixteen
