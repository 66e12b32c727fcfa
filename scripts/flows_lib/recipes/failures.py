"""Replies that end badly, and what clients do then: breaks, error events, statuses, retries."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from moontap.standin import Fault, FaultKind, Mint
from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent, Call
from scripts.flows_lib.recipes.plays import NAMED, ROUNDS, asks_once, faulty, standin
from scripts.flows_lib.scene import Play, Recipe, Stage
from tests.upstreams import Reply

GATEWAY = (
    "<html><head><title>504 Gateway Time-out</title></head>"
    "<body><center><h1>504 Gateway Time-out</h1></center></body></html>"
)
DUPLICATED = (
    '{"error":{"message":"tool call id Bash:0 is duplicated","type":"invalid_request_error"}}'
)
MUST_BE_UNIQUE = (
    '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"messages.3.content.0: `tool_use` ids must be unique"}}'
)
UNAUTHORIZED = (
    '{"error":{"message":"Invalid Authentication","type":"invalid_authentication_error"}}'
)


def _retries(path: str, stream: bool = True, *, then: bool | None = None) -> Play:
    """An agent whose second request fails; it sends the same again. then: streamed or not."""

    async def play(stage: Stage) -> None:
        agent = Agent(stage, path, stream=stream, headers=NAMED if path == MESSAGES else None)
        agent.answer(await agent.ask())
        await agent.send()
        again = stream if then is None else then
        calls = agent.hear(await agent.send(again))
        agent.answer(calls)
        await agent.run()

    return play


def _duplicates_then_asks(path: str) -> Play:
    """Two rounds under one id, which upstream refuses at the third request; the tap looks on."""

    async def play(stage: Stage) -> None:
        agent = Agent(stage, path)
        for _ in range(2):
            agent.answer(await agent.ask())
        await agent.ask()

    return play


class Gates:
    """Replies that stop in their middle until told to go on, so that exchanges overlap at will."""

    def __init__(self) -> None:
        self._began: dict[str, asyncio.Event] = {}
        self._open: dict[str, asyncio.Event] = {}

    def reset(self) -> None:
        self._began.clear()
        self._open.clear()

    def body(self, name: str, events: Sequence[bytes]) -> Callable[[], AsyncIterator[bytes]]:
        async def pieces() -> AsyncIterator[bytes]:
            half = len(events) // 2
            for event in events[:half]:
                yield event
            self._event(self._began, name).set()
            await self._event(self._open, name).wait()
            for event in events[half:]:
                yield event

        return pieces

    async def began(self, name: str) -> None:
        await self._event(self._began, name).wait()

    def open(self, name: str) -> None:
        self._event(self._open, name).set()

    @staticmethod
    def _event(events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return events.setdefault(name, asyncio.Event())


_GATES = Gates()
_TURNS = ("alpha 1", "beta 1", "main 1", "alpha 2", "beta 2")


def _helper_reply(number: int, name: str) -> Reply:
    events = shapes.message(number, shapes.tool_block(0, "Bash_0", f"echo {name}"))
    headers = (f"Msh-Request-Id: 5b0e6c1d-77aa-4f0e-9a55-0c1d2e3f4a{number:02d}",)
    return Reply(_GATES.body(name, events), headers=headers)


async def _sub_agents(stage: Stage) -> None:
    """A session's main agent and two helpers, all under way at once, all with `Bash_0`."""
    _GATES.reset()
    agents = {
        name: Agent(stage, MESSAGES, "The same reminder opens them all.", headers=NAMED | more)
        for name, more in (
            ("main", {}),
            ("alpha", {"x-claude-code-agent-id": "a1b2c3"}),
            ("beta", {"x-claude-code-agent-id": "d4e5f6"}),
        )
    }
    asked: dict[str, asyncio.Task[list[Call]]] = {}

    async def begin(turn: str) -> None:
        asked[turn] = asyncio.create_task(agents[turn.split()[0]].ask())
        await _GATES.began(turn)

    async def finish(turn: str) -> None:
        _GATES.open(turn)
        agents[turn.split()[0]].answer(await asked.pop(turn))

    for turn in _TURNS[:3]:
        await begin(turn)
    await finish("beta 1")
    await finish("alpha 1")
    await begin("alpha 2")
    await begin("beta 2")
    for turn in ("main 1", "beta 2", "alpha 2"):
        await finish(turn)
    for name in agents:  # the last replies are the same for all, and come one by one
        await agents[name].ask()


RECIPES = {
    "messages-cut-stream": Recipe(
        standin(faulty(Fault(FaultKind.CUT, at_request=2, after_events=3), rounds=ROUNDS)),
        _retries(MESSAGES),
    ),
    "messages-cut-mid-event": Recipe(
        standin(faulty(Fault(FaultKind.CUT, at_request=2, after_bytes=420), rounds=ROUNDS)),
        _retries(MESSAGES),
    ),
    "chat-cut-stream": Recipe(
        standin(faulty(Fault(FaultKind.CUT, at_request=2, after_events=3), rounds=ROUNDS)),
        _retries(CHAT),
    ),
    "chat-cut-whole": Recipe(
        standin(faulty(Fault(FaultKind.CUT, at_request=2), rounds=ROUNDS)),
        _retries(CHAT, stream=False),
    ),
    "messages-error-event": Recipe(
        standin(
            faulty(
                Fault(FaultKind.ERROR_EVENT, at_request=2, after_events=2, message="Overloaded"),
                rounds=ROUNDS,
            )
        ),
        _retries(MESSAGES),
    ),
    "chat-error-event": Recipe(
        standin(
            faulty(
                Fault(FaultKind.ERROR_EVENT, at_request=2, after_events=4, message="Overloaded"),
                rounds=ROUNDS,
            )
        ),
        _retries(CHAT),
    ),
    "messages-retry": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, at_request=2, status=529), rounds=ROUNDS)),
        _retries(MESSAGES),
    ),
    "chat-retry": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, at_request=2, status=500), rounds=ROUNDS)),
        _retries(CHAT, stream=False),
    ),
    "messages-fallback": Recipe(
        standin(faulty(Fault(FaultKind.CUT, at_request=2, after_events=6), rounds=ROUNDS)),
        _retries(MESSAGES, then=False),
    ),
    "messages-empty-reply": Recipe(
        standin(faulty(Fault(FaultKind.EMPTY, at_request=2), rounds=ROUNDS)), _retries(MESSAGES)
    ),
    "chat-whole-for-stream": Recipe(
        standin(faulty(Fault(FaultKind.WHOLE, at_request=2), rounds=ROUNDS)), _retries(CHAT)
    ),
    "messages-400": Recipe(
        standin(
            faulty(
                Fault(FaultKind.STATUS, at_request=3, status=400, body=MUST_BE_UNIQUE),
                rounds=ROUNDS,
            )
        ),
        _duplicates_then_asks(MESSAGES),
    ),
    "chat-400": Recipe(
        standin(
            faulty(
                Fault(FaultKind.STATUS, at_request=3, status=400, body=DUPLICATED), rounds=ROUNDS
            )
        ),
        _duplicates_then_asks(CHAT),
    ),
    "messages-401": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, status=401, body=UNAUTHORIZED))),
        asks_once(MESSAGES),
    ),
    "chat-401": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, status=401, body=UNAUTHORIZED))),
        asks_once(CHAT, stream=False),
    ),
    "messages-504": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, at_request=2, status=504, body=GATEWAY))),
        _retries(MESSAGES),
    ),
    "chat-504": Recipe(
        standin(
            faulty(Fault(FaultKind.STATUS, at_request=2, status=504, body=GATEWAY)), Mint.UNIQUE
        ),
        _retries(CHAT, stream=False),
    ),
    "messages-sub-agents": Recipe(
        (
            *(_helper_reply(number, turn) for number, turn in enumerate(_TURNS, 1)),
            Reply(
                shapes.said(9), headers=("Msh-Request-Id: 5b0e6c1d-77aa-4f0e-9a55-0c1d2e3f4a09",)
            ),
        ),
        _sub_agents,
    ),
}
