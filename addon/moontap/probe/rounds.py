"""The rounds of one case: a protocol, streamed or whole.

A way to ask in; events to show and a verdict out. It opens nothing and prints nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from moontap.probe.ask import Answer
from moontap.probe.dialect import Body, Dialect, Said
from moontap.probe.refusal import Mask, refused, without_call
from moontap.probe.verdict import Verdict, verdict

type Ask = Callable[[Dialect, Body], Answer]


@dataclass(frozen=True, slots=True)
class Round:
    """One reply. number: from 1."""

    number: int
    message_id: str | None
    ids: tuple[str, ...]


def play(
    dialect: Dialect,
    model: str,
    streamed: bool,
    ask: Ask,
    show: Callable[[Round], None],
    mask: Mask,
) -> Verdict:
    """Two rounds, and a third where they do not settle it. Raises Refusal, and what `ask` does."""
    rounds: list[Round] = []

    def take(body: Body) -> Said:
        answer = ask(dialect, body)
        if not 200 <= answer.status < 300:
            raise refused(answer, mask)
        said = dialect.read(answer.body)
        if refusal := without_call(answer, said, mask):
            raise refusal
        ids = tuple(id_ for id_ in said.ids if id_)
        rounds.append(Round(len(rounds) + 1, said.reply.message_id, ids))
        show(rounds[-1])
        return said

    said = take(dialect.first(model, streamed))
    take(dialect.second(model, streamed, said))
    if found := verdict([one.ids for one in rounds]):
        return found
    take(dialect.compacted(model, streamed))
    found = verdict([one.ids for one in rounds])
    assert found
    return found
