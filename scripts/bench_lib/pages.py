"""A page open on each mitmweb, as while a person looks on: `pages.py [--no-browser] URL…`.

A Chromium where there is one (MOONTAP_CHROMIUM, or on PATH), else a client of the page's stream of
updates. Its first line says which. After it, each line `PAGE ROWS FILTER` on stdin has that text
put into that page's search field, and is answered with the milliseconds until its list has at most
ROWS rows (`-` without a browser). It ends when its stdin closes. Run as a file: imports nothing
beside it.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from threading import Event, Thread
from urllib.parse import parse_qs, urlsplit

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ROW_PX = 32
_START_S = 30
_PUT = """async ([text, height]) => {
  const field = document.querySelector('input[placeholder=Search]');
  const table = document.querySelector('.flow-table table');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const started = performance.now();
  set.call(field, text);
  field.dispatchEvent(new Event('input', {bubbles: true}));
  while (table.offsetHeight > height) {
    await painted();
    if (performance.now() - started > 60000) return -1;
  }
  return performance.now() - started;
}"""


def _chromium() -> str | None:
    named = os.environ.get("MOONTAP_CHROMIUM")
    return named or next((found for name in _NAMES if (found := shutil.which(name))), None)


def _in_chromium(program: str, urls: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The sandbox needs rights that a container rarely has; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        pages = [browser.new_page(viewport={"width": 1280, "height": 800}) for _ in urls]
        for page, url in zip(pages, urls, strict=True):
            page.goto(url)
            page.wait_for_selector("input[placeholder=Search]")
        print(f"Chromium {browser.version}", flush=True)

        def put(page: int, rows: int, text: str) -> str:
            milliseconds = pages[page].evaluate(_PUT, [text, (rows + 2) * _ROW_PX])
            pages[page].fill("input[placeholder=Search]", "")
            return f"{milliseconds:.3f}"

        _answer(put)
        browser.close()


def _listening(urls: list[str]) -> None:
    ready = Event()
    Thread(target=lambda: asyncio.run(_listen(urls, ready)), daemon=True).start()
    if not ready.wait(_START_S):
        sys.exit("mitmweb does not take a client of its updates")
    print("a client of its updates (no browser)", flush=True)
    _answer(lambda page, rows, text: "-")


async def _listen(urls: list[str], ready: Event) -> None:
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    watching = []
    for url in urls:
        parts = urlsplit(url)
        headers = {"Authorization": f"Bearer {parse_qs(parts.query)['token'][0]}"}
        request = HTTPRequest(f"ws://{parts.netloc}/updates", headers=headers)
        watching.append(await websocket_connect(request))
    ready.set()

    async def read(one: object) -> None:
        while await one.read_message() is not None:  # type: ignore[attr-defined]
            pass

    await asyncio.gather(*map(read, watching))


def _answer(put: Callable[[int, int, str], str]) -> None:
    for line in sys.stdin:
        page, rows, text = line.rstrip("\n").split(" ", 2)
        print(put(int(page), int(rows), text), flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    program = None if "--no-browser" in arguments else _chromium()
    urls = [argument for argument in arguments if argument != "--no-browser"]
    if program:
        _in_chromium(program, urls)
    else:
        _listening(urls)


if __name__ == "__main__":
    main()
