"""What a person can type in mitmproxy and mitmweb, about the flows they look at.

mitmproxy's commands in; texts, files and marks out. It runs where the traffic does, so that each
does a bounded piece of work, and says what it left out.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import mitmproxy.types
from mitmproxy import command, ctx, exceptions, flow, http

from moontap.capture import metadata
from moontap.capture.pairlog import ended
from moontap.capture.recorder import Recorder, copy_to_save
from moontap.care.outfile import Refused, check, write
from moontap.ids import Mode
from moontap.looking import reading, tables
from moontap.looking.board import Board
from moontap.looking.curl import script
from moontap.looking.cut import cut
from moontap.looking.facts import Facts
from moontap.looking.known import LARGEST, Known, known
from moontap.looking.output import NoFile, Output
from moontap.redact.flow import SECRET_HEADERS, Redactor
from moontap.report.text import many, plain, short
from moontap.rules import Rules
from moontap.wire.protocol import ANTHROPIC

MARK = ":speech_balloon:"
"""On every flow of one conversation, while a person looks at that."""

_MOST_NAMED = 3  # conversations in a filter
_MOST_IN_LOG = 64_000  # bytes of a script that has no file
_MOST_READ = 200_000  # bytes of a script of which there are lines to show
_LONGEST_PATH = 120  # characters of a path in a result
_WIDEST = 2000  # characters of a line of a script that is shown, and not run

_NOWHERE = mitmproxy.types.Path()
_MEANS = {
    Mode.OFF: "ids stay as the model gives them",
    Mode.DUPLICATES: "ids already used in their conversation become unique",
    Mode.ALL: "every id becomes unique",
}


class Commands:
    """A mitmproxy addon of moontap's own. recorder, rules: of the run, as they are when asked."""

    name = "moontap-commands"

    def __init__(
        self, board: Board, recorder: Callable[[], Recorder], rules: Callable[[], Rules]
    ) -> None:
        self._board = board
        self._recorder = recorder
        self._rules = rules
        self._output = Output(recorder)
        # Whether a person had taken our mark away, of the flows that have the conversation's.
        self._bare: WeakKeyDictionary[http.HTTPFlow, bool] = WeakKeyDictionary()

    @command.command("moontap.pairs")  # type: ignore[untyped-decorator]
    def pairs(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """The tool calls of these flows, each with its result: tool, arguments, result, both ids,
        status, how long it took. A star marks an id that was used before. Without flows: of the
        one in focus."""
        chosen = _chosen("pairs", flows)
        seen = self._known(chosen)
        pairs = tables.pairs_of(_in_order(seen, chosen))
        lines = tables.pairs_table(pairs, self._output.columns)
        gist = _whole(tables.pairs_gist(pairs), seen, chosen)
        return self._output.give("pairs", gist, lines)

    @command.command("moontap.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """What went wrong in these flows, the worst first: what was seen, what to do, and where it
        is explained. Without flows: in the one in focus."""
        chosen = _chosen("findings", flows)
        seen = self._known(chosen)
        found = tables.findings_of(_in_order(seen, chosen))
        gist = _whole(tables.findings_gist(found), seen, chosen)
        lines = tables.findings_table(found, self._output.columns)
        more: list[str] = []
        if len(chosen) > 1:
            each, lines = lines, tables.findings_in_short(found, self._output.columns)
            more = ["", "each of them:", *each] if each != lines else []
        return self._output.give("findings", gist, lines, more=more)

    @command.command("moontap.conversation")  # type: ignore[untyped-decorator]
    def conversation(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """Mark every flow of the conversation that these belong to, and say which filter shows
        only them. The same once more takes the marks away. Marks of your own stay. Without flows:
        the conversation of the one in focus."""
        chosen = _chosen("conversation", flows)
        every = _all_flows()
        recorded = self._numbers(every)
        wanted = {recorded[one.id] for one in chosen if one.id in recorded}
        members = [one for one in every if recorded.get(one.id) in wanted]
        by_filter = " | ".join(f"~meta conversation={number};" for number in sorted(wanted))
        if len(wanted) > _MOST_NAMED:
            by_filter = ""
        far = 0
        if not members:  # nobody has recorded them
            seen = self._known(chosen)
            numbers = {id_: facts.conversation for id_, facts in seen.around.items()}
            wanted = {n for one in chosen if (n := numbers.get(one.id)) is not None}
            members = [one for one in every if numbers.get(one.id) in wanted]
            strange = (one for one in every if one.id not in recorded and reading.wire_of(one))
            far = sum(one.id not in numbers for one in strange)
            by_filter = ""
        if not members:
            raise exceptions.CommandError(
                "no conversation is known for it yet: it is once the reply has ended, of requests "
                "that moontap reads"
            )
        said = self._marked(members, len(wanted), by_filter)
        said += f"; {many(far, 'flow')} further off NOT looked at" if far else ""
        return self._output.give("conversation", said, ())

    @command.command("moontap.curl")  # type: ignore[untyped-decorator]
    def curl(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """A shell script that sends the request of this flow once more, as upstream got it, with
        the key as a variable. Without a flow: of the one in focus."""
        chosen = _chosen("curl", flows)
        if len(chosen) > 1:
            raise exceptions.CommandError(f"moontap.curl takes one flow, not {len(chosen)}")
        one, wire = chosen[0], reading.wire_of(chosen[0])
        rules = self._rules()
        clean = copy_to_save(one)
        _forget_reply(clean)
        Redactor(rules).redact(clean)
        try:
            made = script(
                one.request,
                clean.request,
                secret_headers=SECRET_HEADERS.union(map(str.lower, rules.redact.headers)),
                anthropic=wire is ANTHROPIC or "anthropic-version" in one.request.headers,
                streamed=_is_streamed(one),
            )
        except ValueError as error:
            raise exceptions.CommandError(f"moontap.curl: {error}") from None
        text = made.text[:_MOST_READ].decode("utf-8", "backslashreplace")
        lines = text.removesuffix("\n").split("\n")
        said = [f"set {name}" for name in made.variables]
        said += ["secrets in its body are * now"] if made.masked else []
        method = clean.request.method
        asked = short(clean.request.path.partition("?")[0], _LONGEST_PATH)
        gist = "; ".join([f"{method} {asked}", *said])
        if not self._output.keeps and len(made.text) > _MOST_IN_LOG:
            raise exceptions.CommandError(
                f"moontap.curl: the script has {len(made.text):,} bytes, too many to show, and "
                "there is no folder for a file: set moontap_dir when you start"
            )
        if self._output.keeps:
            lines = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…" for line in lines[:60]]
        try:
            return self._output.give(
                "curl", gist, lines, whole=made.text, suffix=".sh", where="run it: bash {word}"
            )
        except NoFile as error:
            raise exceptions.CommandError(plain(f"moontap.curl: {error}")) from None

    @command.command("moontap.cut")  # type: ignore[untyped-decorator]
    def cut(
        self, flows: Sequence[flow.Flow] = (), path: mitmproxy.types.Path = _NOWHERE
    ) -> Sequence[str]:
        """Save these flows without secrets, session ids and what the rules name under `scrub:`, as
        `moontap scrub` does, to be shared. Without a path: in the run's folder. No file is ever
        replaced."""
        chosen = sorted(_chosen("cut", flows), key=lambda one: ended(one) or 0)
        whole = [one for one in chosen if not _is_under_way(one)]
        if not whole:
            raise exceptions.CommandError("moontap.cut: the exchange has not ended yet")
        try:
            out = Path(path) if path else self._output.name("cut", ".flow")
        except OSError as error:
            raise exceptions.CommandError(plain(f"moontap.cut: {error}")) from None
        if out is None:
            raise exceptions.CommandError(
                "moontap.cut: moontap_dir is empty, so say where: moontap.cut @focus /tmp/cut.flow"
            )
        try:
            check(out, force=False)  # before the work
            made = cut(whole, self._rules())
            write(out, made.pieces, force=False)
            out = out.absolute()
        except (Refused, ValueError, OSError) as error:
            said = str(error).replace(": --force replaces it", ", and is not replaced")
            raise exceptions.CommandError(plain(f"moontap.cut: {said}")) from None
        left = len(chosen) - len(whole)
        gist = made.gist + (f"; {left} still under way left out" if left else "")
        return self._output.give("cut", gist, (), path=out)

    @command.command("moontap.rewrite")  # type: ignore[untyped-decorator]
    def rewrite(self, mode: str = "") -> Sequence[str]:
        """Make tool-call ids unique, from the next request on: `off`, `duplicates` (ids already
        used in their conversation) or `all`. Without a word it says what is set."""
        words = ", ".join(Mode)
        if not mode:
            now = Mode(ctx.options.moontap_rewrite)
            return self._output.give("rewrite", f"{now}: {_MEANS[now]}; there are: {words}", ())
        try:
            wanted = Mode(mode)
        except ValueError:
            raise exceptions.CommandError(
                f"moontap.rewrite: {mode!r} is not one of {words}"
            ) from None
        ctx.options.update(moontap_rewrite=wanted.value)
        said = f"{wanted}, from the next request on: {_MEANS[wanted]}"
        return self._output.give("rewrite", f"{said}; replies under way go on as they began", ())

    def _known(self, chosen: Sequence[http.HTTPFlow]) -> Known:
        return known(self._board, self._rules(), chosen, _all_flows())

    def _numbers(self, flows: Sequence[http.HTTPFlow]) -> dict[str, int]:
        """The conversations of flows, of those that are known, by the flow's id."""
        facts = ((one.id, self._board.facts(one)) for one in flows)
        return {id_: it.conversation for id_, it in facts if it and it.conversation is not None}

    def _marked(self, members: Sequence[http.HTTPFlow], count: int, by_filter: str) -> str:
        """Set the marks, or take them away where there are some; what was done."""
        set_ = not any(one.marked == MARK for one in members)
        changed = list[http.HTTPFlow]()
        for one in members:
            ours = metadata.noted(one.metadata)[1]
            if set_ and one.marked in ("", ours):
                self._bare[one] = not one.marked and bool(ours)
                one.marked = one.metadata[metadata.MARKED] = MARK
                changed.append(one)
            elif not set_ and one.marked == MARK:
                one.marked = "" if self._bare.pop(one, False) else ours
                one.metadata.pop(metadata.MARKED, None)
                changed.append(one)
        self._board.tell(changed)
        of = "one conversation" if count == 1 else f"{count} conversations"
        if not set_:
            return f"the marks of {of} are gone from {many(len(changed), 'flow')}"
        kept = len(members) - len(changed)
        said = f"{many(len(members), 'flow')} of {of}"
        said += f", {kept} with a mark of your own, which stays" if kept else ""
        shown = " or ".join(filter(None, (by_filter, "~marker speech")))
        return f"{said}; the filter that shows only these: {shown}"


def _chosen(about: str, flows: Sequence[flow.Flow]) -> list[http.HTTPFlow]:
    """The flows to look at. Raises CommandError, with what to type, where there are none."""
    focused = flows == ()  # mitmproxy hands a list over, for a filter that matches nothing as well
    if focused:
        flows = ctx.master.commands.call("view.flows.resolve", "@focus")
    chosen = [one for one in flows if isinstance(one, http.HTTPFlow)]
    if chosen:
        return chosen
    if flows:
        raise exceptions.CommandError("moontap reads HTTP flows, and these are none")
    # What fits the console's status line comes first.
    what = "no flow is in focus" if focused else "no flow matches"
    raise exceptions.CommandError(
        f"{what}: moontap.{about} @shown, or with a filter, moontap.{about} '~meta tool=Bash'"
    )


def _all_flows() -> list[http.HTTPFlow]:
    flows = ctx.master.commands.call("view.flows.resolve", "@all")
    return [one for one in flows if isinstance(one, http.HTTPFlow)]


def _in_order(seen: Known, chosen: Sequence[http.HTTPFlow]) -> list[Facts]:
    return [seen.of[one.id] for one in chosen if one.id in seen.of]


def _whole(gist: str, seen: Known, chosen: Sequence[http.HTTPFlow]) -> str:
    """The gist, with what it does not cover."""
    others = len(chosen) - len(seen.of) - seen.unread - seen.large
    said = [f"{gist} in {many(len(chosen), 'flow')}"]
    said += [f"{others} of them moontap does not read"] if others else []
    said += [f"{seen.unread} NOT looked at, give fewer"] if seen.unread else []
    large = f"{seen.large} NOT looked at, larger than {LARGEST / 1e6:.0f} MB: see `moontap explain`"
    said += [large] if seen.large else []
    return ", ".join(said)


def _is_streamed(one: http.HTTPFlow) -> bool:
    if one.response and "event-stream" in one.response.headers.get("content-type", ""):
        return True
    try:
        return reading.request_of(one).request.stream
    except ValueError:
        return False


def _forget_reply(copy: http.HTTPFlow) -> None:
    """Of a copy of which only the request is wanted; the reply's headers may tell of secrets."""
    copy.metadata, copy.websocket = {}, None
    if copy.response:
        copy.response.raw_content = b""


def _is_under_way(one: http.HTTPFlow) -> bool:
    over = one.error or (one.response and one.response.timestamp_end)
    return bool(one.live) and not over
