"""When the guard reminds or refuses, and what lets a conversation go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from moontap.guard.guard import Asked, Guard
from moontap.guard.types import Decision, Guarding, Refusal, Reminder
from moontap.identity import Identity
from moontap.rules import Guard as GuardRules
from moontap.rules import ProgressRules, Rules, ToolRules
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from moontap.wire.types import Reply
from tests.findings.rig import (
    answered,
    call,
    called,
    completion,
    message,
    result,
    said,
    text,
    use,
    user,
)
from tests.samples import dump

BLOCK, REMIND = Guarding.BLOCK, Guarding.REMIND
NAMED = Identity("s", None)


@dataclass
class Client:
    """An agent behind the guard. history: what it sends. drops: it loses every call, as clients do
    whose ids come back."""

    guard: Guard
    guarding: Guarding = BLOCK
    wire: Wire = ANTHROPIC
    identity: Identity = NAMED
    drops: bool = False
    history: list[Any] = field(default_factory=lambda: [user("go")])
    now: float = 1000.0
    numbers: Any = field(default_factory=count)
    flow: str = ""

    def ask(self, retry: int | None = None) -> Decision:
        """Send the history as it is."""
        self.flow = f"{self.identity.agent or 'flow'}-{next(self.numbers)}"
        body = dump({"model": "kimi-k3", "messages": self.history})
        request = self.wire.read_request(body)
        asked = Asked(
            self.flow, self.wire.protocol, self.identity, request, self.now, len(body), retry
        )
        return self.guard.ask(asked, self.guarding)

    def get(self, reply: dict[str, Any] | None) -> None:
        """Its reply ends."""
        read = self.wire.reader().whole(dump(reply)) if reply else None
        self.guard.heard(self.flow, read, 200)

    def turn(self, tool: str = "Bash", answer: str = "x", **arguments: Any) -> Decision:
        """Ask; where nothing forbids it, get a call and go on with its result."""
        decision = self.ask()
        if isinstance(decision, Refusal):
            self.get(None)
            return decision
        if self.wire is OPENAI:
            made = call("Bash:0", tool, json.dumps(arguments))
            self.get(completion(called(made)))
            self.history += [called(made), answered("Bash:0", answer)]
        else:
            block = use(f"{tool}_0" if self.drops else f"{tool}_{self.flow}", tool, **arguments)
            self.get(message(block))
            if self.drops:
                self.history += [said("(no content)"), user("(no content)")]
            else:
                self.history += [said(block), user(result(block["id"], answer))]
        return decision

    def turns(self, number: int) -> list[Decision]:
        return [self.turn(command="ls") for _ in range(number)]


def client(guarding: Guarding = BLOCK, rules: Rules | None = None, **more: Any) -> Client:
    return Client(Guard(rules or Rules(), lambda text: text), guarding, **more)


def stopped_at(decisions: Sequence[Decision]) -> int | None:
    """How many calls had been made when the first was refused."""
    return next((n for n, one in enumerate(decisions) if isinstance(one, Refusal)), None)


KINDS: dict[str, dict[str, Any]] = {
    "messages": {},
    "chat": {"wire": OPENAI},
    "dropped": {"drops": True},
    "nameless": {"identity": Identity(None, None)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_refuses_past_the_limit(kind: str) -> None:
    agent = client(**KINDS[kind])
    decisions = agent.turns(14)
    assert stopped_at(decisions) == 12
    refused = decisions[12]
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.count) == ("blocked_no_progress", 12)
    assert refused.facts == {
        "tool": "Bash",
        "tools": ["Bash"],
        "count": 12,
        "limit": 12,
        "first_exchange": "flow-0",
        "last_exchange": "flow-11",
    }
    assert decisions[13] == refused


@pytest.mark.parametrize("kind", KINDS)
def test_it_reminds_at_each_threshold_once(kind: str) -> None:
    agent = client(REMIND, **KINDS[kind])
    decisions = agent.turns(20)
    reminders = {n: one for n, one in enumerate(decisions) if isinstance(one, Reminder)}
    assert [(n, one.count) for n, one in reminders.items()] == [(3, 3), (5, 5), (8, 8)]
    assert all('Bash with {"command":' in one.text for one in reminders.values())
    assert len({one.text for one in reminders.values()}) == 3


@pytest.mark.parametrize("guarding", [Guarding.OFF, Guarding.WARN])
def test_else_it_does_nothing(guarding: Guarding) -> None:
    assert client(guarding).turns(20) == [None] * 20
    assert not guarding.acts


def test_a_retry_gets_what_the_first_one_got() -> None:
    agent = client(REMIND)
    agent.turns(3)
    first = agent.ask()
    assert isinstance(first, Reminder)
    agent.get(None)
    for retry in (None, 1, 2):
        again = agent.ask(retry)
        assert isinstance(again, Reminder)
        assert (again.text, again.again) == (first.text, True)
        agent.get(None)
    assert agent.turn(command="ls") is not None  # at last it is answered
    assert agent.turn(command="ls") is None


def test_the_limit_of_a_class() -> None:
    tools = ToolRules({"pay": ("charge_*",), "write": ("Write",)})
    for tool, limit in (("charge_card", 3), ("Write", 8), ("Read", 12)):
        agent = client(rules=Rules(tools=tools))
        assert stopped_at([agent.turn(tool, n=1) for _ in range(15)]) == limit


def test_a_cycle_has_the_lowest_limit_of_its_tools() -> None:
    rules = Rules(tools=ToolRules({"pay": ("charge",)}))
    agent = client(rules=rules)
    decisions = [agent.turn(("Read", "charge")[n % 2]) for n in range(12)]
    assert stopped_at(decisions) == 6
    refused = decisions[6]
    assert isinstance(refused, Refusal)
    assert (refused.count, refused.facts["limit"]) == (3, 3)
    assert sorted(refused.facts["tools"]) == ["Read", "charge"]


def progress(agent: Client) -> list[Decision]:
    return [agent.turn(answer=str(n)) for n in range(20)]


def other_arguments(agent: Client) -> list[Decision]:
    return [agent.turn(n=n) for n in range(20)]


def exempt(agent: Client) -> list[Decision]:
    return [agent.turn("$web_search") for _ in range(20)]


def a_person_between(agent: Client) -> list[Decision]:
    decisions = []
    for n in range(20):
        decisions.append(agent.turn())
        if n % 6 == 5:
            agent.history += [said("hm"), user(f"and now? {n}")]
    return decisions


@pytest.mark.parametrize("work", [progress, other_arguments, exempt, a_person_between])
def test_what_is_no_loop_goes_on(work: Callable[[Client], list[Decision]]) -> None:
    assert stopped_at(work(client())) is None


def new_message(agent: Client) -> None:
    agent.history.append(user("try pwd"))


def words_behind_the_result(agent: Client) -> None:
    agent.history[-1]["content"].append(text("try pwd"))


def another_result(agent: Client) -> None:
    agent.history[-1]["content"][0]["content"] = "y"


def other_arguments_in_the_history(agent: Client) -> None:
    agent.history[-2]["content"][0]["input"] = {"command": "pwd"}


def another_call(agent: Client) -> None:
    agent.history[-2:] = [said(use("Read_0", "Read")), user(result("Read_0", "z"))]


def a_rewind(agent: Client) -> None:
    del agent.history[-6:]


def release(agent: Client) -> None:
    assert agent.guard.release() == 1


def release_by_flow(agent: Client) -> None:
    assert agent.guard.release([agent.flow, "unknown"]) == 1


LIFTS = [
    *(new_message, words_behind_the_result, another_result, other_arguments_in_the_history),
    *(another_call, a_rewind, release, release_by_flow),
]


@pytest.mark.parametrize("lift", LIFTS)
def test_what_lifts_it(lift: Callable[[Client], None]) -> None:
    agent = client()
    assert stopped_at(agent.turns(13)) == 12
    lift(agent)
    assert stopped_at(agent.turns(20)) in (11, 12)  # it counts anew


def nothing(agent: Client) -> None:
    pass


def a_reminder_of_the_clients_own(agent: Client) -> None:
    agent.history[-1]["content"].append(text("<system-reminder>\nthe date\n</system-reminder>"))


def a_cache_mark(agent: Client) -> None:
    agent.history[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}


def a_release_of_others(agent: Client) -> None:
    assert agent.guard.release(["unknown"]) == 0


@pytest.mark.parametrize(
    "change", [nothing, a_reminder_of_the_clients_own, a_cache_mark, a_release_of_others]
)
def test_what_does_not_lift_it(change: Callable[[Client], None]) -> None:
    agent = client()
    agent.turns(13)
    for _ in range(3):
        change(agent)
        assert isinstance(agent.turn(), Refusal)


def test_conversations_are_apart() -> None:
    """One agent of a session is stopped, its sibling is not."""
    guard = Guard(Rules(), lambda text: text)
    looping = Client(guard, identity=Identity("s", "one"))
    working = Client(guard, identity=Identity("s", "two"))
    for n in range(13):
        looping.turn()
        assert working.turn(n=n) is None
    assert isinstance(looping.turn(), Refusal)
    assert working.turn(n=13) is None


def test_it_joins_a_loop_under_way() -> None:
    agent = client()
    for n in range(12):
        agent.history += [said(use(f"Bash_{n}")), user(result(f"Bash_{n}"))]
    assert isinstance(agent.turn(), Refusal)


def test_what_does_not_count_is_ignored() -> None:
    ignoring = client(rules=Rules(progress=ProgressRules(exempt=frozenset({"Bash"}))))
    assert stopped_at(ignoring.turns(20)) is None


LIMITS: list[tuple[GuardRules, str, float, int]] = [
    (GuardRules(calls=4), "calls", 4, 4),
    (GuardRules(tokens=50), "tokens", 50, 5),
    (GuardRules(minutes=1), "minutes", 1, 6),
]


@pytest.mark.parametrize(("rules", "what", "used", "at"), LIMITS)
def test_the_limits_of_a_session(rules: GuardRules, what: str, used: float, at: int) -> None:
    guard = Guard(Rules(guard=rules), lambda text: text)
    agents = [Client(guard, identity=Identity("s", name)) for name in ("one", "two")]
    other = Client(guard, identity=Identity("t", None))
    decisions = []
    for n in range(8):
        agent = agents[n % 2]  # two agents of one session
        agent.now = 1000.0 + 10 * n
        decision = agent.ask()
        decisions.append(decision)
        usage = {"input_tokens": 8, "output_tokens": 2}
        block = use(f"Bash_{n}", n=n)
        agent.get(None if decision else {**message(block), "usage": usage})
        agent.history += [said(block), user(result(f"Bash_{n}", str(n)))]
    assert stopped_at(decisions) == at
    refused = decisions[at]
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.count) == ("blocked_limit", None)
    assert (refused.facts["limit"], refused.facts["used"]) == (what, used)
    assert (refused.facts["first_exchange"], other.ask()) == ("one-0", None)
    assert guard.release([agents[0].flow]) == 1
    assert agents[0].ask() is None


@pytest.mark.parametrize("guarding", [REMIND, BLOCK])
@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI])
def test_an_opening_that_is_sampled_is_left_alone(guarding: Guarding, wire: Wire) -> None:
    agent = client(guarding, wire=wire)
    for _ in range(15):
        assert agent.turn() is None
        del agent.history[1:]
    assert stopped_at(agent.turns(13)) == (12 if guarding is BLOCK else None)


def test_a_second_run_with_equal_ids_is_counted() -> None:
    """Its requests are the bytes of the first one's."""
    guard = Guard(Rules(), lambda text: text)
    for _ in range(2):
        agent = Client(guard, wire=OPENAI, identity=Identity(None, None))
        decisions = [agent.turn() for _ in range(11)]
        assert stopped_at(decisions) is None
    assert stopped_at([agent.turn() for _ in range(2)]) == 1


def beside(agent: Client, words: str) -> list[Decision]:
    decisions = []
    for _ in range(14):
        decisions.append(agent.turn())
        if not isinstance(decisions[-1], Refusal):
            agent.history[-1]["content"].append(text(words))
    return decisions


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("I mended it; again, please", None),
        ("<system-reminder>the date</system-reminder>", 12),
        ("(no content)", 12),
    ],
)
def test_a_person_is_heard_beside_results(words: str, at: int | None) -> None:
    assert stopped_at(beside(client(), words)) == at


def test_many_calls_side_by_side_are_one_decision() -> None:
    agent = client()
    decisions = []
    for number in range(13):
        decisions.append(agent.ask())
        if decisions[-1]:
            break
        uses = [use(f"{tool}-{number}", tool) for tool in "abcdef"][:: -1 if number % 2 else 1]
        agent.get(message(*uses))
        agent.history += [said(*uses), user(*(result(one["id"]) for one in uses))]
    assert stopped_at(decisions) == 12


def test_a_reminder_that_found_no_place_goes_with_the_next_request() -> None:
    agent = client(REMIND)
    agent.turns(3)
    for _ in range(2):
        assert isinstance(agent.ask(), Reminder)
        agent.guard.undone(agent.flow)
        agent.get(None)
    assert isinstance(agent.turn(command="ls"), Reminder)
    assert agent.turn(command="ls") is None
    agent.guard.undone("unknown")


def test_the_last_reminder_says_so_to_the_person() -> None:
    reminders = [one for one in client(REMIND).turns(12) if isinstance(one, Reminder)]
    ended = ["nothing stops the agent" in one.said for one in reminders]
    assert ended == [False, False, True]


@pytest.mark.parametrize(
    ("more", "says"),
    [({"drops": True}, "something new"), ({}, "something new")],
)
def test_what_it_advises_fits_how_it_runs(more: dict[str, Any], says: str) -> None:
    for commands in (False, True):
        guard = Guard(Rules(), lambda text: text, lambda c=commands: c)  # type: ignore[misc]
        refused = Client(guard, **more).turns(13)[12]
        assert isinstance(refused, Refusal)
        assert says in refused.message
        assert ("moontap.guard.release" in refused.message) is commands


def test_where_ids_come_back_the_cure_comes_first() -> None:
    agent = client(drops=True)
    block = use("Bash_0", command="ls")
    agent.history += [said(block), user(result("Bash_0"))]
    refused = agent.turns(13)[12]
    assert isinstance(refused, Refusal)
    cure = refused.message.index("without `--rewrite off`")
    assert cure < refused.message.index("something new")


def test_limits_need_block() -> None:
    agent = client(REMIND, Rules(guard=GuardRules(calls=1)))
    assert [agent.turn(n=n) for n in range(3)] == [None] * 3


def test_runs_without_a_name_do_not_share_a_limit() -> None:
    """Two runs of one program begin with the same words; they are two sessions."""
    guard = Guard(Rules(guard=GuardRules(calls=3)), lambda text: text)
    for words in ("first", "second"):
        agent = Client(guard, identity=Identity(None, None))
        agent.history = [user(words)]
        assert stopped_at([agent.turn(n=n) for n in range(5)]) == 3


def test_what_was_never_asked_is_passed_over() -> None:
    Guard(Rules(), lambda text: text).heard("unknown", Reply(), 200)
