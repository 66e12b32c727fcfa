from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.ids import MAX_LENGTH, IdMemory, Mode, Namer, Style, opaque, style_for

PLACE = ("msg_a1", 0, 1)
UPSTREAM = st.one_of(
    st.text(min_size=1, max_size=60),
    st.from_regex(r"\A[A-Za-z_]{1,12}[_:][0-9]{1,4}\Z"),
    st.from_regex(r"\Afunctions\.[a-z_]{1,12}:[0-9]{1,4}\Z"),
    st.from_regex(r"\A[a-z]{1,30}_t[a-z2-7]{10}\Z"),
)
PLACES = st.tuples(st.text(max_size=20), st.integers(0, 3), st.integers(0, 9))


@pytest.mark.parametrize(
    ("style", "model", "resolved"),
    [
        *(
            (Style.AUTO, model, Style.NATIVE)
            for model in (
                "kimi-k2",
                "kimi-k2.5",
                "kimi-k2.6",
                "kimi-k2.7-code",
                "kimi-k2-0905-preview",
                "k2",
                "kimi-k2-thinking",
                "moonshotai/Kimi-K2-Instruct",
                "KIMI-K2.5",
                "accounts/x/kimi-k2p5",
            )
        ),
        *(
            (Style.AUTO, model, Style.OPAQUE)
            for model in (
                "kimi-k3",
                "kimi-k3.1-pro",
                "k3",
                "k3-256k",
                "kimi-for-coding",
                "k25",
                "claude-x",
                "",
                None,
            )
        ),
        (Style.OPAQUE, "kimi-k2", Style.OPAQUE),
        (Style.NATIVE, "kimi-k3", Style.NATIVE),
    ],
)
def test_style_for(style: Style, model: str | None, resolved: Style) -> None:
    assert style_for(style, model) is resolved


@pytest.mark.parametrize(
    ("upstream_id", "readable"),
    [
        ("pwd_0", "pwd_0"),
        ("get_weather:0", "get_weather_0"),
        ("functions.Bash:3", "functions_Bash_3"),
        ("a b/é", "a_b__"),
        ("x" * 28, "x" * 28),
        ("y" * 29, "y" * 28),
        ("undefined", "undefined"),
        ("0", "0"),
    ],
)
def test_an_opaque_id_begins_with_the_readable_one(upstream_id: str, readable: str) -> None:
    assert re.fullmatch(re.escape(readable) + "_t[a-z2-7]{10}", opaque(upstream_id, *PLACE))


def test_an_opaque_id_never_changes_between_versions() -> None:
    # Replayed captures compare ids, so this value is a contract.
    assert opaque("Bash_0", "msg_a1", 0, 1) == "Bash_0_tbiijbs4ejl"


@given(upstream_id=UPSTREAM, place=PLACES)
@settings(max_examples=300, deadline=None)
def test_any_opaque_id(upstream_id: str, place: tuple[str, int, int]) -> None:
    new = opaque(upstream_id, *place)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", new)
    assert len(new) <= MAX_LENGTH
    assert not re.search(r"_[0-9]+$", new)
    assert opaque(upstream_id, *place) == new
    assert opaque(new, *place) == new


@given(upstream_id=UPSTREAM, places=st.lists(PLACES, min_size=2, max_size=5, unique=True))
@settings(max_examples=100, deadline=None)
def test_other_places_give_other_ids(upstream_id: str, places: list[tuple[str, int, int]]) -> None:
    assert len({opaque(upstream_id, *place) for place in places}) == len(places)


def test_an_id_made_elsewhere_is_made_anew() -> None:
    made = opaque("Bash_0", *PLACE)
    assert opaque(made, "msg_a2", 0, 1) not in (made, opaque("Bash_0", "msg_a2", 0, 1))


# the namer

FIRST_USES = [*"ab", "a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("mode", "taken", "kept"),
    [
        (Mode.OFF, "", "111111"),
        (Mode.OFF, "abc", "111111"),
        (Mode.DUPLICATES, "", "110010"),
        (Mode.DUPLICATES, "b", "100010"),
        (Mode.DUPLICATES, "abc", "000000"),
        (Mode.ALL, "", "000000"),
    ],
)
def test_which_ids_change(mode: Mode, taken: str, kept: str) -> None:
    namer = Namer(mode, Style.OPAQUE, taken)
    names = [namer.name(id_, "m", 0, index) for index, id_ in enumerate(FIRST_USES)]
    for name, id_, keeps in zip(names, FIRST_USES, kept, strict=True):
        assert (name == id_) == (keeps == "1")
    if mode is not Mode.OFF:
        assert len(set(names)) == len(names)
        assert not set(names) - set(FIRST_USES) & set(taken)


@pytest.mark.parametrize(
    "upstream_id",
    ["chatcmpl-tool-0d9f6a2b4c3e4b6f8a1d2e3f4a5b6c7d", "toolu_01A09q90qw90lq917835lq9"],
)
def test_unique_ids_stay_in_duplicates(upstream_id: str) -> None:
    assert Namer(Mode.DUPLICATES, Style.OPAQUE, ["other"]).name(upstream_id, *PLACE) == upstream_id


def test_a_made_id_that_is_taken_is_not_given_again() -> None:
    # Seen where a server gives two responses one message id.
    taken = [opaque("a", *PLACE)]
    namer = Namer(Mode.ALL, Style.OPAQUE, taken)
    new = namer.name("a", *PLACE)
    assert new not in taken
    assert Namer(Mode.ALL, Style.OPAQUE, taken).name("a", *PLACE) == new


@pytest.mark.parametrize(
    ("mode", "taken", "ids", "names"),
    [
        pytest.param(
            Mode.DUPLICATES, [], ["Bash:0", "Bash:0"], ["Bash:0", "Bash:1"], id="first use"
        ),
        pytest.param(Mode.DUPLICATES, ["Bash:0"], ["Bash:0"], ["Bash:1"], id="next free"),
        pytest.param(
            Mode.DUPLICATES,
            ["Bash:0", "functions.Read:6"],
            ["Bash:0"],
            ["Bash:7"],
            id="one count for all tools",
        ),
        pytest.param(
            Mode.DUPLICATES,
            ["functions.Bash:3"],
            ["functions.Bash:3"],
            ["functions.Bash:4"],
            id="shape kept",
        ),
        pytest.param(Mode.DUPLICATES, ["a:b:3"], ["a:b:3"], ["a:b:4"], id="colons in the name"),
        pytest.param(Mode.DUPLICATES, ["x:007"], ["x:007"], ["x:8"], id="leading zeros"),
        pytest.param(
            Mode.DUPLICATES, ["x:0"], ["x:0", "y:5", "x:0"], ["x:1", "y:5", "x:6"], id="counts on"
        ),
        pytest.param(
            Mode.DUPLICATES,
            ["x:0"],
            ["y:3", "x:0", "x:0"],
            ["y:3", "x:4", "x:5"],
            id="counts what came",
        ),
        pytest.param(
            Mode.ALL, ["x:0"], ["y:1", "x:0"], ["y:1", "x:2"], id="a free number is kept in all"
        ),
        pytest.param(Mode.OFF, ["x:0"], ["x:0", "x:0"], ["x:0", "x:0"], id="off"),
    ],
)
def test_native_ids(mode: Mode, taken: list[str], ids: list[str], names: list[str]) -> None:
    namer = Namer(mode, Style.NATIVE, taken)
    assert [namer.name(id_, "m", 0, n) for n, id_ in enumerate(ids)] == names


@pytest.mark.parametrize(
    "upstream_id", ["functionsexec5", "Bash_0", ":3", "Bash:", "Bash:x", "x:" + "9" * 16]
)
def test_an_id_without_the_native_shape_gets_an_opaque_one(upstream_id: str) -> None:
    namer = Namer(Mode.DUPLICATES, Style.NATIVE, [upstream_id])
    assert namer.name(upstream_id, *PLACE) == opaque(upstream_id, *PLACE)


@given(
    mode=st.sampled_from([Mode.DUPLICATES, Mode.ALL]),
    style=st.sampled_from([Style.OPAQUE, Style.NATIVE]),
    taken=st.lists(st.sampled_from(["x:0", "x:1", "y:4", "a_0"])),
    ids=st.lists(st.sampled_from(["x:0", "x:1", "x:2", "y:4", "y:5", "a_0", "a_1"]), max_size=12),
)
@settings(max_examples=200, deadline=None)
def test_names_are_never_given_twice(
    mode: Mode, style: Style, taken: list[str], ids: list[str]
) -> None:
    namer = Namer(mode, style, taken)
    names = [namer.name(id_, "m", 0, n) for n, id_ in enumerate(ids)]
    assert len(set(names)) == len(names)
    assert not set(names) & set(taken)


# the memory


def test_the_memory_keeps_sessions_apart() -> None:
    memory = IdMemory()
    memory.add("a", ["x", "y", "x"])
    memory.add("b", ["z"])
    memory.add("a", ["w"])
    assert (memory.used("a"), memory.used("b"), memory.used("c")) == ({"w", "x", "y"}, {"z"}, set())


def test_the_session_quiet_the_longest_is_forgotten_first() -> None:
    memory = IdMemory(limit=4)
    memory.add("a", ["1", "2"])
    memory.add("b", ["1", "2"])
    memory.add("a", ["2"])
    memory.add("c", ["1"])
    assert (memory.used("a"), memory.used("b"), memory.used("c")) == ({"1", "2"}, set(), {"1"})


def test_one_session_past_the_limit_starts_afresh() -> None:
    memory = IdMemory(limit=3)
    memory.add("a", ["1"])
    memory.add("b", ["1", "2", "3", "4"])
    assert (memory.used("a"), memory.used("b")) == (set(), set())
    memory.add("b", ["5", "6", "7"])
    assert memory.used("b") == {"5", "6", "7"}


def test_sessions_without_calls_take_no_room() -> None:
    memory = IdMemory()
    for number in range(100):
        memory.add(f"session {number}", [])
    assert not memory._used


@given(
    adds=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.lists(st.sampled_from("0123456789"), max_size=6)),
        max_size=40,
    )
)
@settings(max_examples=200, deadline=None)
def test_the_bound_of_the_memory_holds(adds: list[tuple[str, list[str]]]) -> None:
    memory = IdMemory(limit=12)
    for key, ids in adds:
        memory.add(key, ids)
        assert set(ids) <= memory.used(key)
        assert sum(len(memory.used(other)) for other in "abcdef") <= 12
