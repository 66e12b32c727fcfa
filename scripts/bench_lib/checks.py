"""What the checks of the diagnosis cost, in conversations of 10, 100 and 1,000 turns.

Two mitmdumps with the addon, one of them with every check switched off; and, in this process, one
turn's reading and judging apart. Rows come out.
"""

import json
import time
from pathlib import Path
from typing import Any

from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture.pairlog import PairLog
from moontap.capture.turns import turn_of
from moontap.findings.judge import Judge
from moontap.rules import Rules

from .payload import Conversation
from .procfs import settled_cpu_ns
from .rig import UNCHECKED, Lane, rig, rounds
from .sections import CHECKED
from .stats import Measure

TURNS = {10: 50_000, 100: 530_000, 1_000: 5_300_000}
"""Turns, and the size of a request that holds as many, by `payload.Conversation`."""

_READING, _CHECKS = "reading", "checks"


def checks(addon: Path, number: int) -> list[Measure]:
    """number: of rounds."""
    with rig(addon, (UNCHECKED, CHECKED)) as lanes:
        rows = [_behind_a_proxy(lanes, turns, size, number) for turns, size in TURNS.items()]
    return rows + _one_turn(number)


def _behind_a_proxy(lanes: list[Lane], turns: int, size: int, number: int) -> Measure:
    exchanges = max(2, 60 // max(1, turns // 10))

    def sample(lane: Lane) -> dict[str, float]:
        before = settled_cpu_ns(lane.pid)
        for _ in range(exchanges):
            lane.turn(size)
        return {"": (settled_cpu_ns(lane.pid) - before) / exchanges / 1e6}

    rounds(lanes, 1, sample)
    found = rounds(lanes, 2 * number, sample)[""]
    name = f"CPU an exchange, {turns:,} turns"
    return Measure("checks", name, "ms", found, 1.10, (CHECKED,))


def _one_turn(number: int) -> list[Measure]:
    """A turn that goes on with the one before: reading and pairing it, and the checks on top."""
    rows = []
    for turns, size in TURNS.items():
        samples: dict[str, list[float]] = {_READING: [], _CHECKS: []}
        log, judge, rules = PairLog(), Judge(Rules()), Rules()
        conversation = Conversation(size)
        for at in range(3 * number + 2):
            flow = _flow(conversation.body(), at)
            conversation.answer(f"toolu_{at}")
            started = time.perf_counter_ns()
            logged = log.exchange(flow)
            assert logged
            read = time.perf_counter_ns()
            judge.look(turn_of(logged, at + 1, rules))
            ended = time.perf_counter_ns()
            if at >= 2:
                samples[_READING].append((read - started) / 1e6)
                samples[_CHECKS].append((ended - read) / 1e6)
        rows.append(Measure("checks", f"one turn of {turns:,}", "ms", samples))
    return rows


def _flow(body: bytes, number: int) -> http.HTTPFlow:
    flow = tflow.tflow(resp=True)
    flow.request = http.Request.make("POST", "https://api.moonshot.cn/anthropic/v1/messages", body)
    flow.response = http.Response.make(200, _reply(number), {"content-type": "text/event-stream"})
    return flow


def _reply(number: int) -> bytes:
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"command":"ls"}'}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": f"msg_{number}", "content": []}},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "a "},
            }
            for _ in range(50)
        ),
        {"type": "content_block_start", "index": 1, "content_block": use},
        {"type": "content_block_delta", "index": 1, "delta": delta},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json.dumps(event).encode())
        for event in events
    )
