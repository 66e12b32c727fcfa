"""A certificate authority and a leaf for a server on loopback, kept in a folder.

In: a folder and the host name that the leaf is for. Out: paths of the files. The leaf is also valid
for localhost and 127.0.0.1. It never touches the machine's own trust store.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_NAME = "api.moonshot.cn"


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files: `ca` is what a client must trust; `leaf` is key and certificate together."""

    ca: Path
    leaf: Path
    name: str


def make_tls(folder: str | Path, name: str = DEFAULT_NAME, *, server: str = "standin") -> TLSFiles:
    """Makes the files, or takes the authority that is already in the folder. server: what their
    names begin with. `OSError` where the folder cannot be written, `ValueError` for a name that is
    not plain ASCII."""
    # Imported late: mitmproxy's certificate code takes longer to load than all of the server.
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from mitmproxy.certs import CertStore

    if not name.isascii() or not name:
        raise ValueError(f"{name!r} is not a host name in ASCII")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        x509.DNSName(name),
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    entry = CertStore.from_store(folder, server, 2048).get_cert(name, names)
    key = entry.privatekey.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    leaf = folder / f"{server}-leaf.pem"
    with open(os.open(leaf, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(key + entry.cert.to_pem())
    return TLSFiles(ca=folder / f"{server}-ca-cert.pem", leaf=leaf, name=name)
