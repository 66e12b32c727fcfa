"""Random clients of one tap, with the truth about their calls.

Habits and a seed go in; agents talk to a model in random turns, and each exchange that ends goes to
a `Tracker`. Out comes what its pairs say that is not so. Knows nothing of how the tracker works.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from random import Random
from typing import NamedTuple

from moontap.conversation import Tracker
from moontap.lineage import Outcome, Status, Tracked
from moontap.wire.types import Call, Message, Result

STRANGER = 0
"""The origin of calls that the tracker thinks no reply delivered; real calls count from 1."""


class Habit(Flag):
    """What clients do, and the model with them.

    With none of them one agent calls one tool, at most once a reply and without arguments, and
    sends its history grown by one step: by K3's naming all its calls are `A_0`.
    """

    # The calls.
    TWO_TOOLS = auto()
    ONE_ID = auto()  # also for all the calls of one reply
    UNIQUE_IDS = auto()
    FEW_ARGUMENTS = auto()  # one of two, so that they repeat
    UNIQUE_ARGUMENTS = auto()
    PARALLEL = auto()  # up to three calls a reply
    EAGER = auto()  # no reply without a call

    # How results are sent.
    SPLIT = auto()  # one message for each, as Chat Completions has it
    SHUFFLED = auto()
    REMINDERS = auto()  # a text added to a message sent before

    # What clients do when something goes wrong, or a history grows too long.
    RETRIES = auto()  # the reply, or the end of it, does not reach the client
    DROPS_CALLS = auto()  # goes on as though the reply had said nothing
    COMPACTS = auto()  # a summary, with the latest messages behind it
    CLEARS = auto()  # a summary, and nothing else
    REWINDS = auto()

    # Several agents.
    AGENTS = auto()  # two or three in one session, their requests at the same time
    NAMED = auto()  # each says which one it is
    TWINS = auto()  # all have the same prompt
    TERSE = auto()  # all end their turns in the same words


class _Made(NamedTuple):
    """A call as the model made it. number: what it is known by here, and nowhere else."""

    number: int
    call: Call


@dataclass(slots=True)
class _Fate:
    """What became of a call.

    result: its content, from when a request that held it ended. excused: it may be left out of the
    log, because the client went on as though it had not been. replaced: it has to be left out,
    because its reply was lost and a retry brought other calls.
    """

    result: bytes | None = None
    excused: bool = False
    replaced: bool = False


@dataclass(slots=True)
class _Agent:
    """reply: the calls of the reply under way, None between requests. lost: those of the replies
    to the same request that were lost before."""

    name: str
    session: str
    history: list[Message]
    reply: list[_Made] | None = None
    lost: list[_Made] = field(default_factory=list)


@dataclass
class Clients:
    """The clients of one run. story: what they did, for the reader of a failure."""

    habits: Habit
    seed: int
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._tracker = Tracker[int]()
        self._fates: dict[int, _Fate] = {}
        self._owners: dict[bytes, _Fate] = {}  # by the result's content: no two results are alike
        self._log: list[Outcome[int]] = []

    @property
    def answered(self) -> int:
        """How many calls had their result sent."""
        return sum(fate.result is not None for fate in self._fates.values())

    def run(self) -> list[str]:
        """All of a run; returns what is wrong with its pairs."""
        count = self._random.randint(2, 3) if Habit.AGENTS in self.habits else 1
        agents = [self._agent(number) for number in range(count)]
        for _ in range(self._random.randint(2, 13)):
            agent = self._random.choice(agents)
            if agent.reply is None:
                agent.reply = self._calls()
                self._tell(agent, "asks", agent.reply)
                if self._does(Habit.AGENTS, 0.5):
                    continue
            self._end(agent, agent.reply)
        for agent in agents:
            if agent.reply is not None:
                self._end(agent, agent.reply)
        self._log += self._tracker.close()
        return self._wrong()

    def _does(self, habit: Habit, chance: float) -> bool:
        return habit in self.habits and self._random.random() < chance

    def _tell(self, agent: _Agent, what: str, made: Sequence[_Made] = ()) -> None:
        numbers = "".join(f" #{number}" for number, _ in made)
        self.story.append(f"{agent.name}@{len(agent.history)} {what}{numbers}")

    def _agent(self, number: int) -> _Agent:
        name = f"agent{number}"
        prompt = "go" if Habit.TWINS in self.habits else f"task {number}"
        return _Agent(name, name if Habit.NAMED in self.habits else "session", [_user(prompt)])

    def _calls(self) -> list[_Made]:
        """The calls of the next reply."""
        counts = [0, 1, 1, 1, 2, 3] if Habit.PARALLEL in self.habits else [0, 1, 1, 1]
        count = max(self._random.choice(counts), Habit.EAGER in self.habits)
        return [self._call(block) for block in range(count)]

    def _call(self, block: int) -> _Made:
        number = len(self._fates) + 1
        self._fates[number] = _Fate()
        tool = self._random.choice("AB") if Habit.TWO_TOOLS in self.habits else "A"
        suffix = block
        if Habit.UNIQUE_IDS in self.habits:
            suffix = number
        elif Habit.ONE_ID in self.habits:
            suffix = 0
        arguments = {}
        if Habit.UNIQUE_ARGUMENTS in self.habits:
            arguments = {"n": number}
        elif Habit.FEW_ARGUMENTS in self.habits:
            arguments = {"n": self._random.randint(0, 1)}
        return _Made(number, Call(f"{tool}_{suffix}", tool, json.dumps(arguments).encode(), block))

    def _end(self, agent: _Agent, made: list[_Made]) -> None:
        """The reply ends, and the agent does something with it."""
        agent.reply = None
        if self._does(Habit.RETRIES, 0.2):
            self._lose(agent, made)
            return
        self._exchange(agent, made)
        agent.lost.clear()
        if not made:
            self._finish_turn(agent)
        elif self._does(Habit.DROPS_CALLS, 0.2):
            self._tell(agent, "drops", made)
            agent.history = [*agent.history, _assistant("(no content)"), _user("(no content)")]
        else:
            self._answer(agent, made)
            self._revise(agent)

    def _exchange(self, agent: _Agent, made: Sequence[_Made]) -> None:
        self._tell(agent, "gets", made)
        delivered = [Tracked(call.id, call.name, call.arguments, n) for n, call in made]
        outcomes = self._tracker.exchange(
            agent.session, agent.history, delivered, STRANGER
        ).outcomes
        self._log += outcomes
        for number, _ in agent.lost if made else ():
            self._fates[number].replaced = True
        for content in _results(agent.history):
            self._owners[content].result = content

    def _lose(self, agent: _Agent, made: Sequence[_Made]) -> None:
        """The client makes nothing of the reply, and its next request is the same again."""
        for number, _ in made:
            self._fates[number].excused = True
        self._tell(agent, "loses", made)
        self._exchange(agent, made if self._random.random() < 0.6 else made[:1])
        agent.lost += made

    def _finish_turn(self, agent: _Agent) -> None:
        mark = "" if Habit.TERSE in self.habits else f" {self._random.randint(0, 99)}"
        agent.history = [*agent.history, _assistant(f"done{mark}"), _user(f"next{mark}")]

    def _answer(self, agent: _Agent, made: Sequence[_Made]) -> None:
        says = "" if self._random.random() < 0.7 else "thinking"
        results: list[Result] = []
        for number, call in made:
            content = f'"result {number}"'.encode()
            self._owners[content] = self._fates[number]
            results.append(Result(call.id, content, False, len(results)))
        if Habit.SHUFFLED in self.habits:
            self._random.shuffle(results)
        history = [*agent.history, _assistant(says, *(call for _, call in made))]
        if Habit.SPLIT in self.habits:
            history += [Message("tool", (), (result,), "") for result in results]
        else:
            history.append(_user("reminder" if self._random.random() < 0.3 else "", *results))
        agent.history = history

    def _revise(self, agent: _Agent) -> None:
        """What clients do to a history before they send it again."""
        if self._does(Habit.REMINDERS, 0.4):
            self._remind(agent)
        if self._does(Habit.COMPACTS, 0.15) and len(agent.history) > 4:
            keep = self._random.choice([2, 4])
            # Not between a call and its result: no API takes a result without its call.
            keep += agent.history[-keep].role != "assistant"
            self._replace(agent, "compacts", [self._summary(), *agent.history[-keep:]])
        if self._does(Habit.CLEARS, 0.1) and len(agent.history) > 4:
            self._replace(agent, "clears", [self._summary()])
        if self._does(Habit.REWINDS, 0.15) and len(agent.history) > 3:
            self._rewind(agent)

    def _remind(self, agent: _Agent) -> None:
        at = self._random.randrange(len(agent.history))
        old = agent.history[at]
        if old.role == "user" and old.text:
            agent.history[at] = _user(f"{old.text} <reminder>", *old.results)
            self._tell(agent, f"adds a reminder to message {at}")

    def _summary(self) -> Message:
        return _user(f"summary {self._random.randint(0, 999)}")

    def _rewind(self, agent: _Agent) -> None:
        ends = [at + 1 for at, message in enumerate(agent.history) if message.role == "user"]
        history = agent.history[: self._random.choice(ends)]
        if self._random.random() < 0.5:
            history.append(_user(f"instead {self._random.randint(0, 99)}"))
        self._replace(agent, "rewinds", history)

    def _replace(self, agent: _Agent, how: str, history: list[Message]) -> None:
        for content in _results(agent.history) - _results(history):
            self._owners[content].excused = True  # matters only if it was never sent
        self._tell(agent, f"{how} to {len(history)}")
        agent.history = history

    def _wrong(self) -> list[str]:
        """What the log says that is not so, and what it does not say.

        A call whose result was sent is logged once, with that result; another one as unanswered,
        once, or not at all where that is excused, or due.
        """
        wrong = []
        logged: dict[int, Outcome[int]] = {}
        for outcome in self._log:
            content = outcome.result and outcome.result.content
            if outcome.call is None:
                wrong.append(f"orphan: {content!r}")
            elif outcome.call.origin == STRANGER:
                wrong.append(f"not known again: {outcome.call.id} with {content!r}")
            elif outcome.call.origin in logged:
                wrong.append(f"#{outcome.call.origin} twice")
            else:
                logged[outcome.call.origin] = outcome
        for number, fate in self._fates.items():
            due = (Status.OK if fate.result else Status.UNANSWERED, fate.result)
            if number in logged:
                result = logged[number].result
                got = (logged[number].status, result and result.content)
                if fate.replaced:
                    wrong.append(f"#{number} is {got}, though it was replaced")
                elif got != due:
                    wrong.append(f"#{number} is {got}, not {due}")
            elif fate.result or not fate.excused:
                wrong.append(f"#{number} is missing, not {due}")
        return wrong


def _user(text: str, *results: Result) -> Message:
    return Message("user", (), results, text)


def _assistant(text: str, *calls: Call) -> Message:
    return Message("assistant", calls, (), text)


def _results(history: Sequence[Message]) -> set[bytes]:
    """The contents of a history's results."""
    return {result.content for message in history for result in message.results}
