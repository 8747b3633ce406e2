"""Skimming JSON: the same as parsing it all and dropping what the shape does not name."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.ingest.adapters import json_stream
from touchstone.ingest.adapters.json_stream import BrokenJsonError, Each, Keep, Members, Shape, skim

SHAPE: dict[str, Shape] = {"eval": Keep(), "samples": Each({"scores": Keep(), "tries": Each({})})}
TEXTS = st.text(st.sampled_from('ab"\\{}[],: \n\u2028é'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
SAMPLES = st.fixed_dictionaries({}, optional={"scores": VALUES, "events": VALUES, "id": VALUES, 'a"scores': VALUES})
LOGS = st.fixed_dictionaries({}, optional={"eval": VALUES, "plan": VALUES, "samples": st.lists(SAMPLES, max_size=3)})


def pruned(value: dict[str, object], kept: tuple[str, ...]) -> dict[str, object]:
    return {key: None if isinstance(each, dict | list) and key not in kept else each for key, each in value.items()}


@given(LOGS, st.booleans(), st.data())
def test_the_same_as_parsing_everything(log: dict[str, object], ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(log, ensure_ascii=ascii_only, indent=data.draw(st.sampled_from([None, 1]))).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=5)))
    chunks = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    *elements, (_, rest) = skim(chunks, SHAPE)
    samples = log.get("samples", [])
    assert isinstance(samples, list)
    assert [json.loads(element) for _, element in elements] == [pruned(sample, ("scores",)) for sample in samples]
    expected = pruned(log, ("eval",)) | ({"samples": []} if "samples" in log else {})
    assert json.loads(rest) == expected


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.booleans(), st.data())
def test_the_members_of_an_object(members: dict[str, object], inner: bool, data: st.DataObject) -> None:
    text = json.dumps({"n": 1, "m": members} if inner else members, indent=data.draw(st.sampled_from([None, 1])))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=5)))
    chunks = [text[start:end].encode() for start, end in pairwise([0, *cuts, len(text)])]
    *parts, (_, rest) = skim(chunks, {"m": Members(Keep())} if inner else Members(Keep()))
    found = [pair for _, part in parts for pair in json.loads(part).items()]
    assert found == list(members.items())
    assert json.loads(rest) == ({"n": 1, "m": {}} if inner else {})


def test_members_with_a_shape_of_their_own() -> None:
    text = b'{"a": {"ok": true, "log": [1, {}]}, "n": 2, "b": {"tests": [[3], {}]}}'
    *parts, _ = skim([text], Members({"tests": Each(Keep())}))
    assert parts == [
        ("", b'{"a":{"ok": true, "log": null}}'),
        ("tests", b"[3]"),
        ("tests", b"{}"),
        ("", b'{"n": 2, "b":{"tests": []}}'),
    ]


def test_elements_of_inner_lists_come_before_their_object() -> None:
    text = b'{"samples": [{"tries": [{"a": [1]}, {}], "id": 1}]}'
    assert [name for name, _ in skim([text], SHAPE)] == ["tries", "tries", "samples", None]


def test_what_is_no_object_is_an_element_all_the_same() -> None:
    assert [text for _, text in skim([b"[1, {}, tru", b'e,["a"], "b"]'], Each({}))] == [
        b"1",
        b"{}",
        b"true",
        b'["a"]',
        b'"b"',
        b"[]",
    ]


def test_depth_costs_nothing() -> None:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000
    assert list(skim([b'{"events": ', deep, b"}"], {})) == [(None, b'{"events": null}')]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": [', "it ends early"),
        (b'{"a": "', "it ends early"),
        (b'{"a": 1}}', "a bracket is closed that was not opened"),
        (b"{} {}", "more than one value"),
        (b'{"tasks": {"a": [] "b": []}}', "no comma between two members"),
        (b'{"tasks": {"a": [], }}', "or one after the last"),
    ],
)
def test_broken_text(text: bytes, reason: str) -> None:
    with pytest.raises(BrokenJsonError, match=reason):
        list(skim([text], {**SHAPE, "tasks": Members(Keep())}))


@pytest.mark.parametrize("text", [b'{"id": "%s"}', b'{"eval": ["%s"]}', b'{"samples": [{"id": "%s"}]}'])
def test_no_part_grows_without_limit(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_BYTES", 1 << 20)
    with pytest.raises(BrokenJsonError, match="a part of over 1 MiB"):
        list(skim([text % (b"x" * (1 << 21))], SHAPE))
