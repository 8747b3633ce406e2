"""The names of models: shown as they are, with file names from which they can be had back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.errors import TouchstoneError
from touchstone.storage.files import PROBLEMS_PART, check_model_name, check_name, file_key, name_of_key


@pytest.mark.parametrize("name", ["../evil", "a/b", "a\\b", "x\n", "", "-rf", "x" * 101])
def test_a_pin_is_a_plain_word(name: str) -> None:
    with pytest.raises(TouchstoneError, match="is not allowed"):
        check_name(name, "pin")


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4o", "anthropic:claude", "Claude Opus 4.5", "@cf/meta/llama", "模型", "../../etc", "-rf", "a~b%2F"],
)
def test_models_keep_their_names(name: str) -> None:
    assert check_model_name(name) == name
    key = file_key(name)
    assert name_of_key(key) == name
    assert "/" not in key and key[0] not in ".-@~" and len(key) < 100


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\nb", "\x1b[31mred", "a\u202eb", "a\0", PROBLEMS_PART, "x" * 201, "字" * 30, "a...b"]
)
def test_names_that_no_model_can_have(name: str) -> None:
    with pytest.raises(TouchstoneError, match="is not allowed") as caught:
        check_model_name(name)
    assert "\n" not in str(caught.value)


@given(st.text(min_size=1, max_size=20))
def test_the_file_name_gives_the_name_back(name: str) -> None:
    try:
        check_model_name(name)
    except TouchstoneError:
        return
    assert name_of_key(file_key(name)) == name
    assert set(file_key(name)) <= set("%ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-")


@pytest.mark.parametrize("text", ["100%", "%zz", "%2f", "%41", "plain"])
def test_a_file_name_that_is_no_key_is_the_name(text: str) -> None:
    assert name_of_key(text) == text
