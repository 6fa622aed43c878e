"""Glossaries: terms get the translations that a user gives, and training text has translations
behind some of its terms.
"""

import cProfile
import random
import re
import time
import tracemalloc
from unicodedata import normalize

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines import glossary
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs, token_ids
from pipelines.corpora import terms
from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.terms import GivenTerms, with_terms
from pipelines.glossary import Glossary, read_terms
from pipelines.vocabularies import learn
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.protected_spans import KINDS, OF_TERMS, ProtectedSpans, with_translation

ALL = ProtectedSpans(tuple(KINDS))
LEARNED = ProtectedSpans(tuple(KINDS), glossary_rate=0.1)
TERMS = {"light": "Leuchte", "light switch": "Lichtschalter", "ACME": "ACME", "C++": "C++"}


def marked(text, terms=None):
    return Glossary(TERMS if terms is None else terms, ALL).applied(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the light is on", "the ⟦Leuchte⟧ is on"),
        ("the light switch", "the ⟦Lichtschalter⟧"),
        ("Light on", "⟦Leuchte⟧ on"),
        ("lights, delight", "lights, delight"),
        ("light-light.", "⟦Leuchte⟧-⟦Leuchte⟧."),
        ("acme ACME", "acme ⟦ACME⟧"),
        ("C++ and C", "⟦C++⟧ and C"),
        ("{light} <b title='light'> light", "{light} <b title='light'> ⟦Leuchte⟧"),
        ("⟦light⟧ light", "⟦light⟧ ⟦Leuchte⟧"),
        ("", ""),
    ],
)
def test_terms_are_marked(text, expected):
    assert marked(text) == expected


def test_a_model_that_learned_terms_reads_translations_behind_them():
    applied = Glossary(TERMS, LEARNED).applied
    expected = "⟪ Light⟹ Leuchte⟫: the⟪ light switch⟹ Lichtschalter⟫, {light}"
    assert applied("Light: the light switch, {light}") == expected
    assert applied("⟦light⟧ no term") == "⟦light⟧ no term"


@pytest.mark.parametrize("term_form", ["NFC", "NFD"])
@pytest.mark.parametrize("text_form", ["NFC", "NFD"])
def test_letters_with_accents_are_the_same_in_one_character_or_two(term_form, text_form):
    terms = {normalize(term_form, "café"): "Kaffeehaus", "cafe": "Kantine"}
    text = marked(normalize(text_form, "Café, un café, une caféine, CAFE, cafe"), terms)
    unmarked = normalize(text_form, "une caféine")
    assert text == f"⟦Kaffeehaus⟧, un ⟦Kaffeehaus⟧, {unmarked}, CAFE, ⟦Kantine⟧"
    assert marked("5 \u2126", {"\u2126": "Ohm"}) == "5 ⟦Ohm⟧"


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        # Before or behind the term stands, or the term ends with, a vowel sign or a tone.
        ("कम", "नाकम कम", "नाकम ⟦x⟧"),
        ("कल", "कला कल", "कला ⟦x⟧"),
        ("बत्ती", "बत्तीस बत्ती", "बत्तीस ⟦x⟧"),
        ("ไฟ", "ไฟ้ ไฟ", "ไฟ้ ⟦x⟧"),
        # Without spaces between words.
        ("灯", "请打开灯。", "请打开⟦x⟧。"),
        ("ไฟ", "เปิดไฟห้อง", "เปิด⟦x⟧ห้อง"),
        ("ライト", "ハイライト、このライトを", "ハイライト、この⟦x⟧を"),
    ],
)
def test_a_vowel_sign_belongs_to_its_word(term, text, expected):
    assert marked(text, {term: "x"}) == expected


def test_a_term_has_the_case_of_its_first_letter_or_of_its_text():
    assert marked("Dog and dog", {"dog": "hund"}) == "⟦Hund⟧ and ⟦hund⟧"
    assert marked("Öl öl", {"öl": "oil"}) == "⟦Oil⟧ ⟦oil⟧"
    terms = {"light": "Leuchte", "us": "uns", "Acme Hub": "Acme-Hub", "ON": "AN"}
    assert marked("ACME HUB: LIGHT {light}", terms) == "⟦ACME-HUB⟧: ⟦LEUCHTE⟧ {light}"
    assert marked("ON", terms) == "⟦AN⟧"
    assert marked("Bring the US LIGHT to us", terms) == "Bring the US LIGHT to ⟦uns⟧"


def test_terms_come_before_those_of_another_glossary_which_are_not_read_again(monkeypatch):
    server = Glossary({"light": "Leuchte", "Lamp": "Lampe", "on": "an"}, ALL)
    read = []
    monkeypatch.setattr(glossary, "_refuse", lambda place, *term: read.append(term))
    both = Glossary({"light": "Licht", "light on": "Licht an", "lamp": "Lämpchen"}, ALL, server)
    assert [term for term, _ in read] == ["light", "light on", "lamp"]
    assert both.applied("Light on, on: a light") == "⟦Licht an⟧, ⟦an⟧: a ⟦Licht⟧"
    assert both.applied("Lamp") == "⟦Lämpchen⟧"
    assert server.applied("Lamp, light") == "⟦Lampe⟧, ⟦Leuchte⟧"


def test_terms_that_begin_alike_take_no_longer():
    terms = {f"{'.' * 190}{number}": "x" for number in range(2000)} | {"b": "x"}
    began = time.thread_time()
    assert marked("." * 2000, terms) == "." * 2000
    assert time.thread_time() - began < 0.5


def test_terms_that_begin_alike_and_end_within_words_take_no_more_steps():
    words = Glossary({f"{'ab ' * count}a": "x" for count in range(1, 160)}, ALL)
    text = "ab " * 1600
    with cProfile.Profile() as profile:
        assert words.applied(text) == text
    assert sum(entry.callcount for entry in profile.getstats()) < 20 * len(text)


@given(st.text(max_size=60))
def test_any_text_is_kept_but_for_the_marks(text):
    assert marked(text, {}) == text
    marked_text = marked(text, {"light": "light"})
    unmarked = marked_text.replace("⟦light⟧", "light").replace("⟦Light⟧", "Light")
    assert unmarked == text.replace("⟦light⟧", "light").replace("⟦Light⟧", "Light")


@pytest.mark.parametrize(
    ("terms", "fault"), [({" ": "a"}, "empty"), ({"a": ""}, "empty"), ({"a": "⟦b⟧"}, "mark ⟦")]
)
def test_invalid_terms_and_a_model_without_spans_are_refused(terms, fault):
    for protected, message in ((ALL, fault), (None, "--protect")):
        with pytest.raises(ValueError, match=message):
            Glossary(terms, protected)


def test_a_file_has_two_columns(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("light\tLeuchte\n\nACME \t ACME\nlight\tLeuchte\n \n", encoding="utf-8")
    assert read_terms(path) == {"light": "Leuchte", "ACME": "ACME"}
    for text, message in (
        ("a\tb\n\nlight\n", "line 3: .*a tab"),
        ("a\tb\tc\n", "line 1: .*a tab"),
        ("a\tb\na\tc\n", "line 2: .*another translation"),
        ("a\tb\nc\t⟦d⟧\n", f"{path}, line 2: .* has the mark ⟦.*'⟦d⟧'. Remove it"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_terms(path)


# Training text: which words translate each other, in which form, and how often they are marked.
PROTECTED = ProtectedSpans(("tags",), glossary_rate=0.1)
TAG = "<2de>"
GIVEN = re.compile("⟪ ?([^⟹]*)⟹ ([^⟫]*)⟫")
WORDS = {f"word{letter}": f"{letter}wort" for letter in "abcdefghijklmnop"}


def text_of(draw, words=WORDS, count=300):
    """Sentences of words of a dictionary in another order, after a tag and the same first word."""
    rows = [draw.sample([*words], draw.randint(2, 5)) for _ in range(count)]
    sources = [" ".join([f"{TAG}please", *row]) for row in rows]
    targets = [" ".join(["bitte", *(words[word] for word in row[::-1])]) for row in rows]
    return ParallelText(sources, targets)


def count_right(lines):
    """How many single words have a translation, and how many have that of the dictionary."""
    matches = [match for line in lines for match in GIVEN.findall(line) if match[0] in WORDS]
    return len(matches), sum(WORDS[word] == translation for word, translation in matches)


def test_words_get_the_translations_of_the_dictionary():
    text = text_of(random.Random(1))
    lines = [*with_terms(text, 1, [TAG])]
    words, correct = count_right(lines)
    assert correct > 0.98 * words > 100
    for line, source in zip(lines, text.sources, strict=True):
        assert 1 <= len(GIVEN.findall(line)) <= 3
        assert line.startswith(TAG)
        assert re.sub("⟪|⟹ [^⟫]*⟫", "", line) == source
    # The control: sentences that do not translate each other give hardly any.
    mixed = ParallelText(text.sources, random.Random(2).sample(text.targets, len(text)))
    assert count_right(with_terms(mixed, 1, [TAG]))[1] < 0.05 * words


def test_words_of_paragraphs_take_no_memory_where_they_come_together_once(monkeypatch):
    monkeypatch.setattr(terms, "MOST_COUNTED", 2**17, raising=False)
    monkeypatch.setattr(terms, "AT_ONCE", 2**15, raising=False)
    draw = random.Random(4)
    text = text_of(draw, count=100)
    for side in (text.sources, text.targets):
        rare = ["".join(draw.choices("abcdef", k=9)) for _ in range(10_000)]
        side[:] = [" ".join([line, *rare[row::100]]) for row, line in enumerate(side)]
    tracemalloc.start()
    words, correct = count_right(with_terms(text, 1, [TAG]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert correct > 0.98 * words > 30
    assert peak < 40e6


def test_a_translation_has_the_form_that_comes_most_often():
    targets = ["Schalter"] * 4 + ["Schalters"] * 2 + ["Schild"]
    text = ParallelText(["switch"] * 6 + ["sign"], targets)
    assert [*with_terms(text, 1)] == [*["⟪ switch⟹ Schalter⟫"] * 6, "⟪ sign⟹ Schild⟫"]
    # Words have their vowel signs.
    text = ParallelText(["बत्ती जलाओ"], ["light on"])
    assert [*with_terms(text, 1)] == ["⟪ बत्ती जलाओ⟹ light on⟫"]


def test_a_compound_is_the_translation_of_all_its_parts():
    text = ParallelText(["effect palette", "jet mode"], ["Effektpalette", "Jet-Modus"])
    whole, parts = ([*with_terms(text, seed)] for seed in (1, 2))
    assert {whole[0], parts[0]} == {"⟪ effect palette⟹ Effektpalette⟫"}
    translated = {match for line in (whole[1], parts[1]) for match in GIVEN.findall(line)}
    assert translated <= {("jet mode", "Jet-Modus"), ("mode", "Modus")}


def test_a_term_whose_words_are_all_linked_is_translated_beside_a_word_without_a_link():
    assert [*with_terms(ParallelText(["light"], ["Licht an"]), 1)] == ["⟪ light⟹ Licht⟫"]


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("open the light.", "light", "open the⟪ light⟹ Leuchte⟫."),
        ("light on", "light", "⟪ light⟹ Leuchte⟫ on"),
        ("a (light)", "light", "a (⟪light⟹ Leuchte⟫)"),
    ],
)
def test_terms_are_cut_into_the_pieces_that_they_have_elsewhere(text, term, expected):
    begin = text.index(term)
    text_with_term = with_translation(text, begin, begin + len(term), "Leuchte")
    assert text_with_term == expected
    vocabulary = learn([text, "Leuchte"] * 5, ["Leuchte"], "joint", 330, (), "bpe", PROTECTED)
    plain, translation, pieces = (
        [vocabulary.pieces[number] for number in vocabulary.tokenize([line]).to_list()[0][:-1]]
        for line in (text, "Leuchte", text_with_term)
    )
    between, closes = (pieces.index(mark) for mark in OF_TERMS[1:])
    assert pieces[between + 1 : closes] == translation
    rest = [*pieces[:between], *pieces[closes + 1 :]]
    # At the start of a text alone SentencePiece writes a space before the mark.
    rest = [piece for piece in rest if piece not in ("⟪", "▁")]
    assert rest == [piece for piece in plain if piece != "▁"]


@pytest.fixture(scope="module")
def pairs():
    """A vocabulary, pairs, and their sources with terms."""
    text = text_of(random.Random(3), count=40)
    vocabulary = learn(text.sources, text.targets, "joint", 400, [TAG], "bpe", PROTECTED)
    lines = [*with_terms(text, 1, [TAG])]
    sides = (token_ids(side, vocabulary) for side in (text.sources, text.targets, lines))
    return vocabulary, *sides


def batches(pairs, rate, longest, typed=None):
    _, sources, targets, ids_with_terms = pairs
    variations = {"source": GivenTerms(rate, 3, ids_with_terms, longest, typed)}
    examples = TokenizedPairs(sources, targets).examples(variations)
    return training_batches(examples, 60, seed=5).dataset().as_numpy_iterator()


def texts_of(pairs, stream):
    ids = [tf.ragged.boolean_mask(batch[0][0], batch[0][0] != 0) for batch in stream]
    return [text.decode() for rows in ids for text in pairs[0].detokenize(rows).numpy()]


def test_some_sentences_have_terms_whose_translations_are_never_mistyped(pairs):
    typed = AugmentedText(pairs[0], {"case": 0.5, "typos": 0.2}, 3, 1000)
    stream = batches(pairs, 0.5, 1000, typed)
    texts = texts_of(pairs, [next(stream) for _ in range(60)])
    texts_with_terms = [text for text in texts if "⟹" in text]
    assert 0.4 < len(texts_with_terms) / len(texts) < 0.6
    matches = [match for text in texts_with_terms for match in GIVEN.findall(text)]
    allowed = {"bitte", *WORDS.values()}
    assert all(set(translation.split()) <= allowed for _, translation in matches)
    # A control: terms are mistyped.
    assert not all(set(term.split()) <= set(WORDS) for term, _ in matches)


def test_a_sentence_that_would_be_too_long_gets_no_terms(pairs):
    stream = batches(pairs, 1.0, longest=1)
    assert not any("⟹" in text for text in texts_of(pairs, [next(stream) for _ in range(3)]))
