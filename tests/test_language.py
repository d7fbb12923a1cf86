"""Which language a text is in: sure of itself for sentences, silent for names and titles."""

import time
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.documents.screening import (
    LANGUAGES,
    classify_text,
    detect_language,
    has_foreign_grammar,
    is_surely,
)
from kpyramid.errors import SettingsError
from kpyramid.settings import ExtractSettings, check_settings
from tests.rows import read_rows


def test_a_sentence_in_another_language_is_told() -> None:
    for code, sentence in read_rows("language.a_sentence_in_another_language_is_told"):
        assert detect_language(sentence, "en") == code
    for text, code in read_rows("language.a_short_sentence_is_told_by_its_function_words"):
        assert detect_language(text, "en") == code
    rows = "language.english_with_foreign_names_and_short_text_count_as_english"
    for text in read_rows(rows):
        assert detect_language(text, "en") == "en", text
    rows = "language.particles_of_names_and_borrowed_words_are_no_foreign_grammar"
    for text in read_rows(rows):
        assert not has_foreign_grammar(text, "en"), text
        assert detect_language(text, "en") == "en", text


def test_a_sentence_is_surely_english_only_with_a_word_that_says_so() -> None:
    assert is_surely("Ada Lovelace was born in London.", "en")
    assert not is_surely("Ada Lovelace, London", "en")
    assert not is_surely("Hij was in Weimar.", "en")
    assert not is_surely("Er war Komponist.", "en")


def test_another_script_is_another_language_however_short() -> None:
    assert detect_language("Москва", "en") != "en"
    assert detect_language("東京", "en") != "en"
    assert detect_language("القاهرة 1904", "en") != "en"


def test_creoles_that_are_written_as_english_are_no_answer() -> None:
    code, confidence = classify_text("Loge continued during October.", LANGUAGES["en"].alike)
    assert code == "en"
    assert 0 < confidence <= 1


def test_settings_know_the_languages_that_there_are_rules_for() -> None:
    annotation = typing.get_type_hints(ExtractSettings)["language"]
    assert set(typing.get_args(annotation)) == set(LANGUAGES)


def test_an_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"extract\.language.*'en'.*'fr'"):
        check_settings({"extract": {"language": "fr"}}, {"file": "some.toml"})


@given(st.text(max_size=400))
def test_any_text_has_a_language_and_always_the_same(text: str) -> None:
    code = detect_language(text, "en")
    assert 2 <= len(code) <= 3
    assert detect_language(text, "en") == code


@pytest.mark.parametrize("unit", ["a, ", "(", "x", "и ", "é", "\u202e", "😀", " ", "der die "])
def test_a_long_text_costs_no_more_than_its_sample(unit: str) -> None:
    detect_language("Der Verein wurde gegründet und ist alt", "en")  # loads the classifier
    began = time.process_time()
    detect_language(unit * 200_000, "en")
    assert time.process_time() - began < 1
