"""A mitmproxy script: dials MOONTAP_TEST_PORT on loopback wherever MOONTAP_TEST_HOST is meant.

Only the address that is dialled changes: Host, SNI and certificate checks are the real host's.
"""

import os

from mitmproxy.proxy.server_hooks import ServerConnectionHookData


def server_connect(data: ServerConnectionHookData) -> None:
    address = data.server.address
    if address and address[0] == os.environ["MOONTAP_TEST_HOST"]:
        data.server.address = ("127.0.0.1", int(os.environ["MOONTAP_TEST_PORT"]))
