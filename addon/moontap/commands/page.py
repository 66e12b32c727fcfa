"""What `proxy --web` and `look` say of mitmweb's page: where it is, what to type, why it is not.

A mitmweb that runs, or its reason, in; words for the terminal out. It opens a browser where a
person looks on.
"""

import sys
from typing import TYPE_CHECKING, cast

from moontap.commands.terminal import put

if TYPE_CHECKING:
    from mitmproxy.master import Master
    from mitmproxy.tools.web.master import WebMaster

_TO_TYPE = """\
  search there for   ~meta tool=Bash   ~meta unanswered=   ~meta finding=   ~meta rewritten=
  or type (Options > Display Command Bar)   moontap.pairs @all   moontap.findings @all
"""


def page_error(reason: str, option: str) -> str:
    """Why it does not start, with what to do where mitmweb's page has no port.

    option: the one that gives it another."""
    if "Web server failed to listen" not in reason:
        return reason
    where = reason.partition("listen on ")[2].partition(" with ")[0]
    return f"mitmweb's page cannot listen on {where}: give another {option}, or 0 for any free one"


def show_page(master: "Master", *, opens: bool) -> None:
    """Print the link to mitmweb's page and what to type there; open it, where a person looks on."""
    from moontap.tapping.webpage import browse, link

    url = link(cast("WebMaster", master))
    put(f"mitmweb: {url}\n{_TO_TYPE}", sys.stdout)
    if opens and sys.stdout.isatty():
        browse(url)
