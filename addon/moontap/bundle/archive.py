"""Files as a zip that is the same for the same files.

Names and bytes in, the bytes of a zip out. It reads no clock and opens nothing.
"""

import io
import stat
import zipfile
from collections.abc import Mapping

_NEVER = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_UNIX = 3


def zipped(files: Mapping[str, bytes]) -> bytes:
    """The zip: names in order, all of one time, for their owner alone once unpacked."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _NEVER)
            info.create_system = _UNIX
            info.external_attr = (stat.S_IFREG | 0o600) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    return out.getvalue()
