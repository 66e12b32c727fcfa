"""What mitmweb's page lacks for looking at an agent's traffic: room for comments, and a search box
that takes `~meta`.

A running mitmweb in; the same page out, with a style more, and its script with one word more that
its filters know. Who may see it is decided as before. Whatever is not as expected stays as it is.
"""

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
.flow-table:has(.col-comment) .col-path { width: clamp(80px, 42cqw - 170px, 440px); }
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
        if not app.settings.setdefault("moontap", False):
            ours = rf"/static/{_OURS}(index-[\w-]+\.js)"
            app.add_handlers(r".*", [(r"/", Page), (ours, Script)])  # before mitmweb's own
            app.settings["moontap"] = True
    except Exception:
        logger.debug("moontap: the page stays as mitmweb has it", exc_info=True)


class Page(IndexHandler):
    """mitmweb's page, for those who may see it."""

    def get(self) -> None:
        """Write it. Raises what mitmweb's own raises."""
        page = self.render_string("../index.html")
        self.finish(styled(page, Path(self.settings["static_path"])))

    post = get


class Script(tornado.web.RequestHandler):
    """mitmweb's script with `~meta`, for anybody, as mitmweb has its own."""

    def get(self, name: str) -> None:
        """Write it. name: of a file beside mitmweb's own, and nowhere else."""
        try:
            script = (Path(self.settings["static_path"]) / name).read_bytes()
        except OSError:
            self.send_error(404)
            return
        self.set_header("Content-Type", "text/javascript")
        self.finish(with_meta(script))


def styled(page: bytes, static: Path) -> bytes:
    """The page with our style and, where that is another one, our script. static: mitmweb's folder
    of scripts."""
    head, end, rest = page.partition(b"</head>")
    if not end:
        return page
    if found := _SCRIPT.search(head):
        try:
            script = (static / found[2].decode().rstrip('"')).read_bytes()
        except OSError:
            script = b""
        if with_meta(script) != script:
            head = _SCRIPT.sub(rb"\1" + _OURS.encode() + rb"\2", head)
    return head + STYLE + end + rest


def with_meta(script: bytes) -> bytes:
    """The script with filters that know `~meta`; unchanged where it is not the one we know."""
    if b"~meta" in script or any(len(check.findall(script)) != 1 for check in _CHECKS):
        return script
    typed, told = _CHECKS
    script = typed.sub(lambda found: found[1] + found[3] + _KNOWN + found[4], script)
    return told.sub(lambda found: found[1] + found[2] + _KNOWN + found[3] + _SAID, script)
