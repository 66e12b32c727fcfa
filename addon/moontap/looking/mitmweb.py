"""What mitmweb's page lacks for looking at an agent's traffic: room for comments, and a search box
that takes `~meta`.

A running mitmweb in; the same page out, with a style more, and its script with one word more that
its filters know. Who may see it is decided as before. Whatever is not as expected stays as it is.
"""

import hashlib
import logging
import re
from pathlib import Path
from typing import Any

import tornado.web
from mitmproxy.tools.web.app import IndexHandler

logger = logging.getLogger(__name__)

STYLE = b"""
<style>
.flow-table { container-type: inline-size; }
.flow-table:has(.col-comment) .col-path { width: clamp(64px, 42cqw - 200px, 440px); }
.flow-table .col-comment { width: auto; }
.flow-table:has(.col-comment) .col-status { width: 58px; }
.flow-table:has(.col-comment) :is(.col-size, .col-time) { width: 60px; }
.flow-table td.col-path { direction: rtl; text-align: left; }
@container (max-width: 520px) {
    .flow-table:has(.col-comment) :is(.col-size, .col-time) { width: 0; padding: 0; }
    .flow-table:has(.col-comment) :is(.col-size, .col-time) * { display: none; }
}
.flow-detail .headers { max-height: 9em; overflow-y: auto; }
</style>
"""
"""mitmweb gives a comment 150 pixels, some 18 characters, and the rest to the path. Here the path,
which hardly differs, gets what a mark and a few words need, more in a wide list; the comment the
rest, and in a narrow list what size and time have. Of a long path the end is shown. Agents send
some thirty headers, below which a conversation was out of sight: they scroll in a box."""

# In 12.3.1 the page's own grammar of filters has no `~meta`, and what that does not know is not
# sent to mitmproxy, whose grammar has it. It takes the same as `~comment`.
_CHECKS = (
    re.compile(rb"(isValid\((\w+)\)\{try\{return \2&&\w+\.parse\()(\2)(\),!0\})"),
    re.compile(rb"(try\{return \w+\.parse\()(this\.state\.value)(\)\.desc)(?=\})"),
)
_KNOWN = rb'.replace(/~meta(?!\w)/g,"~comment")'
_SAID = (
    rb'.replace(/comment(?= matches)/g,/~meta(?!\w)/.test(this.state.value)?"metadata":"comment")'
)
"""Of the description that is shown below the box."""

_SCRIPT = re.compile(rb'(src="\./static/)(index-[\w-]+\.js")')
_OURS = "moontap-"  # an address of its own: the browser may have kept the other


def install(app: Any) -> None:
    """Serve the page so from now on; once an app. Never raises."""
    try:
        if "moontap" not in app.settings:
            ours = rf"/static/{_OURS}(index-[\w-]+\.js)"
            app.add_handlers(r".*", [(r"/", Page), (ours, Script)])  # before mitmweb's own
            app.settings["moontap"] = Scripts(Path(app.settings["static_path"]))
    except Exception:
        logger.debug("moontap: the page stays as mitmweb has it", exc_info=True)


class Scripts:
    """mitmweb's scripts with `~meta`: each is read and changed once. static: their folder."""

    def __init__(self, static: Path) -> None:
        self._static = static
        self._made: dict[str, tuple[bytes, str] | None] = {}

    def ours(self, name: str) -> tuple[bytes, str] | None:
        """The script and its ETag; None where there is none, or none that we know."""
        if name not in self._made:
            try:
                own = (self._static / name).read_bytes()
            except OSError:
                return None  # not kept: anybody may ask for any name
            script = with_meta(own)
            tag = f'"{hashlib.sha256(script).hexdigest()}"'
            self._made[name] = (script, tag) if script != own else None
        return self._made[name]


class Page(IndexHandler):
    """mitmweb's page, for those who may see it."""

    def get(self) -> None:
        """Write it. Raises what mitmweb's own raises."""
        page = self.render_string("../index.html")
        self.finish(styled(page, self.settings["moontap"]))

    post = get


class Script(tornado.web.RequestHandler):
    """mitmweb's script with `~meta`, for anybody, as mitmweb has its own."""

    _tag: str | None = None

    def get(self, name: str) -> None:
        """Write it, where the browser has not got it. name: of a file beside mitmweb's own, and
        nowhere else."""
        made = self.settings["moontap"].ours(name)
        if made is None:
            self.send_error(404)
            return
        script, self._tag = made
        self.set_header("Content-Type", "text/javascript")
        self.finish(script)

    head = get

    def compute_etag(self) -> str | None:
        """As tornado asks for it."""
        return self._tag


def styled(page: bytes, scripts: Scripts) -> bytes:
    """The page with our style and, where that is another one, our script."""
    head, end, rest = page.partition(b"</head>")
    if not end:
        return page
    found = _SCRIPT.search(head)
    if found and scripts.ours(found[2].decode().rstrip('"')):
        head = _SCRIPT.sub(rb"\1" + _OURS.encode() + rb"\2", head)
    return head + STYLE + end + rest


def with_meta(script: bytes) -> bytes:
    """The script with filters that know `~meta`; unchanged where it is not the one we know."""
    if b"~meta" in script or any(len(check.findall(script)) != 1 for check in _CHECKS):
        return script
    typed, told = _CHECKS
    script = typed.sub(lambda found: found[1] + found[3] + _KNOWN + found[4], script)
    return told.sub(lambda found: found[1] + found[2] + _KNOWN + found[3] + _SAID, script)
