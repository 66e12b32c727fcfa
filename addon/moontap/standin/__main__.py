"""`python -m moontap.standin`, `moontap standin`: the stand-in as a process.

In: command-line options. Out: one line on stdout when it listens, and exit code 0 after SIGTERM
or SIGINT, 2 for what cannot be used. It never prints anything else on stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from textwrap import fill

from moontap.serving.tls import DEFAULT_NAME, TLSFiles, make_tls
from moontap.standin.mint import IdForm, Mint
from moontap.standin.script import FaultKind, Script, ScriptError
from moontap.standin.script_yaml import load_script
from moontap.standin.server import Standin

_EPILOG = f"""\
example:
  moontap standin --port 8089 --script steps.yaml --mint response

  where steps.yaml holds
    seed: 7
    steps:
      - text: "I look where I am."
        calls: [{{name: Bash, arguments: {{command: pwd, description: where}}}}]
      - calls: [{{name: Bash, arguments: {{command: ls, description: files}}}}]
    final: "All done."
    pacing: {{first_byte_ms: 100, event_ms: 10}}
    faults: [{{at_request: 2, kind: cut, after_events: 5}}]

  then
    ANTHROPIC_BASE_URL=http://127.0.0.1:8089/anthropic ANTHROPIC_AUTH_TOKEN=any claude
    OPENAI_BASE_URL=http://127.0.0.1:8089/v1 OPENAI_API_KEY=any python my_agent.py

fault kinds:
{fill(", ".join(FaultKind), 90, initial_indent="  ", subsequent_indent="  ")}
Each takes at_request: N (from 1) or always: true. Without --script the model calls a tool named
Bash three times (pwd, ls, date) and is done.
"""


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="A stand-in for the Kimi API on loopback, scripted by a small YAML file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=_port, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--script", type=Path, metavar="FILE.yaml", help="what the model does")
    parser.add_argument(
        "--mint",
        type=Mint,
        choices=tuple(Mint),
        default=Mint.RESPONSE,
        metavar="|".join(Mint),
        help="how ids come about: restarting in every response (the default), counted on from "
        "the calls in the history, or unique",
    )
    parser.add_argument(
        "--id-form",
        type=IdForm,
        choices=tuple(IdForm),
        metavar="|".join(IdForm),
        help="Bash_0 or Bash:0; by default the first on Messages, the second on Chat Completions",
    )
    parser.add_argument("--tls", action="store_true", help="HTTPS, by an authority of its own")
    parser.add_argument(
        "--tls-dir", type=Path, metavar="DIR", help="where its files are; default: a temporary one"
    )
    parser.add_argument(
        "--tls-name", default=DEFAULT_NAME, metavar="HOST", help=f"default: {DEFAULT_NAME}"
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE.jsonl", help="append one JSON line a request"
    )
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


async def _run(options: argparse.Namespace, script: Script | None, tls: TLSFiles | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Standin(
        script,
        mint=options.mint,
        id_form=options.id_form,
        tls=tls,
        log=options.log,
        port=options.port,
        keep_requests=0,
    ) as standin:
        print(f"standin: {standin.base_url}", flush=True)
        if tls:
            print(f"standin: ca {tls.ca}", flush=True)
        await stop.wait()


def _tls(options: argparse.Namespace, stack: ExitStack) -> TLSFiles | None:
    if not options.tls:
        return None
    folder = options.tls_dir or stack.enter_context(
        tempfile.TemporaryDirectory(prefix="moontap-standin-")
    )
    return make_tls(folder, options.tls_name)


def main(arguments: list[str] | None = None, prog: str = "python -m moontap.standin") -> int:
    """Runs until a signal. Exit code 0, or 2 with one line on stderr.

    arguments: default: the process's own. prog: what the help calls it.
    """
    options = _parser(prog).parse_args(arguments)
    try:
        script = load_script(options.script) if options.script else None
        with ExitStack() as stack:
            asyncio.run(_run(options, script, _tls(options, stack)))
    except ScriptError as e:
        print(f"standin: {e}", file=sys.stderr)
        return 2
    except OSError as e:
        if e.errno == errno.EADDRINUSE:
            print(
                f"standin: port {options.port} is in use; --port 0 takes a free one",
                file=sys.stderr,
            )
        else:
            print(f"standin: cannot start: {e}", file=sys.stderr)
        return 2
    except ValueError as e:
        print(f"standin: cannot start: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
