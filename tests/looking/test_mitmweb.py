"""mitmweb's page with the addon in it: who may see it, what is other in it, and what stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import mitmproxy.tools.web
import pytest
from mitmproxy.tools.web.master import WebMaster

from moontap.addon import Moontap
from moontap.looking.mitmweb import Scripts, install, styled, with_meta
from moontap.tapping import webpage
from moontap.tapping.tap import running

STATIC = Path(mitmproxy.tools.web.__file__).parent / "static"


@asynccontextmanager
async def page(conf: Path, *addons: Any) -> AsyncIterator[tuple[WebMaster, httpx.AsyncClient]]:
    """A mitmweb with the addon, and a browser that keeps cookies."""
    options = webpage.web_options(0) | {"server": False}
    more = {"moontap_dir": ""} if addons else {}
    async with (
        running(addons, webpage.web_master, str(conf), **options, **more) as (master, _),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        yield cast(WebMaster, master), client


async def test_who_has_the_token_sees_it_with_room_for_comments(tmp_path: Path) -> None:
    async with page(tmp_path, Moontap()) as (master, client):
        url = master.web_url
        bare = url.partition("?")[0]
        for asked in (bare, f"{bare}?token=wrong"):
            refused = await client.get(asked)
            assert refused.status_code == 403
            assert b"col-comment" not in refused.content
            assert b"static/index" not in refused.content
        seen = await client.get(url)
        assert seen.status_code == 200
        assert seen.headers["x-frame-options"] == "DENY"
        head = seen.text.partition("</head>")[0]
        assert ".col-comment" in head
        # Now by the cookie, as on a reload; and what the login form sends is looked at as well.
        assert ".col-comment" in (await client.get(bare)).text
        assert (await client.get(f"{bare}flows")).json() == []
        async with httpx.AsyncClient(trust_env=False) as other:
            assert (await other.post(bare, data={"token": "wrong"})).status_code == 403


async def test_its_script_knows_one_word_more(tmp_path: Path) -> None:
    """Else the search box turns red at `~meta`, and nothing is sent. Should this fail with another
    mitmproxy: does its own page know `~meta` now?"""
    async with page(tmp_path, Moontap()) as (master, client):
        bare = master.web_url.partition("?")[0]
        text = (await client.get(master.web_url)).text
        (source,) = [part for part in text.split('"') if part.startswith("./static/moontap-index")]
        script = await client.get(bare + source)
        assert script.status_code == 200
        assert script.headers["content-type"] == "text/javascript"
        own = (STATIC / source.removeprefix("./static/moontap-")).read_bytes()
        known = b'.replace(/~meta(?!\\w)/g,"~comment")'
        said = b".replace(/comment(?= matches)/g,/~meta(?!\\w)/.test(this.state.value)?"
        said += b'"metadata":"comment")'
        assert (script.content.count(known), script.content.count(said)) == (2, 1)
        assert script.content.replace(known, b"").replace(said, b"") == own
        # mitmweb's own is served as ever, and no other file is to be had.
        assert (await client.get(bare + source.replace("moontap-", ""))).content == own
        for name in ("../app.py", "%2e%2e%2fapp.py", "nothing.js", "index-nothing.js"):
            assert (await client.get(f"{bare}static/moontap-{name}")).status_code in (403, 404)


async def test_without_the_addon_it_is_mitmwebs_own(tmp_path: Path) -> None:
    async with page(tmp_path) as (master, client):
        text = (await client.get(master.web_url)).text
        assert "col-comment" not in text
        assert "moontap" not in text


async def test_loaded_anew_it_is_installed_once(tmp_path: Path) -> None:
    async with page(tmp_path, Moontap()) as (master, _):
        rules = len(master.app.default_router.rules)
        install(master.app)
        assert len(master.app.default_router.rules) == rules
        install(object())  # no application at all: nothing is raised


CHECK = b"isValid(e){try{return e&&Ni.parse(e),!0}catch{return!1}}"
SAY = b"try{return Ni.parse(this.state.value).desc}catch(e){}"


@pytest.mark.parametrize(
    ("script", "changes"),
    [
        (CHECK + SAY, True),
        (CHECK.replace(b"Ni", b"x1").replace(b"(e", b"(t").replace(b" e&", b" t&") + SAY, True),
        (CHECK, False),
        (SAY, False),
        (CHECK + CHECK + SAY, False),
        (CHECK + SAY + b'"~meta"', False),  # it knows it by itself
        (CHECK.replace(b"e&&", b"f&&") + SAY, False),
        (b"", False),
    ],
)
def test_a_script_that_is_another_stays(script: bytes, changes: bool) -> None:
    assert (with_meta(script) != script) is changes


def test_a_page_that_is_another_stays(tmp_path: Path) -> None:
    page = b'<head><script src="./static/index-a1.js"></script></head><body>'
    for other in (b"<p>no head</p>", b""):
        assert styled(other, Scripts(tmp_path)) == other
    assert b"moontap" not in styled(page, Scripts(tmp_path))  # there is no such script
    (tmp_path / "index-a1.js").write_bytes(b"another")
    assert b"moontap" not in styled(page, Scripts(tmp_path))
    (tmp_path / "index-a1.js").write_bytes(CHECK + SAY)
    assert b'src="./static/moontap-index-a1.js"' in styled(page, Scripts(tmp_path))


def test_a_script_is_read_once(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    assert scripts.ours("index-a1.js") is None
    (tmp_path / "index-a1.js").write_bytes(CHECK + SAY)
    made = scripts.ours("index-a1.js")
    assert made
    (tmp_path / "index-a1.js").unlink()
    assert scripts.ours("index-a1.js") is made


async def test_the_browser_gets_the_script_once(tmp_path: Path) -> None:
    async with page(tmp_path, Moontap()) as (master, client):
        text = (await client.get(master.web_url)).text
        (source,) = [part for part in text.split('"') if part.startswith("./static/moontap-index")]
        url = master.web_url.partition("?")[0] + source
        script, head = await client.get(url), await client.head(url)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("etag", "content-type", "content-length"):
            assert head.headers[name] == script.headers[name]
        known = {"if-none-match": script.headers["etag"]}
        again = await client.get(url, headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert (await client.head(url.replace("index", "none"))).status_code in (403, 404)
