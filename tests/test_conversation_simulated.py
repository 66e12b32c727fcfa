"""Random clients against the tracker: whatever they do, each pair is logged once, and rightly.

A table of habits, each played with the same seeds; `tests.clients` says what the habits mean.
"""

from collections.abc import Sequence

import pytest

from tests.clients import Clients, Habit

H = Habit
TROUBLE = H.RETRIES | H.DROPS_CALLS | H.COMPACTS | H.REWINDS | H.REMINDERS

PROFILES: dict[str, Habit] = {
    # One agent whose history only grows.
    "calls with few arguments": H.FEW_ARGUMENTS,
    "parallel calls": H.PARALLEL | H.TWO_TOOLS,
    "parallel calls of one id": H.PARALLEL | H.ONE_ID,
    "results in messages of their own": H.PARALLEL | H.SPLIT,
    "results in any order": H.PARALLEL | H.SPLIT | H.SHUFFLED | H.FEW_ARGUMENTS,
    "reminders in old messages": H.PARALLEL | H.REMINDERS,
    # Replies that are lost or dropped.
    "retries, unique arguments": H.RETRIES | H.UNIQUE_ARGUMENTS,
    "retries, equal calls": H.RETRIES,
    "dropped calls, unique arguments": H.DROPS_CALLS | H.UNIQUE_ARGUMENTS,
    "dropped calls, equal calls": H.DROPS_CALLS,
    "dropped calls and retries, equal calls": H.DROPS_CALLS | H.RETRIES,
    # Histories that are cut.
    "compaction, unique arguments": H.COMPACTS | H.UNIQUE_ARGUMENTS,
    "compaction, equal calls": H.COMPACTS,
    "compaction, equal parallel calls": H.COMPACTS | H.PARALLEL | H.EAGER,
    "clearing, unique arguments": H.CLEARS | H.UNIQUE_ARGUMENTS,
    "clearing, equal calls": H.CLEARS,
    "rewinding, unique arguments": H.REWINDS | H.UNIQUE_ARGUMENTS,
    "rewinding, equal calls": H.REWINDS,
    # Several agents in one session.
    "agents, unique arguments": H.AGENTS | H.UNIQUE_ARGUMENTS,
    "agents, equal calls": H.AGENTS,
    "agents that end alike": H.AGENTS | H.UNIQUE_ARGUMENTS | H.TERSE,
    "agents that always call": H.AGENTS | H.EAGER,
    "twins with names": H.AGENTS | H.TWINS | H.NAMED | H.PARALLEL,
    # All of it.
    "everything, unique arguments": TROUBLE | H.AGENTS | H.PARALLEL | H.UNIQUE_ARGUMENTS,
    "everything, unique ids": TROUBLE | H.AGENTS | H.PARALLEL | H.UNIQUE_ARGUMENTS | H.UNIQUE_IDS,
}

SEEDS = (*range(150), 799, 1822, 2337)
"""The last three are those of the first 2,500 that any profile fails with."""

KNOWN: dict[str, set[int]] = {
    # Known failures, left out: whoever repairs one takes its number away here.
    # After two rewinds to the prompt, the third run of it has its result and is logged without.
    "rewinding, unique arguments": {1822},
    "rewinding, equal calls": {1822},
    # Two agents that both dropped their first call, one of them with a reminder in its prompt:
    # what it asks next is taken for the other's.
    "everything, unique arguments": {799, 2337},
    "everything, unique ids": {799, 2337},
}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_pair_is_logged_once_and_rightly(profile: str) -> None:
    seeds = [seed for seed in SEEDS if seed not in KNOWN.get(profile, ())]
    answered = play(PROFILES[profile], seeds)
    assert answered > 2 * len(seeds)  # else the clients did too little to show anything


@pytest.mark.xfail(raises=AssertionError, reason="nothing tells nameless twins from a retry")
def test_twins_without_names() -> None:
    """Agents of one prompt in one session: a reply to one passes for a lost reply to the other."""
    play(H.AGENTS | H.TWINS, SEEDS)


def play(habits: Habit, seeds: Sequence[int]) -> int:
    """Run clients of these habits; how many calls were answered in all."""
    runs = [Clients(habits, seed) for seed in seeds]
    failed = [(run, wrong) for run in runs if (wrong := run.run())]
    if failed:
        run, wrong = min(failed, key=lambda each: len(each[0].story))  # the easiest to understand
        heading = f"{len(failed)} of {len(runs)} runs are wrong; seed {run.seed}:"
        raise AssertionError("\n".join([heading, *wrong, "", *run.story]))
    return sum(run.answered for run in runs)
