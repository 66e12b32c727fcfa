"""mitmweb as a process with the addon, and a Chromium that looks at it as a person does.

Commands in, what the page shows out. Every wait is bounded; nothing here says what is right.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from playwright.sync_api import Locator, Page, Request, WebSocket, sync_playwright

from tests.e2e import rig

COLUMNS = ("index", "path", "comment", "status", "size", "time")
WIDE = (1600, 1000)
NARROW = (900, 700)
BARS = ("Display Event Log", "Display Command Bar")


def chromium() -> Path:
    """The browser; without one the test is skipped, or fails where none may be."""
    named = os.environ.get("MOONTAP_CHROMIUM")
    names = (named,) if named else ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program:
        return Path(program)
    return absent(f"no Chromium: looked for {', '.join(names)}")


def absent(reason: str) -> NoReturn:
    """Skip the test, or fail it where all must run."""
    if os.environ.get("MOONTAP_MUST_RUN") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def screens() -> Path:
    """Where pictures of what was seen are kept."""
    folder = Path(os.environ.get("MOONTAP_SCREENS") or rig.ROOT / "build" / "screens")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# The process


@dataclass(frozen=True)
class Web:
    """mitmweb. urls: of the proxy, one a mode; link: of its page, with the token."""

    process: rig.Process
    urls: tuple[str, ...]
    link: str
    captures: Path

    def api(self, path: str) -> Any:
        """What `GET path` of mitmweb's own API says."""
        base, token = self.link.split("?token=")
        answer = httpx.get(
            base + path.removeprefix("/"),
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=30,
        )
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def flows(self) -> list[dict[str, Any]]:
        """The list, as mitmweb gives it to its page."""
        flows: list[dict[str, Any]] = self.api("/flows")
        return flows

    def view(self, flow: str, side: str, name: str = "auto", lines: int = 0) -> dict[str, Any]:
        """A content view as the page gets it. side: request, response. lines: at most; 0: all."""
        cut = f"?lines={lines}" if lines else ""
        shown: dict[str, Any] = self.api(f"/flows/{flow}/{side}/content/{name}.json{cut}")
        return shown


@contextmanager
def mitmweb(
    folder: Path,
    conf: Path,
    modes: Sequence[str],
    *arguments: str | Path,
    name: str = "web",
    **options: object,
) -> Iterator[Web]:
    """`mitmweb -s addon/main.py` on free loopback ports; as `rig.tap`."""
    captures = folder / f"{name}.captures"
    web_port, *ports = rig.free_ports(1 + len(modes))
    command: list[str | Path] = [Path(sys.executable).with_name("mitmweb"), *arguments]
    command += ["-s", rig.MAIN, *([] if modes else ["-n"])]
    for mode, port in zip(modes, ports, strict=True):
        command += ["--mode", f"{mode}@127.0.0.1:{port}"]
    for column in COLUMNS:
        command += ["--set", f"web_columns={column}"]
    given = {"confdir": conf, "moontap_dir": captures, "web_open_browser": "false", **options}
    for option, value in given.items():
        command += ["--set", f"{option}={value}"]
    with rig.running([*command, "--web-port", str(web_port)], folder, name) as process:
        link = process.wait_for(rf"http://127\.0\.0\.1:{web_port}/\?token=\w+")[0]
        for port in ports:
            process.wait_for(rf" listening at 127\.0\.0\.1:{port}\.")
        yield Web(process, tuple(f"http://127.0.0.1:{port}" for port in ports), link, captures)


# The page


@dataclass(frozen=True)
class Row:
    """A row of the list. number: in the order in which the requests came, from 1."""

    number: int
    path: str
    mark: str
    comment: str
    status: str


_ROWS = """() => [...document.querySelectorAll('.flow-table tbody tr.has-request')].map(row => {
    const text = name => row.querySelector('.col-' + name)?.innerText.trim() ?? '';
    const mark = row.querySelector('.col-path .marker')?.innerText.trim() ?? '';
    const path = text('path');
    return [Number(text('index')), mark && path.startsWith(mark) ? path.slice(mark.length).trim()
        : path, mark, text('comment'), text('status')];
})"""


class Screen:
    """mitmweb's page in a Chromium. dialogs: texts of windows that the page opened. strangers:
    addresses it asked for that are not mitmweb's."""

    def __init__(self, page: Page, link: str, name: str) -> None:
        self.page = page
        self.dialogs: list[str] = []
        self.strangers: list[str] = []
        self._name = name
        self._size = WIDE
        self._filters: list[str] = []
        self._awaited: set[Request] = set()
        home = link.split("?")[0]

        def socket(opened: WebSocket) -> None:
            opened.on("framereceived", self._heard)

        def asked(request: Request) -> None:
            if not request.url.startswith((home, "data:", "blob:")):
                self.strangers.append(request.url)
            if "/content/" in request.url:
                self._awaited.add(request)

        def answered(request: Request) -> None:
            self._awaited.discard(request)

        def dialog(shown: Any) -> None:
            self.dialogs.append(shown.message)
            shown.dismiss()

        page.set_default_timeout(10_000)
        page.on("websocket", socket)
        page.on("request", asked)
        page.on("requestfinished", answered)
        page.on("requestfailed", answered)
        page.on("dialog", dialog)
        page.goto(link)
        page.wait_for_selector(".connection-indicator.established")

    def _heard(self, frame: str | bytes) -> None:
        text = frame if isinstance(frame, str) else frame.decode()
        if text.startswith('{"type": "flows/filterUpdate"'):
            self._filters.append(text)

    # the list

    def rows(self) -> list[Row]:
        """The rows of the list, as far as they are in the window."""
        return [Row(*cells) for cells in self.page.evaluate(_ROWS)]

    def until(self, true: Callable[[], object], seconds: float = 8) -> bool:
        """Whether it became true within the time. The page lives on meanwhile."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                return False
            self.page.wait_for_timeout(40)
        return True

    def shows(self, count: int) -> bool:
        """Whether the list comes to hold so many rows."""
        return self.until(lambda: len(self.rows()) == count)

    def settled(self, seconds: float = 8) -> list[Row]:
        """The rows, once they have stayed the same for a moment."""
        seen, since, end = self.rows(), time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end and time.monotonic() - since < 0.4:
            self.page.wait_for_timeout(60)
            if (now := self.rows()) != seen:
                seen, since = now, time.monotonic()
        return seen

    def search(self, words: str) -> list[Row]:
        """What is left in the list once this is typed into the search box; as it was, if empty."""
        self.tab("Flow List")
        before = len(self._filters)
        box = self.page.get_by_placeholder("Search")
        box.fill(words)
        box.press("Escape")  # the help that opens below it
        assert self.until(lambda: len(self._filters) > before), f"no answer to the filter {words}"
        return self.settled()

    def bars(self, shown: bool) -> None:
        """Show or hide the event log and the command bar, which leave less room for the list."""
        self.tab("Options")
        for name in BARS:
            self.page.get_by_label(name).set_checked(shown)

    # one exchange

    def tab(self, name: str) -> None:
        self.page.locator("nav a", has_text=re.compile(f"^{re.escape(name)}$")).last.click()

    def open(self, number: int, tab: str = "Response") -> str:
        """Open the exchange of a row; the text of its tab."""
        cell = self.page.locator("tr.has-request td.col-index", has_text=re.compile(f"^{number}$"))
        cell.click()
        self.tab(tab)
        return self.shown()

    def shown(self) -> str:
        """The text of the content view that is open, once the page has got it."""
        self.page.wait_for_timeout(80)
        assert self.until(lambda: not self._awaited), f"never got {self._awaited}"
        self.page.wait_for_selector(".contentview pre div")
        self.page.wait_for_timeout(40)
        shown = _words(self.page.locator(".contentview pre"))
        assert not shown.startswith("Error getting content"), shown
        return shown

    @property
    def view(self) -> str:
        """The name of the view that is open."""
        return _words(self.page.locator(".contentview h5"))

    def choose(self, view: str) -> str:
        """Choose a view for what is open; its text."""
        self.page.locator(".contentview .controls a", has_text="View:").click()
        # Its menu is long; the last entries are outside of the window.
        entry = self.page.locator("a", has_text=re.compile(f"^{view}$", re.I)).last
        entry.evaluate("entry => entry.click()")
        self.until(lambda: view == "auto" or self.view.lower() == view.lower())
        return self.shown()

    def note(self, text: str) -> None:
        """Type a comment for the exchange that is open."""
        self.tab("Comment")
        field = self.page.locator("section.timing .inline-input")
        field.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    # commands

    def command(self, line: str) -> str:
        """Type a command; what then stands below it as its result, empty if there is none."""
        results = self.page.locator(".command-result > div")
        before = results.count()
        box = self.page.get_by_placeholder("Enter command")
        box.fill(line)
        box.press("Enter")
        told = f"$ {line}"

        def ran() -> bool:
            return results.count() > before or told in results.last.inner_text()

        assert self.until(ran), f"{line} did not run"
        self.page.wait_for_timeout(300)
        return _words(results.last).partition(told)[2].strip()

    def events(self) -> str:
        """The end of the event log, as much as is in the window. It stays where it was when lines
        come while its end is not in sight: when it was opened late, say."""
        self.page.locator(".eventlog pre").evaluate("log => { log.scrollTop = log.scrollHeight }")
        self.page.wait_for_timeout(100)
        return _words(self.page.locator(".eventlog pre"))

    # pictures

    def picture(self, what: str, *more: tuple[int, int]) -> None:
        """Keep a picture of the window, and one in each other size."""
        for width, height in (WIDE, *more):
            self.resize((width, height))
            self.page.screenshot(path=screens() / f"{self._name}-{what}-{width}.png")
        self.resize(WIDE)

    def resize(self, size: tuple[int, int]) -> None:
        if size != self._size:
            self._size = size
            self.page.set_viewport_size({"width": size[0], "height": size[1]})
            self.page.wait_for_timeout(100)


def _words(place: Locator) -> str:
    return place.inner_text().replace("\xa0", " ")


@contextmanager
def screen(program: Path, web: Web, name: str) -> Iterator[Screen]:
    """A Chromium at mitmweb's page. name: begins the names of its pictures."""
    # Nothing but loopback can be reached.
    arguments = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
            yield Screen(page, web.link, name)
        finally:
            browser.close()


def saved(value: object, what: str) -> Path:
    """Keep a text or data beside the pictures."""
    path = screens() / what
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path
