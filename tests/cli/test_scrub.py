"""`moontap scrub` as a process: files in and out, exit codes, and what it never says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mitmproxy import http, io

import moontap
from moontap.capture.metadata import UPSTREAM_BODY
from tests import samples
from tests.care.planted import TEXT, TOKEN, UUID, VALUES, flow_of, left
from tests.cli.commands import Moontap

RULES = """
scrub:
  names: [Rosalind, Zoë-Anaïs, 欧阳修远, Quentin Archer]
  paths: [/home/rosalind]
  texts: ['[\\w.]+@[\\w.]+\\w']
  json_paths: [$..customer]
"""


LEFT = "names and paths stay: say which in a rules file, section `scrub` (--rules FILE)\n"


def flow(number: int = 0) -> http.HTTPFlow:
    """As mitmproxy's own `-w` would save it: keys in clear."""
    history = [("Bash_0", TEXT, f"{number} {TEXT}")]
    one = flow_of(
        samples.messages_request(history),
        b"".join(samples.messages_events("Bash_0", command=TEXT)),
        {"authorization": f"Bearer {TOKEN}", "x-claude-code-session-id": UUID},
        "text/event-stream",
    )
    one.metadata[UPSTREAM_BODY] = one.response.raw_content if one.response else b""
    one.client_conn.peername = ("192.0.2.55", 51234)
    return one


def write(path: Path, *flows: http.HTTPFlow) -> Path:
    with path.open("wb") as file:
        for one in flows:
            io.FlowWriter(file).add(one)
    return path


def read(path: Path) -> list[http.HTTPFlow]:
    with path.open("rb") as file:
        return [one for one in io.FlowReader(file).stream() if isinstance(one, http.HTTPFlow)]


def unsaid(*texts: str) -> bool:
    said = "".join(texts).encode()
    return not left(said) and TOKEN.encode() not in said and UUID.encode() not in said


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def test_a_file_is_cleaned_and_then_clean(
    moontap_command: Moontap, rules: str, tmp_path: Path
) -> None:
    given = write(tmp_path / "in.flow", flow(0), flow(1))
    os.utime(given, (1, 1))
    before = given.read_bytes()
    check = moontap_command.run("scrub", "--check", "in.flow", "--rules", rules)
    assert check.returncode == 1
    lines = check.stdout.splitlines()
    assert "in.flow: flow 1: request header authorization: secret" in lines
    assert "in.flow: flow 2: request header x-claude-code-session-id: identity" in lines
    content = "request body $.messages[2].content[0].content"
    assert f"in.flow: flow 2: {content}: name" in lines
    assert f"in.flow: flow 2: {content}: path" in lines
    assert any(UPSTREAM_BODY in line for line in lines)
    assert "in.flow: flow 1: client connection: connection" in lines

    done = moontap_command.run("scrub", "in.flow", "out.flow", "--rules", rules)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 exchanges in out.flow\n")
    assert "secret" in done.stdout
    assert "replaced, in 2 exchanges" in done.stdout
    out = tmp_path / "out.flow"
    data = out.read_bytes()
    assert unsaid(check.stdout, done.stdout)
    assert left(data) == set()
    assert TOKEN.encode() not in data
    assert UUID.encode() not in data
    assert b"192.0.2" not in data
    assert out.stat().st_mode & 0o777 == 0o600
    assert given.read_bytes() == before
    assert not list(tmp_path.glob(".*"))

    again = moontap_command.run("scrub", "--check", "out.flow", "--rules", rules)
    assert (again.returncode, again.stdout) == (0, "clean: 2 exchanges in 1 file\n")
    second = moontap_command.run("scrub", "out.flow", "twice.flow", "--rules", rules)
    assert second.stdout == "2 exchanges in twice.flow\n  nothing was to be replaced\n"
    assert (tmp_path / "twice.flow").read_bytes() == data


def test_without_rules_secrets_and_identities_alone(
    moontap_command: Moontap, tmp_path: Path
) -> None:
    write(tmp_path / "in.flow", flow())
    done = moontap_command.run("scrub", "in.flow", "out.flow")
    assert done.returncode == 0
    assert done.stdout.endswith(LEFT)
    data = (tmp_path / "out.flow").read_bytes()
    assert TOKEN.encode() not in data
    assert UUID.encode() not in data
    assert VALUES["name"].encode() in data
    check = moontap_command.run("scrub", "--check", "out.flow")
    assert (check.returncode, check.stdout) == (0, f"clean: 1 exchange in 1 file\n{LEFT}")


def test_check_of_files_without_an_exchange(moontap_command: Moontap, tmp_path: Path) -> None:
    for name in ("a.flow", "b.flow"):
        (tmp_path / name).touch()
    check = moontap_command.run("scrub", "--check", "a.flow", "b.flow")
    assert (check.returncode, check.stdout, check.stderr) == (0, "no exchange in 2 files\n", "")


def test_check_says_no_secret_that_is_a_name(moontap_command: Moontap, tmp_path: Path) -> None:
    one = flow()
    key = "sk-aB3dE5gH7jK9mN1pQ3rS5tU7"
    one.request.headers[f"x-{key}"] = key
    one.metadata[key] = key
    write(tmp_path / "in.flow", one)
    check = moontap_command.run("scrub", "--check", "in.flow")
    assert check.returncode == 1
    assert "in.flow: flow 1: request header names: secret" in check.stdout.splitlines()
    assert "in.flow: flow 1: metadata keys: secret" in check.stdout.splitlines()
    assert key not in check.stdout + check.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_leaves_nothing(
    moontap_command: Moontap, tmp_path: Path, number: signal.Signals
) -> None:
    record = write(tmp_path / "one.flow", flow()).read_bytes()
    (tmp_path / "in.flow").write_bytes(record * 2000)
    process = subprocess.Popen(
        [sys.executable, "-m", "moontap.cli", "scrub", "in.flow", "out.flow"],
        cwd=tmp_path,
        env=moontap_command.environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.flow.*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tmp_path.glob(".out.flow.*.part"))
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert not list(tmp_path.glob("*out.flow*"))


def test_a_salt(moontap_command: Moontap, rules: str, tmp_path: Path) -> None:
    write(tmp_path / "in.flow", flow())
    results = []
    for name, salt in (("a", "x"), ("b", "x"), ("c", "y"), ("d", None)):
        given = ["--salt", salt] if salt else []
        moontap_command.run("scrub", "in.flow", f"{name}.flow", "--rules", rules, *given)
        results.append((tmp_path / f"{name}.flow").read_bytes())
    assert results[0] == results[1]
    assert len(set(results)) == 3


def test_a_capture_folder_and_a_har(moontap_command: Moontap, rules: str, tmp_path: Path) -> None:
    folder = tmp_path / "20261129T131500Z-4711"
    folder.mkdir()
    write(folder / "traffic.flow", flow())
    done = moontap_command.run("scrub", str(folder), "out/new.flow", "--rules", rules)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(read(tmp_path / "out" / "new.flow")) == 1
    har = {
        "log": {
            "entries": [
                {
                    "startedDateTime": "2026-11-29T13:15:00.000Z",
                    "time": 5,
                    "request": {
                        "method": "POST",
                        "url": "https://api.moonshot.cn/v1/chat/completions",
                        "httpVersion": "HTTP/1.1",
                        "cookies": [],
                        "headers": [{"name": "authorization", "value": f"Bearer {TOKEN}"}],
                        "queryString": [],
                        "headersSize": 1,
                        "bodySize": 1,
                        "postData": {"mimeType": "application/json", "text": json.dumps([TEXT])},
                    },
                    "response": {
                        "status": 200,
                        "statusText": "OK",
                        "httpVersion": "HTTP/1.1",
                        "cookies": [],
                        "headers": [],
                        "content": {"size": 2, "mimeType": "application/json", "text": "{}"},
                        "redirectURL": "",
                        "headersSize": 1,
                        "bodySize": 2,
                    },
                    "cache": {},
                    "timings": {"send": 1, "wait": 1, "receive": 1},
                }
            ]
        }
    }
    (tmp_path / "in.har").write_text(json.dumps(har), encoding="utf-8")
    done = moontap_command.run("scrub", "in.har", "har.flow", "--rules", rules)
    assert (done.returncode, done.stderr) == (0, "")
    data = (tmp_path / "har.flow").read_bytes()
    assert left(data) == set()
    assert TOKEN.encode() not in data
    (found,) = read(tmp_path / "har.flow")
    assert found.request.headers["authorization"] == "Bearer ***"


def test_a_damaged_file_is_used_as_far_as_it_goes(
    moontap_command: Moontap, rules: str, tmp_path: Path
) -> None:
    given = write(tmp_path / "in.flow", flow(0), flow(1), flow(2))
    given.write_bytes(given.read_bytes()[:-50])
    done = moontap_command.run("scrub", "in.flow", "out.flow", "--rules", rules)
    assert done.returncode == 2
    assert "1 damaged record" in done.stderr
    assert len(read(tmp_path / "out.flow")) == 2
    assert left((tmp_path / "out.flow").read_bytes()) == set()
    out = tmp_path / "out.flow"
    out.write_bytes(out.read_bytes()[:-50])
    check = moontap_command.run("scrub", "--check", "out.flow", "--rules", rules)
    assert (check.returncode, check.stdout) == (2, "")
    assert "1 damaged record" in check.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.flow"], "give IN and OUT, or --check and the files to look at"),
        (["in.flow", "a", "b"], "give IN and OUT"),
        (["in.flow", "there.flow"], "there.flow exists: --force replaces it"),
        (["in.flow", "in.flow", "--force"], "in.flow is an input: name another file to write"),
        (["in.flow", "link.flow", "--force"], "link.flow is an input"),
        (["in.flow", "-"], "- would be standard output: name a file"),
        (["in.flow", "rules.yaml", "--rules", "rules.yaml", "--force"], "rules.yaml is an input"),
        (["in.flow", "folder"], "folder is a folder: name a file in it"),
        (["none.flow", "out.flow"], "none.flow: no such file or folder"),
        (["folder", "out.flow"], "folder holds 2 flow files: name one"),
        (["rules.yaml", "out.flow"], "rules.yaml is not a flow file"),
        (["in.flow", "out.flow", "--rules", "none.yaml"], "--rules: none.yaml: cannot be read"),
        (["--check", "none.flow"], "none.flow: no such file or folder"),
    ],
)
def test_wrong_usage(
    moontap_command: Moontap, rules: str, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path / "in.flow", flow())
    (tmp_path / "there.flow").write_bytes(b"mine")
    (tmp_path / "link.flow").symlink_to("in.flow")
    (tmp_path / "folder").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "folder" / f"{name}.flow", flow())
    done = moontap_command.run("scrub", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("moontap scrub: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.flow").exists()
    assert (tmp_path / "there.flow").read_bytes() == b"mine"
    assert len(read(tmp_path / "in.flow")) == 1


def test_force_replaces(moontap_command: Moontap, tmp_path: Path) -> None:
    write(tmp_path / "in.flow", flow())
    (tmp_path / "there.flow").write_bytes(b"mine")
    assert moontap_command.run("scrub", "in.flow", "there.flow", "--force").returncode == 0
    assert len(read(tmp_path / "there.flow")) == 1


def test_check_of_several_files(moontap_command: Moontap, rules: str, tmp_path: Path) -> None:
    write(tmp_path / "in.flow", flow())
    moontap_command.run("scrub", "in.flow", "clean.flow", "--rules", rules)
    check = moontap_command.run("scrub", "--check", "clean.flow", "in.flow", "--rules", rules)
    assert check.returncode == 1
    assert {line.partition(":")[0] for line in check.stdout.splitlines()} == {"in.flow"}
    changed = read(tmp_path / "clean.flow")[0]
    changed.request.headers["x-note"] = f"by {VALUES['name']}"
    write(tmp_path / "changed.flow", changed)
    check = moontap_command.run("scrub", "--check", "changed.flow", "--rules", rules)
    assert check.stdout == "changed.flow: flow 1: request header x-note: name\n"


def test_mitmdump_reads_it_with_the_addon(
    moontap_command: Moontap, rules: str, tmp_path: Path
) -> None:
    write(tmp_path / "in.flow", flow(0), flow(1))
    moontap_command.run("scrub", "in.flow", "out.flow", "--rules", rules)
    script = Path(moontap.__file__).parent.parent / "main.py"
    mitmdump = Path(sys.executable).with_name("mitmdump")
    done = subprocess.run(
        [mitmdump, "-nr", "out.flow", "-s", script, "--set", "moontap_dir=again"],
        cwd=tmp_path,
        env=moontap_command.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "2 requests" in done.stdout + done.stderr
    (again,) = (tmp_path / "again").glob("*Z-*")
    assert [one.request.raw_content for one in read(again / "traffic.flow")] == [
        one.request.raw_content for one in read(tmp_path / "out.flow")
    ]
    (line, *_) = (again / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert left(line.encode()) == set()
    check = moontap_command.run("scrub", "--check", str(again), "--rules", rules)
    assert (check.returncode, check.stdout) == (0, "clean: 2 exchanges in 1 file\n")
