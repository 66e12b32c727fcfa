"""What recipes have in common: scripts for the stand-in, replies by hand, agents that just run.

Few words in, parts of a `Recipe` out.
"""

from collections.abc import Sequence
from typing import Any

from moontap.standin import Call, Conversation, Fault, FaultKind, IdForm, Mint, Pacing, Script, Step
from scripts.flows_lib.agent import Agent
from scripts.flows_lib.scene import Play, Scripts, Stage
from tests.upstreams import JSON, SSE, Reply

SEED = 7
SESSION = "0f3b7a52-9d1e-4c68-8a57-2b6f1d90c4e3"
NAMED = {"x-claude-code-session-id": SESSION}


def bash(command: str) -> Call:
    return Call("Bash", {"command": command})


def step(*commands: str, text: str = "", thinking: str = "") -> Step:
    """A reply of the model with a call for each command."""
    return Step(tuple(map(bash, commands)), text, thinking)


def script(*steps: Step, faults: Sequence[Fault] = (), model: str = "kimi-k3") -> Script:
    """What the stand-in plays; few, long deltas keep the files small."""
    return Script(
        default=Conversation(steps=steps),
        seed=SEED,
        faults=tuple(faults),
        model=model,
        pacing=Pacing(delta_chars=24),
    )


ROUNDS = script(
    step("pwd", text="I look where I am.", thinking="Where am I?"), step("ls"), step("pwd", text="")
)
"""Three rounds with one call each; the first and the last are the same call."""

PARALLEL = script(step("pwd", "ls", "date", text="All at once."), step("pwd"))


def faulty(*kinds: FaultKind | Fault, rounds: Script = PARALLEL) -> Script:
    """The same rounds, with faults at every reply."""
    faults = [kind if isinstance(kind, Fault) else Fault(kind) for kind in kinds]
    return script(*rounds.default.steps, faults=faults, model=rounds.model)


def runs(path: str, **how: Any) -> Play:
    """An agent that runs to its end. how: as `Agent` takes it."""

    async def play(stage: Stage) -> None:
        await Agent(stage, path, **how).run()

    return play


def asks_once(path: str, **how: Any) -> Play:
    """An agent that asks once and does nothing with the answer. how: as `Agent` takes it."""

    async def play(stage: Stage) -> None:
        await Agent(stage, path, **how).ask()

    return play


def standin(rounds: Script, mint: Mint = Mint.RESPONSE, form: IdForm | None = None) -> Scripts:
    return Scripts(rounds, mint, form)


def streamed(events: Sequence[bytes], number: int = 1, **how: Any) -> Reply:
    """A reply by hand, each piece a chunk."""
    return Reply(list(events), SSE, headers=_named(number), **how)


def whole(body: bytes, number: int = 1, **how: Any) -> Reply:
    """A reply by hand that comes at once, with its length."""
    return Reply(body, JSON, headers=_named(number), framing="length", **how)


def _named(number: int) -> tuple[str, ...]:
    return (f"Msh-Request-Id: 5b0e6c1d-77aa-4f0e-9a55-0c1d2e3f4a{number:02d}",)
