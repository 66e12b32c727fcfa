"""Flows that the stand-in makes by itself: how ids come about, parallel calls, odd replies."""

from moontap.standin import Fault, FaultKind, IdForm, Mint
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent
from scripts.flows_lib.recipes.plays import (
    NAMED,
    PARALLEL,
    ROUNDS,
    faulty,
    runs,
    script,
    standin,
    step,
)
from scripts.flows_lib.scene import Recipe, Stage

FOUR = script(step("pwd"), step("ls"), step("date"), step("whoami"))
COLON, UNDERSCORE = IdForm.COLON, IdForm.UNDERSCORE


async def _compacts_messages(stage: Stage) -> None:
    agent = Agent(stage, MESSAGES, headers=NAMED)
    for _ in range(3):
        agent.answer(await agent.ask())
    # What a compaction leaves: a summary and the last pair.
    summary = {"role": "user", "content": "Summary: the folder was looked at."}
    agent.said = [summary, *agent.said[-2:]]
    agent.answer(await agent.ask())
    await agent.ask()


async def _compacts_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT, stream=False, prompt_cache_key="session-compacted")
    for _ in range(3):
        agent.answer(await agent.ask())
    agent.said = [
        {"role": "user", "content": "Summary: the folder was looked at."},
        *agent.said[-2:],
    ]
    agent.answer(await agent.ask())
    await agent.ask()


async def _rewinds_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT)
    agent.answer(await agent.ask())
    kept = list(agent.said)
    agent.answer(await agent.ask())
    agent.said = [*kept, {"role": "user", "content": "No, go on from here instead."}]
    agent.answer(await agent.ask())
    await agent.ask()


async def _rewinds_messages(stage: Stage) -> None:
    agent = Agent(stage, MESSAGES, stream=False, headers=NAMED)
    agent.answer(await agent.ask())
    kept = list(agent.said)
    await agent.ask()  # interrupted: its call is never answered
    agent.said = [*kept, {"role": "user", "content": "No, go on from here instead."}]
    agent.answer(await agent.ask())
    await agent.ask()


async def _probes_and_lists(stage: Stage) -> None:
    """What agents ask beside their conversation."""
    counted = b'{"model":"kimi-k3","messages":[{"role":"user","content":"Look around."}]}'
    await stage.post(f"{MESSAGES}/count_tokens", counted)
    await Agent(stage, MESSAGES, tools=()).ask()
    await Agent(stage, MESSAGES).run()


RECIPES = {
    "messages-restart-underscore-stream": Recipe(standin(ROUNDS), runs(MESSAGES)),
    "messages-restart-underscore-whole": Recipe(standin(ROUNDS), runs(MESSAGES, stream=False)),
    "messages-restart-colon-stream": Recipe(
        standin(ROUNDS, form=COLON), runs(MESSAGES, headers=NAMED)
    ),
    "messages-restart-looked-on": Recipe(standin(ROUNDS), runs(MESSAGES)),
    "messages-unique-ids": Recipe(standin(ROUNDS, Mint.UNIQUE), runs(MESSAGES)),
    "chat-restart-colon-stream": Recipe(standin(ROUNDS), runs(CHAT)),
    "chat-restart-colon-whole": Recipe(standin(ROUNDS), runs(CHAT, stream=False)),
    "chat-restart-underscore-stream": Recipe(standin(ROUNDS, form=UNDERSCORE), runs(CHAT)),
    "messages-history-compaction-stream": Recipe(standin(FOUR, Mint.HISTORY), _compacts_messages),
    "chat-history-compaction-whole": Recipe(standin(FOUR, Mint.HISTORY), _compacts_chat),
    "chat-history-rewind-stream": Recipe(standin(FOUR, Mint.HISTORY), _rewinds_chat),
    "messages-history-rewind-whole": Recipe(standin(FOUR, Mint.HISTORY), _rewinds_messages),
    "messages-same-id-twice-stream": Recipe(standin(faulty(FaultKind.SAME_ID)), runs(MESSAGES)),
    "messages-same-id-twice-whole": Recipe(
        standin(faulty(FaultKind.SAME_ID)), runs(MESSAGES, stream=False)
    ),
    "chat-same-id-twice-stream": Recipe(standin(faulty(FaultKind.SAME_ID)), runs(CHAT)),
    "chat-same-id-twice-whole": Recipe(
        standin(faulty(FaultKind.SAME_ID)), runs(CHAT, stream=False)
    ),
    "messages-parallel-stream": Recipe(standin(PARALLEL), runs(MESSAGES)),
    "chat-parallel-whole": Recipe(standin(PARALLEL), runs(CHAT, stream=False)),
    "messages-interleaved-stream": Recipe(standin(faulty(FaultKind.INTERLEAVED)), runs(MESSAGES)),
    "chat-interleaved-stream": Recipe(standin(faulty(FaultKind.INTERLEAVED)), runs(CHAT)),
    "chat-several-choices-stream": Recipe(
        standin(faulty(Fault(FaultKind.CHOICES, choices=2))), runs(CHAT)
    ),
    "chat-id-each-fragment": Recipe(standin(faulty(FaultKind.ID_EVERY_FRAGMENT)), runs(CHAT)),
    "chat-id-each-fragment-kept": Recipe(
        standin(faulty(FaultKind.ID_EVERY_FRAGMENT, rounds=ROUNDS)), runs(CHAT)
    ),
    "chat-null-id-continuations": Recipe(
        standin(faulty(FaultKind.NULL_ID_CONTINUATION)), runs(CHAT)
    ),
    "chat-late-id": Recipe(standin(faulty(FaultKind.LATE_ID)), runs(CHAT)),
    "messages-double-stop": Recipe(standin(faulty(FaultKind.DOUBLE_STOP)), runs(MESSAGES)),
    "messages-side-requests": Recipe(standin(ROUNDS), _probes_and_lists),
}
