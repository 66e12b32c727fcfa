from __future__ import annotations

import json

import pytest

from moontap.bundle.clean import Cleaner
from moontap.care.identities import Known
from moontap.care.words import Kind
from moontap.rules import Rules
from tests.care.planted import RULES, TEXT, TOKEN, UUID, VALUES, flow_of, left


def cleaner(rules: Rules = RULES) -> Cleaner:
    """One that has seen whom a capture names, in a flow that does not get into the bundle."""
    known = Known(rules.redact)
    headers = {"authorization": f"Bearer {TOKEN}", "x-claude-code-session-id": UUID}
    known.learn(flow_of(headers=headers))
    return Cleaner(rules, known, "salt")


HELD = f"{TEXT} {TOKEN} {UUID}"


def is_clean(text: str) -> bool:
    return not left(text.encode()) and TOKEN not in text and UUID not in text


@pytest.mark.parametrize(
    "text",
    [HELD, f"# {HELD}\n\n```\n{HELD}\n```\n", json.dumps({"a": [HELD]}), f"data: {HELD}\n\n"],
)
def test_a_text_is_cleaned_and_then_clean(text: str) -> None:
    one = cleaner()
    assert one.left_in(text)
    clean = one.text(text)
    assert is_clean(clean)
    assert one.left_in(clean) == []
    assert one.text(clean) == clean
    if text.startswith("{"):
        assert list(json.loads(clean)) == ["a"]
    assert one.counts == {}  # they count flows


def test_an_object_keeps_the_names_of_its_members() -> None:
    one = cleaner()
    value = {"Rosalind": "fine", "n": 1234567, "result": [{"customer": VALUES["selected"]}, HELD]}
    places = one.left_in_members(value)
    assert "$.result[0].customer: JSON path" in places
    assert "$.result[1]: secret" in places
    assert not any(place.startswith("$.Rosalind") for place in places)
    clean = one.members(value)
    assert list(clean) == list(value)
    assert (clean["Rosalind"], clean["n"]) == ("fine", 1234567)
    assert not left(json.dumps(clean["result"]).encode())
    assert one.left_in_members(clean) == []


def test_what_flows_became_is_known_in_the_texts_made_of_them() -> None:
    """A mail address becomes another mail address, which the rule for them finds as well."""
    one = cleaner()
    body = json.dumps({"to": VALUES["mail"]}).encode()
    (flow,) = one.flows([flow_of(response=body)])
    assert one.left_in_flows([flow]) == []
    assert flow.response
    now = json.loads(flow.response.content or b"")["to"]
    assert now != VALUES["mail"]
    assert one.text(f"to {now}") == f"to {now}"
    assert one.left_in(f"to {now}") == []
    assert one.counts[Kind.TEXT] == 1


def test_places_in_flows_are_said_and_not_what_stands_there() -> None:
    places = cleaner().left_in_flows([flow_of(), flow_of(request=json.dumps([HELD]).encode())])
    assert "flow 2: request body $[0]: secret" in places
    assert is_clean(" ".join(places))


def test_what_no_encoder_takes_is_left() -> None:
    assert cleaner().text("\ud800 fine") == "\ud800 fine"
