"""Saved flows read back: whole, cut, damaged, old, new, or no flow file at all."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.exceptions import FlowReadException
from mitmproxy.io import FlowReader, tnetstring
from mitmproxy.test import tflow

from moontap.capture import metadata, reader
from moontap.capture.reader import FlowFile, Loss, Unreadable, flow_at, flow_files, flows_at
from moontap.capture.upstream import answer, before_the_tap
from tests.saved import conversation, record, write

FLOWS = conversation(["pwd", "ls", "date"])
RECORDS = [record(flow) for flow in FLOWS]
IDS = [flow.id for flow in FLOWS]
BOM = b"\xef\xbb\xbf"


def put(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join(parts))
    return path


def read(path: Path) -> tuple[list[str], Loss]:
    file = FlowFile(path)
    ids = [flow.id for flow in file]
    assert file.count == len(ids)
    return ids, file.loss


def state(number: int = 0, **changed: Any) -> bytes:
    """A record with fields of its state changed."""
    return tnetstring.dumps({**FLOWS[number].get_state(), **changed})


def old(number: int, version: int) -> bytes:
    """A record as an older mitmproxy would have written it."""
    made = FLOWS[number].get_state() | {"version": version}
    if version < 20:
        for side in ("client_conn", "server_conn"):
            made[side]["state"] = 3
    if version < 19:
        client, server = made["client_conn"], made["server_conn"]
        client["address"], client["tls_extensions"] = client.pop("peername"), None
        server["ip_address"], server["via2"] = server.pop("peername"), server.pop("via", None)
        server["source_address"] = server.pop("sockname")
        for one in (client, server):
            one["tls_established"] = bool(one["tls"])
            one["cipher_name"] = one.pop("cipher")
            del one["transport_protocol"]
    return tnetstring.dumps(made)


def test_a_whole_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.flow", FLOWS)
    assert read(path) == (IDS, Loss())
    with path.open("rb") as file:
        theirs = [flow.get_state() for flow in FlowReader(file).stream()]
    assert [flow.get_state() for flow in FlowFile(path)] == theirs


def test_progress_ends_at_the_size_and_never_goes_back(tmp_path: Path) -> None:
    path = put(tmp_path / "a.flow", *RECORDS, b"garbage")
    told: list[int] = []
    assert len(list(FlowFile(path, told.append))) == 4
    assert told == sorted(told)
    assert told[-1] == sum(map(len, RECORDS))


def test_it_can_be_read_again(tmp_path: Path) -> None:
    file = FlowFile(put(tmp_path / "a.flow", *RECORDS, RECORDS[0][:99]))
    for _ in range(2):
        assert [flow.id for flow in file] == IDS
        assert (file.count, file.loss.records, file.loss.bytes) == (4, 1, 99)


LAST = RECORDS[-1]
CUTS = {
    "in the length": 2,
    "behind the length": LAST.index(b":"),
    "behind the colon": LAST.index(b":") + 1,
    "in the first field": LAST.index(b":") + 9,
    "in a body": LAST.index(b"Bash") + 2,
    "before the last field": len(LAST) - 12,
    "before the end mark": len(LAST) - 1,
}


@pytest.mark.parametrize("at", CUTS.values(), ids=CUTS.keys())
def test_a_file_that_is_cut_off(tmp_path: Path, at: int) -> None:
    ids, loss = read(put(tmp_path / "a.flow", *RECORDS[:-1], LAST[:at]))
    assert ids == IDS[:-1]
    assert loss == Loss(1, at, sum(map(len, RECORDS[:-1])))


def at_every_byte(record_: bytes) -> list[int]:
    return [
        *range(30),
        *range(30, len(record_) - 30, 61),
        *range(len(record_) - 30, len(record_)),
    ]


def test_a_cut_anywhere_costs_one_record_also_where_more_follows(tmp_path: Path) -> None:
    for at in at_every_byte(RECORDS[1])[1:]:
        path = put(tmp_path / "a.flow", RECORDS[0], RECORDS[1][:at], *RECORDS[2:])
        ids, loss = read(path)
        assert (ids, loss.bytes) == ([IDS[0], *IDS[2:]], at), at
        assert loss.records == 1


def test_a_wrong_byte_anywhere_costs_at_most_its_record(tmp_path: Path) -> None:
    for at in at_every_byte(RECORDS[1]):
        broken = bytearray(RECORDS[1])
        broken[at] ^= 0xFF
        ids, loss = read(put(tmp_path / "a.flow", RECORDS[0], bytes(broken), *RECORDS[2:]))
        assert [id_ for id_ in ids if id_ in (IDS[0], *IDS[2:])] == [IDS[0], *IDS[2:]], at
        assert loss.bytes in (0, len(broken))
        assert len(ids) + loss.records == 4


BROKEN: dict[str, Callable[[], tuple[list[bytes], int]]] = {
    "a field of another type": lambda: ([state(1, request=7)], 1),
    "a field missing": lambda: ([tnetstring.dumps({"version": 21, "type": "http"})], 1),
    "an unknown kind of flow": lambda: ([state(1, type="carrier pigeon")], 1),
    "no version": lambda: ([tnetstring.dumps({"type": "http"})], 1),
    "no dict": lambda: ([tnetstring.dumps([1, 2])], 1),
    "a length too long": lambda: ([b"9" + RECORDS[1][1:]], 1),
    "a length too short": lambda: ([b"9:" + RECORDS[1].partition(b":")[2]], 1),
    "an absurd length": lambda: ([b"999999999999:" + RECORDS[1].partition(b":")[2]], 1),
    "zeros, as after a crash": lambda: ([b"\0" * 5000], 1),
    "a line of text": lambda: ([b"no space left on device\n"], 1),
    "two of them": lambda: ([state(1, request=7), state(1, response=7)], 2),
}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN.keys())
def test_damage_in_the_middle_and_at_the_end(
    tmp_path: Path, make: Callable[[], tuple[list[bytes], int]]
) -> None:
    parts, records = make()
    size = sum(map(len, parts))
    before = len(RECORDS[0])
    ids, loss = read(put(tmp_path / "a.flow", RECORDS[0], *parts, *RECORDS[2:]))
    assert (ids, loss) == ([IDS[0], *IDS[2:]], Loss(records, size, before))
    ids, loss = read(put(tmp_path / "b.flow", RECORDS[0], *parts))
    assert (ids, loss.bytes) == (IDS[:1], size)


def test_damage_before_the_first_record(tmp_path: Path) -> None:
    ids, loss = read(put(tmp_path / "a.flow", b"nohup: ignoring input\n", *RECORDS))
    assert (ids, loss) == (IDS, Loss(1, 22, 0))


def test_a_record_across_the_steps_of_the_search_is_found(tmp_path: Path) -> None:
    for gap in ((1 << 20) - 5, (1 << 20) - 1, 1 << 20, (2 << 20) + 3):
        ids, loss = read(put(tmp_path / "a.flow", RECORDS[0], b"x" * gap, RECORDS[1]))
        assert (ids, loss.bytes, loss.records) == (IDS[:2], gap, 1)


def test_a_damaged_length_does_not_have_half_the_file_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.flow", RECORDS[0], b"3000000:", b"x" * 4_000_000, RECORDS[1])
    assert read(path)[0] == IDS[:2]


def decoys(size: int) -> bytes:
    """Beginnings of records, one in another, that all end where the last byte is."""
    made = bytearray()
    while len(made) < size // 2:
        for digits in range(9, 3, -1):
            length = size - 1 - len(made) - digits - 1
            if len(str(length)) == digits:
                break
        made += b"%d:9:websocket;" % length
    return bytes(made) + b"0" * (size - 1 - len(made)) + b"}"


class Counting:
    """A file that counts what is read of it."""

    def __init__(self, file: Any) -> None:
        self._file, self.bytes = file, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self.bytes += len(data)
        return data


def test_beginnings_within_beginnings_are_read_a_few_times_at_most(tmp_path: Path) -> None:
    after = RECORDS[1] * 300  # far enough behind for its first records to be read again
    for size in (200_000, 400_000, 800_000):
        # The first is not its own end: the byte behind is no record's beginning.
        path = put(tmp_path / "a.flow", RECORDS[0], decoys(size), b"x" * 20, after)
        with path.open("rb") as file:
            counting = Counting(file)
            loss = Loss()
            found = [one.id for _, _, one in reader._framed(counting, loss)]  # type: ignore[arg-type]
        assert counting.bytes < 10 * path.stat().st_size + (2 << 20)
        assert (found[0], found[-1]) == (IDS[0], IDS[1])
        assert loss.bytes <= size + 20
        assert loss.records == 1


def test_a_search_that_was_in_vain_for_long_goes_on_behind_the_bad_stretch(
    tmp_path: Path,
) -> None:
    after = RECORDS[1] * 800
    path = put(tmp_path / "a.flow", RECORDS[0], decoys(2_000_000), b"x" * 20, after)
    ids, loss = read(path)
    assert (ids[0], ids[-1]) == (IDS[0], IDS[1])
    assert len(ids) > 100
    assert loss.bytes < 4_000_000


ODD: dict[str, dict[str, Any]] = {
    "comment": {"comment": None, "marked": None},
    "comment of another type": {"comment": [1], "marked": 5},
    "metadata": {"metadata": None},
    "metadata a list": {"metadata": [1]},
    "a body of a number": {"metadata": {metadata.UPSTREAM_BODY: 3_000_000_000}},
    "edits": {"metadata": {metadata.HEALED: [[0]], metadata.CHUNKS: [[1]], "other": 1}},
    "a name": {"metadata": {5: 5, metadata.SESSION: 5, metadata.CALLS: "5"}},
    "an id": {"id": None},
    "an id that is a list": {"id": [1]},
}


@pytest.mark.parametrize("name", ODD)
def test_what_mitmproxy_takes_and_nobody_can_use_is_put_right(tmp_path: Path, name: str) -> None:
    changed = ODD[name]
    path = put(tmp_path / "a.flow", RECORDS[0], state(1, **changed), RECORDS[2])
    ids, loss = read(path)
    at = len(RECORDS[0])
    assert (ids, loss) == ([IDS[0], f"at-{at}" if "id" in changed else IDS[1], IDS[2]], Loss())
    flow = list(FlowFile(path))[1]
    assert (flow.comment, flow.marked) == ("", "")
    assert flow.metadata == ({"other": 1} if name == "edits" else {})
    assert flow_at(path, at).get_state() == flow.get_state()
    assert answer(flow)
    assert before_the_tap(flow)


def test_flows_of_other_kinds_are_passed_over(tmp_path: Path) -> None:
    others = [tflow.ttcpflow(), tflow.tdnsflow(), tflow.tudpflow()]
    socket = tflow.twebsocketflow()
    path = write(tmp_path / "a.flow", [others[0], FLOWS[0], *others[1:], socket, FLOWS[1]])
    assert read(path) == ([IDS[0], socket.id, IDS[1]], Loss())
    assert read(write(tmp_path / "b.flow", others)) == ([], Loss())
    # Nor is a file of these and damage none at all.
    ids, loss = read(put(tmp_path / "c.flow", record(others[0]), b"garbage"))
    assert (ids, loss.records) == ([], 1)


@pytest.mark.parametrize("version", [20, 19, 18])
def test_files_of_an_older_mitmproxy(tmp_path: Path, version: int) -> None:
    path = put(tmp_path / "a.flow", old(0, version), RECORDS[1])
    assert read(path) == (IDS[:2], Loss())
    first = next(iter(FlowFile(path)))
    assert first.request.content == FLOWS[0].request.content


def test_records_of_a_newer_mitmproxy(tmp_path: Path) -> None:
    newer = state(1, version=99)
    mixed = put(tmp_path / "a.flow", RECORDS[0], newer, RECORDS[2])
    ids, loss = read(mixed)
    assert ids == [IDS[0], IDS[2]]
    assert loss == Loss(1, len(newer), len(RECORDS[0]), 99)
    assert str(loss).startswith("1 unreadable record (")
    assert "flow format 99, this one reads up to 21): update mitmproxy" in str(loss)
    with pytest.raises(Unreadable, match=r"b\.flow was written by a newer mitmproxy .*: update"):
        read(put(tmp_path / "b.flow", newer, newer))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04 a zip", "is not a flow file: give mitmproxy's format"),
        (b"# notes\n", "is not a flow file"),
        (RECORDS[0][:500], "holds no whole exchange: 1 damaged record"),
        (b'{"v":1,"status":"ok"}\n{"v":1}\n', "log.entries"),
        (b'{"log":{"entries":[', "log.entries"),
    ],
    ids=["zip", "text", "one cut record", "pairs.jsonl", "an empty cut HAR"],
)
def test_what_is_no_flow_file_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = put(tmp_path / "a", data)
    with pytest.raises(Unreadable, match=said) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert read(put(tmp_path / "a.flow")) == ([], Loss())


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        read(tmp_path / "none.flow")
    with pytest.raises(Unreadable, match="Is a directory"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreadable, match="is a pipe or device: save what it gives to a file first"):
        read(tmp_path / "pipe")  # opening it would wait for a writer


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read anything")
def test_without_permission(tmp_path: Path) -> None:
    path = write(tmp_path / "a.flow", FLOWS)
    path.chmod(0)
    with pytest.raises(Unreadable, match="Permission denied"):
        read(path)


def test_a_flow_by_its_offset(tmp_path: Path) -> None:
    path = put(tmp_path / "a.flow", *RECORDS[:2], b"garbage", *RECORDS[2:])
    places = list(FlowFile(path).records())
    for offset, flow in places:
        assert flow_at(path, offset).get_state() == flow.get_state()
    offsets = [offset for offset, _ in places][::-1]
    assert [flow.id for flow in flows_at(path, offsets)] == IDS[::-1]
    with pytest.raises(Unreadable, match="has changed since it was read"):
        flow_at(path, offsets[0] + 1)
    write(path, FLOWS[:1])
    with pytest.raises(Unreadable, match="has changed"):
        flow_at(path, offsets[0])


# --- HAR


def har(flows: list[Any], indent: int | None = 4) -> bytes:
    """What mitmproxy's `save.har` writes."""
    return json.dumps(SaveHar().make_har(flows), indent=indent).encode()


@pytest.mark.parametrize("begin", [b"", BOM], ids=["plain", "bom"])
@pytest.mark.parametrize("indent", [4, None])
def test_a_har_file(tmp_path: Path, begin: bytes, indent: int | None) -> None:
    path = put(tmp_path / "a.har", begin, har(FLOWS, indent))
    ids, loss = read(path)
    assert (ids, loss) == (["har-1", "har-2", "har-3", "har-4"], Loss())
    for mine, flow in zip(FlowFile(path), FLOWS, strict=True):
        assert flow.response
        assert mine.response
        assert mine.request.content == flow.request.content
        assert mine.response.content == flow.response.content
        assert mine.request.url == flow.request.url
    with path.open("rb") as file:
        theirs = [flow.request.content for flow in FlowReader(file).stream()]  # type: ignore[attr-defined]
    assert theirs == [flow.request.content for flow in FlowFile(path)]
    assert [flow.id for flow in flows_at(path, [3, 1])] == ["har-4", "har-2"]
    assert flow_at(path, 0).id == "har-1"
    with pytest.raises(Unreadable, match="has changed"):
        flow_at(path, 9)


@pytest.mark.parametrize("begin", [b"\n", b" \t\r\n\n", BOM + b"\n", b"\n" * 3000])
def test_a_har_file_that_begins_with_blanks(tmp_path: Path, begin: bytes) -> None:
    path = put(tmp_path / "a.har", begin, har(FLOWS, None))
    assert read(path) == (["har-1", "har-2", "har-3", "har-4"], Loss())
    assert flow_at(path, 2).id == "har-3"


DEEP = 200_000


@pytest.mark.parametrize(
    ("deep", "read_"),
    [
        (b"[" * DEEP + b"]" * DEEP, [0, 2, 3]),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, [0, 2, 3]),
        (b'["]]]]\\"",' + b"[" * DEEP + b"]" * DEEP + b"]", [0, 2, 3]),
        # Where nothing says where it ends, the next that looks like an entry is the next.
        (b"[" * DEEP, [0, 2, 3]),
    ],
    ids=["lists", "objects", "brackets in a string", "not closed"],
)
def test_an_entry_nested_too_deeply_costs_no_other(
    tmp_path: Path, deep: bytes, read_: list[int]
) -> None:
    data = har(FLOWS, None)
    second = [at for at in range(len(data)) if data.startswith(b'{"startedDateTime"', at)][1]
    data = data[: second + 1] + b'"startedDateTime": ' + deep + b", " + data[second + 1 :]
    path = put(tmp_path / "a.har", data)
    found = list(FlowFile(path))
    assert [flow.request.content for flow in found] == [FLOWS[n].request.content for n in read_]
    assert read(path)[1].records == 1
    with pytest.raises(Unreadable, match="no readable exchange"):
        read(put(tmp_path / "b.har", b'{"log":{"entries":[{"startedDateTime":' + deep))


@pytest.mark.parametrize(
    "entry",
    [
        b'{"startedDateTime":',
        b'{"startedDateTime":' * 200 + b"!",
        b'{"startedDateTime":"x ',
        b'{"startedDateTime":"\\',
        b"[",
    ],
)
def test_what_looks_like_entries_all_along_is_not_gone_through_for_each(
    tmp_path: Path, entry: bytes
) -> None:
    data = b'{"log":{"entries":[' + entry * (2_000_000 // len(entry))
    begun = time.process_time()
    with pytest.raises(Unreadable, match="no readable exchange"):
        read(put(tmp_path / "a.har", data))
    assert time.process_time() - begun < 10  # a tenth of it; each time from there on: minutes


@pytest.mark.parametrize(
    "before",
    [
        b'{"log": {"pages": [{"entries": []}], ',
        b'{"entries": [], "log": {',
        b'{"other": {"log": {"entries": [1]}}, "log": {"comment": "\\"entries\\": [", ',
        b'{ "log" :\n{ "x" : {"entries": [{"startedDateTime": 1}]} , ',
    ],
)
def test_the_entries_of_a_har_file_are_those_of_its_log(tmp_path: Path, before: bytes) -> None:
    data = har(FLOWS, None)
    entries = data[data.index(b'"entries"') :]
    assert read(put(tmp_path / "a.har", before, entries)) == (
        ["har-1", "har-2", "har-3", "har-4"],
        Loss(),
    )


@pytest.mark.parametrize("before", [b'{"log": {"pages": [}, ', b'{"log" {', b"{" + b'{"a":' * 9])
def test_damage_before_the_entries_of_a_har_file(tmp_path: Path, before: bytes) -> None:
    data = har(FLOWS, None)
    path = put(tmp_path / "a.har", before, data[data.index(b'"entries"') :])
    assert read(path)[0] == ["har-1", "har-2", "har-3", "har-4"]


def test_a_har_file_without_a_list_of_entries(tmp_path: Path) -> None:
    for data in (b'{"log":{}}', b'{"log":{"entries":{}}}', b'{"log":5}', b"{}", b"{"):
        with pytest.raises(Unreadable, match=r"log\.entries"):
            read(put(tmp_path / "a.har", data))


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_a_har_file_of_compressed_bodies(tmp_path: Path, encoding: str) -> None:
    (flow,) = conversation([])
    assert flow.response
    body = flow.response.content
    flow.response.encode(encoding)
    (read_back,) = FlowFile(put(tmp_path / "a.har", har([flow])))
    assert read_back.response
    assert read_back.response.content == body


@pytest.mark.parametrize("body", ["データ 🌙".encode(), b"\x00\x01\xff binary", b""])
def test_bodies_of_a_har_file_keep_their_bytes(tmp_path: Path, body: bytes) -> None:
    (flow,) = conversation([])
    assert flow.response
    flow.response.raw_content = b"data: " + body + b"\n\n"
    (read_back,) = FlowFile(put(tmp_path / "a.har", har([flow])))
    assert read_back.response
    assert read_back.response.content == flow.response.content


def test_an_exchange_without_a_reply_in_a_har_file(tmp_path: Path) -> None:
    failed = tflow.tflow(err=True)
    assert read(put(tmp_path / "a.har", har([failed, FLOWS[0]])))[0] == ["har-1", "har-2"]


def test_a_cut_har_file_gives_its_whole_entries(tmp_path: Path) -> None:
    data = har(FLOWS)
    third = data.index(b'"startedDateTime"', data.index(b"0002-s-1") if b"0002-s-1" in data else 0)
    starts = [at for at in range(len(data)) if data.startswith(b'"startedDateTime"', at)]
    assert third in starts
    ids, loss = read(put(tmp_path / "a.har", data[: starts[2] + 400]))
    assert (ids, loss.records) == (["har-1", "har-2"], 1)
    assert loss.bytes == pytest.approx(400, abs=40)


@pytest.mark.parametrize("wrong", [b'"request" 1', b'"request": null', b'"request": {}'])
def test_a_damaged_entry_of_a_har_file_costs_no_other(tmp_path: Path, wrong: bytes) -> None:
    entries = [har([flow], None) for flow in FLOWS]
    whole = [entry[entry.index(b'{"startedDateTime"') : -3] for entry in entries]
    whole[1] = whole[1].replace(b'"request": ', wrong + b', "old": ', 1)
    data = b'{"log": {"entries": [' + b", ".join(whole) + b"]}}"
    path = put(tmp_path / "a.har", data)
    found = [flow.request.content for flow in FlowFile(path)]
    assert found == [FLOWS[n].request.content for n in (0, 2, 3)]
    assert read(path)[1].records == 1
    with pytest.raises(FlowReadException), path.open("rb") as file:
        list(FlowReader(file).stream())


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1e300, 1e18, 253_402_300_800.0])
def test_what_is_no_time_is_none(tmp_path: Path, odd: float) -> None:
    flow = FLOWS[0].copy()
    assert flow.response
    flow.error = tflow.terr()
    flow.request.timestamp_start = flow.request.timestamp_end = odd
    flow.response.timestamp_start = flow.response.timestamp_end = odd
    flow.error.timestamp = odd
    (one,) = FlowFile(write(tmp_path / "a.flow", [flow]))
    assert one.response
    assert one.error
    assert (one.request.timestamp_start, one.request.timestamp_end) == (0, None)
    assert (one.response.timestamp_start, one.response.timestamp_end) == (0, None)
    assert one.error.timestamp == 0


# --- which files


def test_a_file_named_twice_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    traffic, other = write(folder / "traffic.flow", FLOWS), write(tmp_path / "b.flow", FLOWS)
    soft, hard = tmp_path / "soft.flow", tmp_path / "hard.flow"
    soft.symlink_to(traffic)
    os.link(traffic, hard)
    assert flow_files([other, folder, traffic, soft, hard, folder / ".." / "run"]) == [
        *(other, traffic),
    ]
    assert flow_files([tmp_path]) == [other, hard]  # which is traffic.flow, and comes first


def test_what_paths_stand_for(tmp_path: Path) -> None:
    runs = [tmp_path / "captures" / name for name in ("20261129T1", "20261130T2")]
    for run in runs:
        run.mkdir(parents=True)
        write(run / "traffic.flow", FLOWS)
        (run / "pairs.jsonl").write_text("{}\n")
    (tmp_path / "captures" / "later").mkdir()
    loose = tmp_path / "loose"
    loose.mkdir()
    for name in ("b.flow", "a.har", "notes.txt"):
        (loose / name).touch()
    traffic = [run / "traffic.flow" for run in runs]
    assert flow_files([runs[0]]) == traffic[:1]
    assert flow_files([tmp_path / "captures"]) == traffic
    assert flow_files([loose, runs[1]]) == [loose / "a.har", loose / "b.flow", traffic[1]]
    assert flow_files([loose / "notes.txt"]) == [loose / "notes.txt"]
    with pytest.raises(Unreadable, match=r"later holds no flow file: neither traffic\.flow nor"):
        flow_files([tmp_path / "captures" / "later"])
    with pytest.raises(Unreadable, match="no such file or folder"):
        flow_files([tmp_path / "nothing"])
