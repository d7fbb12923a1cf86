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

SENTENCES = {
    "de": "Der Verein wurde 1904 in Hamburg gegründet und gewann später mehrere Preise.",
    "fr": "L'entreprise a été fondée à Lyon en 1904 par un ingénieur écossais.",
    "es": "La empresa fue fundada en Madrid en 1904 por un ingeniero escocés.",
    "it": "La società è stata fondata a Torino nel 1904 da un ingegnere scozzese.",
    "pt": "A empresa foi fundada em Lisboa em 1904 por um engenheiro escocês.",
    "nl": "Het bedrijf werd in 1904 opgericht in Utrecht door een Schotse ingenieur.",
    "da": "Selskabet blev grundlagt i Odense i 1904 af en skotsk ingeniør.",
    "sv": "Företaget grundades i Uppsala år 1904 av en skotsk ingenjör.",
    "no": "Hun studerte kjemi ved universitetet i Bergen og vant senere flere priser for det.",
    "pl": "Firma została założona w Krakowie w 1904 roku przez szkockiego inżyniera.",
    "cs": "Společnost byla založena v Brně v roce 1904 skotským inženýrem.",
    "tr": "Şirket 1904 yılında İzmir'de İskoç bir mühendis tarafından kuruldu.",
    "fi": "Skotlantilainen insinööri rakensi sillan vuonna 1821, ja se yhdistää kaksi kylää.",
    "hu": "A céget 1904-ben egy skót mérnök alapította Szegeden.",
    "ro": "Compania a fost înființată la Cluj în 1904 de un inginer scoțian.",
    "id": "Perusahaan ini didirikan di Bandung pada tahun 1904 oleh seorang insinyur.",
    "vi": "Công ty được thành lập tại Hà Nội vào năm 1904.",
    "la": "Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae.",
    "ru": "Компания была основана в Казани в 1904 году.",
    "el": "Η εταιρεία ιδρύθηκε στην Αθήνα το 1904.",
    "ar": "تأسست الشركة في القاهرة عام 1904.",
    "he": "החברה נוסדה בחיפה בשנת 1904.",
    "zh": "该公司于1904年在上海成立。",
    "ja": "会社は1904年に大阪で設立された。",
    "ko": "이 회사는 1904년 서울에서 설립되었다.",
    "hi": "कंपनी की स्थापना 1904 में मुंबई में हुई थी।",
    "th": "บริษัทก่อตั้งขึ้นในกรุงเทพในปี 1904",
}


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_a_sentence_in_another_language_is_told(code: str) -> None:
    assert detect_language(SENTENCES[code], "en") == code


@pytest.mark.parametrize(
    "text", read_rows("language.english_with_foreign_names_and_short_text_count_as_english")
)
def test_english_with_foreign_names_and_short_text_count_as_english(text: str) -> None:
    assert detect_language(text, "en") == "en"


@pytest.mark.parametrize(
    ("text", "code"), read_rows("language.a_short_sentence_is_told_by_its_function_words")
)
def test_a_short_sentence_is_told_by_its_function_words(text: str, code: str) -> None:
    assert detect_language(text, "en") == code


@pytest.mark.parametrize(
    "text", read_rows("language.particles_of_names_and_borrowed_words_are_no_foreign_grammar")
)
def test_particles_of_names_and_borrowed_words_are_no_foreign_grammar(text: str) -> None:
    assert not has_foreign_grammar(text, "en")
    assert detect_language(text, "en") == "en"


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
