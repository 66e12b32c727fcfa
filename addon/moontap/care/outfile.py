"""A new file on disk, of flows or other bytes: there whole, or not at all.

Flows or bytes in, a file of mode 0600 out. It replaces no file unless told to, and never anything
else: as root it could put a file in the place of /dev/null.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mitmproxy import http
from mitmproxy.io import tnetstring


class Refused(Exception):
    """The file cannot be written; one line that says why and what to do."""


def check(path: Path, *, force: bool, given: Iterable[Path | str | None] = ()) -> None:
    """Raises Refused where something stands in the way: said before the work, not after it.

    given: files that are read; None is none. They are not replaced, by whatever name: they
    may be the only evidence that there is, and what comes of them holds less.
    """
    try:
        if str(path) == "-":
            raise Refused("- would be standard output: name a file")
        os.path.realpath(path)  # unlike what follows it does not pass over what is no name
        if path.is_symlink() and not path.exists():
            # Who made the link has not made the file: nobody knows whose it would be.
            raise Refused(f"{path} is a link to nothing: name the file itself")
        if path.is_dir():
            raise Refused(f"{path} is a folder: name a file in it")
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is a pipe or device: name a file")
        if path.exists() and any(_same(path, one) for one in given if one):
            raise Refused(f"{path} is an input: name another file to write")
        if path.exists() and not force:
            raise Refused(f"{path} exists: --force replaces it")
        above = next(one for one in path.absolute().parents if os.path.lexists(one))
        if not above.is_dir():
            what = "a file" if above.exists() else "a link to nothing"
            raise Refused(f"{above} is {what}: name a folder for it")
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be written: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0)
    return "no name holds such a character"  # a NUL, or half of a pair of surrogates


def _same(path: Path, other: Path | str) -> bool:
    return os.path.exists(other) and path.samefile(other)


def write_flows(path: Path, flows: Iterable[http.HTTPFlow], *, force: bool) -> int:
    """Write flows as they are, as `write` does. They may come from the file that is replaced."""
    return write(path, (tnetstring.dumps(flow.get_state()) for flow in flows), force=force)


def write(path: Path, pieces: Iterable[bytes], *, force: bool) -> int:
    """Write bytes; the size of the file. Makes its folder where there is none.

    A symbolic link stays, and the file that it names is written. Raises Refused.
    """
    check(path, force=force)
    named, path = path, Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                size = sum(map(file.write, pieces))
            if force:
                part.replace(path)
            else:
                os.link(part, path)  # unlike a rename it fails where a file has come meanwhile
                part.unlink()
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    except FileExistsError:
        raise Refused(f"{named} exists: --force replaces it") from None
    except OSError as error:
        raise Refused(f"{named} cannot be written: {os.strerror(error.errno or 0)}") from None
    return size
