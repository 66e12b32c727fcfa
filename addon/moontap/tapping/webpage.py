"""mitmweb set up as people want it who look at an agent's traffic: columns, filter, link.

A port in; a master for `tapping`, its options and the link to its page out. It opens a browser
where it is asked to, and listens nowhere itself.
"""

import socket
import threading
from typing import Any
from urllib.parse import quote

from mitmproxy import options
from mitmproxy.tools.web.master import WebMaster
from mitmproxy.tools.web.webaddons import open_browser

HOST = "127.0.0.1"

COLUMNS = ("icon", "path", "comment", "status", "size", "time")
"""The mark stands in the column of the path."""

FILTER = "!(~m HEAD & ~s | ~u count_tokens & ~c 200)"
"""What is shown at first: all but two kinds of requests that tell nothing about the agent, and of
these only such as were answered. It stands in the page's search box, to be changed there."""

LINES = 2000
"""Lines of a view before mitmweb asks whether to show more; of its own accord 512."""


def web_options(port: int) -> dict[str, Any]:
    """mitmproxy options for the page. port: 0 takes a free one."""
    return {
        "web_host": HOST,
        "web_port": port or free_port(),
        "web_columns": list(COLUMNS),
        # The browser is opened with the link, which mitmproxy does not know.
        "web_open_browser": False,
        "content_view_lines_cutoff": LINES,
    }


def free_port() -> int:
    """A port that nobody listens on now. mitmweb itself, asked for any, does not say which."""
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def web_master(opts: options.Options) -> WebMaster:
    """mitmproxy as mitmweb has it, without what prints to the terminal."""
    return WebMaster(opts, with_termlog=False)


def link(master: WebMaster, *, filtered: bool = True) -> str:
    """Where the page is, with its access token and what it shows at first."""
    shown = f"#/flows?s={quote(FILTER, safe='')}" if filtered else ""
    return f"{master.web_url}{shown}"


def browse(url: str) -> None:
    """Open a browser where there is one. Does not wait: some are waited for until they end."""
    threading.Thread(target=open_browser, args=(url,), daemon=True).start()
