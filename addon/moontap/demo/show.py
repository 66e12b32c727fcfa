"""What the demo puts on the screen.

A folder for the captures in; lines and a table on stdout and an exit code out: 1 where the two
rounds did not go as claimed.
"""

import logging
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from moontap.commands.options import shown
from moontap.commands.programs import typed
from moontap.demo import agent, task
from moontap.demo.rounds import HOST, Outcome, Stage, play, wanting
from moontap.report.pairs import pairs_table
from moontap.report.text import plain, short
from moontap.standin import Standin, make_tls
from moontap.tapping.tap import TapError

_WIDE = 150


async def show(directory: str) -> int:
    """Play both rounds; the exit code."""
    console = _console()
    console.print(
        "moontap demo: a small agent, the real mitmproxy with the moontap addon, and a\n"
        f"stand-in for {HOST} over TLS. No network; all that follows is\n"
        "measured as it runs.\n\n"
        "The model names a call after its place in the reply, so the same id comes back.\n"
        "Agents that pair calls and results by id keep the first, and the model asks\n"
        "again.\n"
    )
    console.print(Text(f'The task: "{task.QUESTION}"', style="bold"))
    # The servers have things to say about their start and end; what fails shows in the result.
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory(prefix="moontap-demo-") as temporary:
        home = Path(temporary)
        tls = make_tls(home / "tls", HOST)
        try:
            async with Standin(task.SCRIPT, mint="response", tls=tls) as standin:
                stage = Stage(standin, tls, directory, str(home / "mitmproxy"))
                _heading(
                    console, "1. Without rewriting: ids reach the agent as the model made them"
                )
                off = await play("off", stage, lambda turn: _turn(console, turn))
                _verdict(console, off)
                _heading(console, "2. With rewriting: every call gets an id of its own")
                on = await play("all", stage, lambda turn: _turn(console, turn))
                _verdict(console, on)
        except (TapError, OSError) as error:
            console.print(Text(f"The demo could not run: {error}", style="red"))
            return 1
    console.print()
    title = "The pairs of round 2, as logged (*: id used before)"
    console.print(pairs_table(on.lines, title, console.width))
    return _ending(console, off, on)


def _turn(console: Console, turn: agent.Turn) -> None:
    if not turn.calls:
        console.print(Text(f"  turn {turn.number}  the model answers: {plain(turn.text)}"))
    for call in turn.calls:
        line = Text(f"  turn {turn.number}  {call.tool:<10} {short(call.arguments, 24):<22} ")
        line.append(call.id, "yellow" if call.lost else "green")
        if call.lost:
            line.append("  LOST: id seen before", "yellow")
        console.print(line)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _verdict(console: Console, outcome: Outcome) -> None:
    counts = outcome.counts
    done = "DONE" if outcome.done else f"CUT OFF after {len(outcome.turns)} turns"
    console.print(
        Text(
            f"  {done}: {counts.calls} calls, {counts.pairs} pairs, {counts.unanswered} lost, "
            f"{counts.rewritten} rewritten, {outcome.seconds:.1f} s",
            style="bold green" if outcome.done else "bold yellow",
        )
    )


def _ending(console: Console, off: Outcome, on: Outcome) -> int:
    missing = wanting(off, on)
    for text in missing:
        console.print(Text(f"NOT AS CLAIMED: {text}", style="bold red"))
    if not (off.capture and on.capture):
        return 1
    flow = shown(on.capture / "traffic.flow")
    moontap = typed("moontap")
    rows = (
        ("captures, without", f"{shown(off.capture)}/"),
        ("          with", f"{shown(on.capture)}/"),
        ("          in each", "traffic.flow, pairs.jsonl, findings.jsonl, run.json"),
        ("what went wrong", f"{moontap} explain {shown(off.capture)}"),
        ("your agent", f"{moontap} run -- claude"),
        ("the tap alone", f"{moontap} proxy --web"),
        ("look at the traffic", f"{moontap} look {shown(on.capture)}"),
        ("log it once more", f'{typed("mitmdump")} -nr {flow} -s "$({moontap} path)"'),
    )
    console.print()
    for name, what in rows:
        console.print(Text(f"{name:<20} {what}"), soft_wrap=True)
    return 1 if missing else 0


def _console() -> Console:
    """A terminal as it is; what is no terminal has no width, so the table gets what it needs."""
    console = Console(highlight=False, markup=False, emoji=False)
    return (
        console
        if console.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=_WIDE)
    )
