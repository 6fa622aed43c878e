"""The corpus of intents: it has every template, none of them in two splits, and sentences that
their templates match.
"""

import collections

import pytest
from token_lists import pairs_of

from keras_transformer.evaluation.span_score import spans_of
from pipelines import corpora
from pipelines.corpora import intents

hassil = pytest.importorskip("hassil", reason="install the extra [intents]")
pytest.importorskip("home_assistant_intents", reason="install the extra [intents]")


@pytest.fixture(scope="module")
def templates():
    return intents.templates()


def test_no_template_of_the_package_has_sentences_in_two_splits(templates):
    assert len(templates) == 862
    assert len({template.intent for template in templates}) == 42
    splits = collections.defaultdict(set)
    of_intent = collections.defaultdict(set)
    for split, template in intents.split_templates(templates):
        splits[template.intent, template.text].add(split)
        of_intent[template.intent].add(split)
    assert {len(names) for names in splits.values()} == {1}
    assert all("train" in names for names in of_intent.values())
    texts = collections.defaultdict(set)
    for template in templates:
        texts[template.intent].add(template.text)
    assert all("test" in of_intent[name] for name, wordings in texts.items() if len(wordings) > 1)


def test_a_sentence_is_one_that_its_template_matches(templates):
    """Hassil, the parser of these templates, recognizes the intent of our sentences."""
    import home_assistant_intents
    from hassil.intents import Intents, TextSlotList
    from hassil.recognize import recognize_all

    parsed = Intents.from_dict(home_assistant_intents.get_intents("en"))
    lists = {
        "area": TextSlotList.from_strings(intents.ROOMS),
        "floor": TextSlotList.from_strings(intents.FLOORS),
        "name": TextSlotList.from_strings(
            [*intents.ANY_DEVICE, *(name for some in intents.DEVICES.values() for name in some)]
        ),
    }
    for template in templates[:: len(templates) // 12]:
        sentence, _ = intents.sentences(template)[0]
        # Templates that depend on a place or a device are left out.
        names = {result.intent.name for result in recognize_all(sentence, parsed, slot_lists=lists)}
        contexts = parsed.intents[template.intent].data
        free = [data for data in contexts if not data.requires_context]
        if template.text in {pattern.text for data in free for pattern in data.sentences}:
            assert template.intent in names, sentence


def test_the_corpus_is_always_the_same_and_names_every_intent():
    corpus = corpora.load("intents", source_language="en", target_language="de")
    assert corpus == corpora.load("intents")
    assert len(set(corpus.train.targets)) == 42
    assert set(corpus.test.targets) <= set(corpus.train.targets)
    every = [*corpus.train.sources, *corpus.valid.sources, *corpus.test.sources]
    assert len(set(every)) == len(every) > 9000
    assert not any(set("{}[]<>|()") & set(sentence) for sentence in every)
    with pytest.raises(ValueError, match=r"intents is in English\. Received: source_language='de'"):
        corpora.load("intents", source_language="de")


def test_the_tags_mark_the_slots_that_hassil_fills():
    corpus = corpora.load("intents", target_language="slots")
    pairs = [*pairs_of(corpus.train), *pairs_of(corpus.valid), *pairs_of(corpus.test)]
    rows = [(sentence.split(), tags.split()) for sentence, tags in pairs]
    assert all(len(words) == len(tags) for words, tags in rows)
    texts = collections.defaultdict(set)
    for words, tags in rows:
        for name, begin, end in spans_of(tags):
            texts[name].add(" ".join(words[begin:end]).rstrip("?,%'s"))
    rooms = {room.rstrip("s") for room in intents.ROOMS}
    assert texts["area"] >= rooms
    # The template may join a word to the end of a slot.
    assert len(texts["area"] - rooms) <= 3
    assert texts["floor"] >= set(intents.FLOORS)
    assert len(corpus.test) > 0
    assert {tag for _, tags in rows for tag in tags} > {"O", "B-name", "I-name", "B-area"}


@pytest.mark.parametrize(
    ("marked", "sentence", "tags"),
    [
        ("turn on the lamp", "turn on the lamp", "O O O O"),
        ("the <area>living room> lamp", "the living room lamp", "O B-area I-area O"),
        ("in the <area>kitchen>?", "in the kitchen?", "O O B-area"),
        ("<a>x><b>y z> end", "xy z end", "B-a I-b O"),
        ("a <area>big room>'s <name>lamp>", "a big room's lamp", "O B-area I-area B-name"),
        ("<a>x> <a>y>", "x y", "B-a B-a"),
    ],
)
def test_words_between_marks_get_the_tags_of_their_slots(marked, sentence, tags):
    begin, named, end = intents.MARKS
    for name in ("area", "name", "a", "b"):
        marked = marked.replace(f"<{name}>", f"{begin}{name}{named}")
    assert intents._tagged(marked.replace(">", end)) == (sentence, tags)
