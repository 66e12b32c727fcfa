"""What is kept of a flow's connections: when they were made, and the API's own address.

A flow goes in and gets new connections. Addresses, certificates, ciphers and the like describe
the machine and the network that a capture was made on.
"""

from mitmproxy import connection, http
from mitmproxy.proxy.mode_specs import ProxyMode, ReverseMode

_NOWHERE = ("127.0.0.1", 0)


def forget(flow: http.HTTPFlow) -> list[str]:
    """Replace the connections; which of them said more: `client`, `server`."""
    client, server = _client(flow), _server(flow)
    said = [
        name
        for name, old, new in (
            ("client", flow.client_conn, client),
            ("server", flow.server_conn, server),
        )
        if old.get_state() != new.get_state()
    ]
    flow.client_conn, flow.server_conn = client, server
    return said


def _client(flow: http.HTTPFlow) -> connection.Client:
    old = flow.client_conn
    new = connection.Client(
        peername=_NOWHERE,
        sockname=_NOWHERE,
        timestamp_start=old.timestamp_start,
        proxy_mode=_mode(flow),
    )
    _common(old, new, flow)
    return new


def _server(flow: http.HTTPFlow) -> connection.Server:
    old = flow.server_conn
    address = (flow.request.host, flow.request.port) if old.address else None
    new = connection.Server(address=address, timestamp_start=old.timestamp_start)
    new.timestamp_tcp_setup = old.timestamp_tcp_setup
    _common(old, new, flow)
    return new


def _common(old: connection.Connection, new: connection.Connection, flow: http.HTTPFlow) -> None:
    new.id = old.id
    new.transport_protocol = old.transport_protocol
    new.timestamp_tls_setup = old.timestamp_tls_setup
    new.timestamp_end = old.timestamp_end
    new.tls, new.alpn = old.tls, old.alpn
    new.sni = flow.request.host if old.sni else None


def _mode(flow: http.HTTPFlow) -> ProxyMode:
    """The addon asks whether it was a reverse proxy, and nothing else."""
    if isinstance(flow.client_conn.proxy_mode, ReverseMode):
        request = flow.request
        host = f"[{request.host}]" if ":" in request.host else request.host
        try:
            return ProxyMode.parse(f"reverse:{request.scheme}://{host}:{request.port}")
        except ValueError:
            return ProxyMode.parse("reverse:https://localhost")
    return ProxyMode.parse("regular")
