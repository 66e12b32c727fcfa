from __future__ import annotations

import io
import zipfile

from moontap.bundle.archive import zipped


def test_the_same_files_give_the_same_bytes() -> None:
    one = zipped({"b.txt": b"two", "a.txt": b"one" * 1000})
    assert one == zipped({"a.txt": b"one" * 1000, "b.txt": b"two"})
    with zipfile.ZipFile(io.BytesIO(one)) as archive:
        assert archive.namelist() == ["a.txt", "b.txt"]
        assert archive.read("b.txt") == b"two"
        infos = archive.infolist()
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.external_attr >> 16 & 0o777 for info in infos} == {0o600}
    assert len(one) < 1000
