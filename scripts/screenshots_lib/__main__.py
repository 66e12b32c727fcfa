"""`scripts/screenshots`: docs/images/list.png and docs/images/reply.png, made again.

mitmweb with the tap in this process, before the stand-in; Chromium looks at it as a person does.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from mitmproxy.tools.web.master import WebMaster
from playwright.async_api import Page, async_playwright

from moontap.standin import Mint, Standin
from moontap.tapping.tap import Settings, Tap, tapping
from moontap.tapping.upstream import parse
from moontap.tapping.webpage import link, web_master, web_options
from scripts.screenshots_lib import story

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1280
LIST, VIEW = 560, 720
"""Heights."""
_PORT, _TAP_PORT = 8765, 8080
"""Of the stand-in and the tap: they stand in the pictures."""
_MOST = 150_000  # bytes of a picture


async def make(folder: Path, chromium: str) -> list[Path]:
    """Make the pictures; where they are. Raises TimeoutError where the page does not come to show
    what belongs in one, AssertionError where one is too large."""
    async with (
        Standin(story.script(), mint=Mint.RESPONSE, port=_PORT) as standin,
        _tap(standin.base_url) as tap,
        _page(chromium) as page,
    ):
        await page.goto(link(cast(WebMaster, tap.master)))
        tap.master.options.update(moontap_rewrite="off")
        await story.lose(tap.url)
        tap.master.options.update(moontap_rewrite="all")
        await story.keep(tap.url)
        rest = asyncio.create_task(story.report(tap.url))
        await page.get_by_text("streaming: Write").wait_for()
        made = [await _picture(page, folder / "list.png")]
        await rest
        await page.set_viewport_size({"width": WIDTH, "height": VIEW})
        await _row(page, "Read ×2", last=True)
        await page.get_by_text("Response", exact=True).first.click()
        await page.get_by_text("upstream id").first.wait_for()
        made.append(await _picture(page, folder / "reply.png"))
    return made


@asynccontextmanager
async def _tap(upstream: str) -> AsyncIterator[Tap]:
    with tempfile.TemporaryDirectory() as conf:
        settings = Settings(parse(upstream), directory="", port=_TAP_PORT, confdir=conf)
        more = web_options(0) | {"web_theme": "light"}
        async with tapping(settings, make_master=web_master, **more) as tap:
            tap.master.options.update(listen_host="127.0.0.1", listen_port=_TAP_PORT)
            yield tap


@asynccontextmanager
async def _page(chromium: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-lcd-text", "--hide-scrollbars"],
        )
        try:
            yield await browser.new_page(
                viewport={"width": WIDTH, "height": LIST}, device_scale_factor=1
            )
        finally:
            await browser.close()


async def _row(page: Page, comment: str, *, last: bool) -> None:
    rows = page.locator("td.col-comment", has_text=comment)
    await (rows.last if last else rows.first).click()


async def _picture(page: Page, file: Path) -> Path:
    await page.mouse.move(WIDTH - 5, LIST - 60)  # no row is under it
    await page.wait_for_timeout(300)
    await page.screenshot(path=file, animations="disabled", caret="hide")
    assert file.stat().st_size < _MOST, f"{file} is too large"
    return file


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    parser.add_argument("--folder", type=Path, default=IMAGES, help="default: docs/images")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for file in asyncio.run(make(options.folder, os.environ["MOONTAP_CHROMIUM"])):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
