"""Protected spans become marks and come back: Python's `re` is the oracle. And text of one case is
read as the training text would write it.
"""

import functools
import re

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.protected_text import protect
from pipelines.glossary import Glossary
from pipelines.vocabularies.casing import TextCasing, cased_words
from pipelines.vocabularies.protected_spans import KINDS, MARKS, ProtectedSpans, TextMarks
from pipelines.vocabularies.span_marks import GraphCasing, SpanMarks, marks_of

ALL = ProtectedSpans(tuple(KINDS))
# Spans of texts that people localize, by kind.
SPANS = {
    "placeholders": (
        *("{x}", "{{x}}", "${x}", "%s", "%(x)s", "%1$d", "%-5.2f", "%@", "$t(x)", "`code here`"),
        *("[%key:component::x%]", "{n, plural, one {# item} other {{n} items}}"),
    ),
    "tags": ('<a href="x y">', "</a>", "<br/>", "<x:y-z a='1'>", "&nbsp;", "&#160;", "<!-- no -->"),
    "urls": ("https://a.b/c?d=e#f", "www.example.org", "](http://a.b/c_d)"),
    "emails": ("first.last+tag@example.co.uk",),
    "numbers": ("12345", "2024-05-17", "2024-05-17T10:11:12Z", "192.168.0.1"),
}
PLAIN = ("word", "Hello,", "100%", "50 % of", "3.5", "a@b", "x < y > z", "{", "}", "⟦", "⟧", "<3")
EVERY = [span for spans in SPANS.values() for span in spans]
WORDS = st.lists(
    st.sampled_from([*EVERY, *PLAIN, "öäü", "日本語", "\u202bעברית", "\n"]), max_size=12
)


@pytest.fixture(scope="module")
def marks():
    return SpanMarks(ALL)


def marked(marks, *texts):
    tensors = marks.marked(tf.constant(texts, tf.string))
    spans = [[span.decode() for span in row] for row in tensors.spans.to_list()]
    return [text.decode() for text in tensors.text.numpy()], spans


def back(marks, texts, sources):
    read = marks.marked(tf.constant(sources, tf.string))
    return [text.decode() for text in marks.put_back(tf.constant(texts, tf.string), read).numpy()]


@pytest.mark.parametrize("kind", SPANS)
def test_each_kind_is_protected_by_its_option(kind):
    spans = SPANS[kind]
    only = SpanMarks(ProtectedSpans((kind,)))
    texts = [f"before {span} behind" for span in spans]
    assert marked(only, *texts) == (["before ⟦1⟧ behind"] * len(spans), [[span] for span in spans])
    other_kinds = SpanMarks(ProtectedSpans(tuple(set(KINDS) - {kind})))
    plain = [text for text in texts if "{" not in text or kind == "placeholders"]
    assert marked(other_kinds, *plain)[1].count([]) >= len(plain) - 1


def test_spans_are_numbered_within_their_sentence_and_all_else_stays_text(marks):
    assert marked(marks, *PLAIN) == (list(PLAIN), [[]] * len(PLAIN))
    texts, spans = marked(marks, "{a} and %s, {a}", "", "no span", "https://a.b/c.")
    assert texts == ["⟦1⟧ and ⟦2⟧, ⟦3⟧", "", "no span", "⟦1⟧."]
    assert spans == [["{a}", "%s", "{a}"], [], [], ["https://a.b/c"]]


@functools.cache
def graphs():
    """Marks that graphs make, for any number of texts."""
    marks = SpanMarks(ALL)
    for name in ("marked", "marked_as", "put_back", "openings"):
        graph = tf.function(getattr(marks, name), autograph=False, reduce_retracing=True)
        setattr(marks, name, graph)
    return marks


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_marked_spans_come_back_verbatim(sentences):
    """Those between ⟦ ⟧ lose these, see `test_text_between_double_brackets_is_protected`."""
    marks = graphs()
    texts = [" ".join(words).replace("⟧", "") for words in sentences]
    hidden, spans = marked(marks, *texts)
    assert back(marks, hidden, texts) == texts
    for text, of_text in zip(hidden, spans, strict=True):
        assert [match[0] for match in re.finditer("⟦[0-9]+⟧", text)] == list(MARKS[: len(of_text)])


@settings(max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=4), st.randoms())
def test_python_s_marks_are_those_of_the_graph(sentences, random):
    graph = graphs()
    python = TextMarks(ALL)
    texts = [" ".join(words) for words in sentences]
    targets = [" ".join(random.sample(words, len(words))) for words in sentences]
    hidden, spans = marked(graph, *texts)
    read = [*map(python.marked, texts)]
    assert [text_marks[:2] for text_marks in read] == [*zip(hidden, spans, strict=True)]
    tensors = graph.marked(tf.constant(texts))
    as_sources, _ = graph.marked_as(tf.constant(targets), tensors)
    as_sources = [text.decode() for text in as_sources.numpy()]
    assert [*map(python.marked_as, targets, read)] == as_sources
    as_sources = [text + "⟦2⟧⟦32⟧⟦33⟧⟦2⟧" for text in as_sources]
    assert [*map(python.put_back, as_sources, read)] == back(graph, as_sources, texts)
    assert [*map(python.openings, spans)] == graph.openings(tensors.spans).numpy().tolist()


RIGHT_TO_LEFT = "<b>\u202eright to left\u202c</b>"
# Texts and how many spans they have.
RARE = [
    *(
        (" ".join(f"{{x{number}}}" for number in range(count)), count)
        for count in (32, 33, 64, 200)
    ),
    ("see {" + "x" * 4000 + f"}} and {RIGHT_TO_LEFT}", 3),
    ("\v%(\v)s \u2003{x}\u0663\u0662\u0661\u0660", 2),
    ("</b><b></b>", 3),
    ("%00d %+#007.3f %(a)-00s %0", 3),
    # In a time that grows with the square of their length, these would take minutes.
    ("%" + "0" * 30_000, 1),
    ("a" * 30_000 + "@" + "b" * 30_000, 0),
]


@pytest.mark.parametrize(("text", "count"), RARE)
def test_no_span_of_rare_texts_is_lost_in_python_or_in_the_graph(marks, text, count):
    python = TextMarks(ALL)
    read = python.marked(text)
    assert [*read[:2]] == [row for [row] in marked(marks, text)]
    assert len(read.spans) == count
    assert [python.put_back(read.text, read)] == back(marks, [read.text], [text]) == [text]
    [openings] = marks.openings(marks.marked(tf.constant([text])).spans).numpy().tolist()
    assert python.openings(read.spans) == openings


def test_marks_may_come_in_another_order(marks):
    expected = ["<b> vor {a}", "{x}"]
    assert back(marks, ["⟦2⟧ vor ⟦1⟧", "⟦1⟧⟦1⟧"], ["{a} behind <b>", "{x}"]) == expected


def test_text_between_double_brackets_is_protected(marks):
    texts = ["at ⟦ACME {x} & Co⟧ now", "⟦ alone", "alone ⟧", "⟦⟧"]
    hidden, _ = marked(marks, *texts)
    assert hidden == ["at ⟦1⟧ now", "⟦ alone", "alone ⟧", "⟦1⟧"]
    # Bytes that are no text do no harm.
    assert marked(marks, b"\xff {x} \xfe") == (["\ufffd ⟦1⟧ \ufffd"], [["{x}"]])
    assert back(marks, hidden, texts) == ["at ACME {x} & Co now", "⟦ alone", "alone ⟧", ""]
    # Within "{ }" they belong to the span.
    assert marked(marks, "{ ⟦ ⟧ }") == (["⟦1⟧"], [["{ ⟦ ⟧ }"]])
    within = ["{ ⟦ ⟧ }", "{ ⟦ } ⟧", "{ { ⟦ ⟧ }", "{{x} ⟦} ⟧", "⟦ {x ⟧ }", "⟦ ⟦ ⟧ ⟧ ⟦ { ⟧ {x}"]
    stripped = [*within[:4], " {x  }", " ⟦  ⟧  {  {x}"]
    assert back(marks, marked(marks, *within)[0], within) == stripped


def test_a_users_own_pattern_comes_first():
    own = SpanMarks(ProtectedSpans(("placeholders",), r"ACME\w*|\{x"))
    assert marked(own, "ACMEs {x} {y}")[1] == [["ACMEs", "{x", "{y}"]]


@pytest.mark.parametrize(
    ("pattern", "fault"), [("(", "missing )"), ("a*", "empty"), (r"(?<=a)b", "regular expression")]
)
def test_an_invalid_pattern_is_refused(pattern, fault):
    with pytest.raises(ValueError, match="`protect_pattern` must") as caught:
        SpanMarks(ProtectedSpans((), pattern))
    assert fault in str(caught.value)
    assert pattern in str(caught.value)


def test_an_unknown_kind_and_a_pattern_that_python_lacks_are_refused():
    with pytest.raises(ValueError, match=r"must be some of urls, .*Received: .*names"):
        ProtectedSpans(("tags", "names"))
    for make in (TextMarks, functools.partial(Glossary, {"a": "b"})):
        for pattern in (r"\pL+", "[[:alpha:]]+", "[^[:^digit:]]", "(?i:über)"):
            with pytest.raises(ValueError, match=rf"Python's too. Received: {re.escape(pattern)}"):
                make(ProtectedSpans((), pattern))
        for pattern in ("[a[:;]b", "(?i:uber)", "über"):
            make(ProtectedSpans((), pattern))


def test_spans_of_a_translation_have_the_numbers_of_its_source(marks):
    sources = ["{a} {b}", "{a} {a}", "{a} {b}", "{a}", "plain"]
    targets = ["{b} {a}", "{a} und {a}", "{a} {c}", "{a} {a}", "einfach"]
    texts, agree = marks.marked_as(tf.constant(targets), marks.marked(tf.constant(sources)))
    expected = [*("⟦2⟧ ⟦1⟧", "⟦1⟧ und ⟦2⟧", "⟦1⟧ {c}", "⟦1⟧ {a}", "einfach")]
    assert [text.decode() for text in texts.numpy()] == expected
    assert agree.numpy().tolist() == [True, True, False, False, True]


def test_spans_are_looked_up_and_not_compared_each_with_each(marks):
    """Otherwise a line with 1,000 spans among the 8,192 of a call takes 90 GB."""
    sentences = tf.TensorSpec([None], tf.string)
    both = tf.function(lambda source, target: marks.marked_as(target, marks.marked(source)))
    operations = both.get_concrete_function(sentences, sentences).graph.get_operations()
    ranks = [tensor.shape.rank or 0 for operation in operations for tensor in operation.outputs]
    assert max(ranks) == 2
    line = " ".join(f"{{a{number % 1500}}}" for number in range(2000))
    lines = [*["a {b}"] * 3000, line]
    assert all(agree for *_, agree in marks.marked_pairs(lines, lines))


def test_closing_tags_know_their_opening_ones(marks):
    texts = ["<b>x<i>y</i></b><br><b>z</b>", "</p><p>", "<p/></p>", "{x}" * 33]
    openings = marks.openings(marks.marked(tf.constant(texts)).spans).numpy()
    assert openings[0, :8].tolist() == [-1, -1, 1, 0, -1, -1, 5, -1]
    assert (openings[1:] == -1).all()


def corpus(*pairs, tags=()):
    text = ParallelText.from_pairs(pairs)
    return Corpus("files", "en", "de", text, text, text, {}, tags)


def test_pairs_whose_spans_differ_are_counted_and_left_out():
    whole = corpus(("{a} b", "b {a}"), ("{a}", "{b}"), ("plain", "einfach"))
    read = protect(whole, ALL, strict=False)
    assert read.train.sources == ["⟦1⟧ b", "plain"]
    assert read.train.targets == ["b ⟦1⟧", "einfach"]
    assert read.corpus.train.sources == ["{a} b", "plain"]
    assert read.corpus.test is whole.test
    assert read.corpus.dropped == {"with unequal protected spans": 2}
    with pytest.raises(ValueError, match="text 2: with unequal protected spans"):
        protect(whole, ALL, strict=True)


def test_a_tag_that_would_be_hidden_and_a_split_without_equal_spans_are_refused():
    protect(corpus(("a", "b"), tags=("<2de>",)), ALL, strict=False)
    with pytest.raises(ValueError, match="tag <de> of the mixture"):
        protect(corpus(("a", "b"), tags=("<de>",)), ALL, strict=False)
    with pytest.raises(ValueError, match="no pair of the train split"):
        protect(corpus(("{a}", "b")), ALL, strict=False)


# Text in capitals or in lower case as the training text would write it, in graphs as in Python.
LINES = [
    *("Open the MQTT settings of Home Assistant", "The MQTT broker is off", "Open it at home"),
    *("Restart. Open Émile's settings", "Restart. Then open it", "Home Assistant is off. Restart"),
]
CASED = ("MQTT", "Home", "Assistant", "Émile")
PROTECTED = ProtectedSpans(tuple(KINDS), truecase=True, cased_words=CASED)
# Letters beyond it are of later versions of Unicode than that of TensorFlow's library.
LETTERS = st.characters(max_codepoint=0x2BFF)
# A text, how it is read, and whether it is in capitals.
CASES = [
    ("TURN OFF THE LIGHTS", "Turn off the lights", True),
    ("turn off the lights", "Turn off the lights", False),
    ("OPEN MQTT. RESTART HOME ASSISTANT!", "Open MQTT. Restart Home Assistant!", True),
    ("open mqtt. restart home assistant!", "Open MQTT. Restart Home Assistant!", False),
    ("„ÖFFNE“ ÉMILE", "„Öffne“ Émile", True),
    ("SAVE {name} IN https://a.b/C", "Save ⟦1⟧ in ⟦2⟧", True),
    ("{name} IS OFF", "⟦1⟧ is off", True),
    ("<b>STOP IT</b>", "⟦1⟧Stop it⟦2⟧", True),
    ("ВЫКЛЮЧИ СВЕТ", "Выключи свет", True),
    ("ΑΝΟΙΞΕ ΤΟΥΣ", "Ανοιξε τους", True),
    # Both kinds of letters, too few of them, none, ß, a mixture's tag.
    *((text, text, False) for text in ("Turn OFF the MQTT", "MQTT", "LG TV", "OK", "", "日本語 1")),
    *((text, text, False) for text in ("STRAßE AUS", "<2de> turn off", "iPhone", "123 %")),
]


def cased_texts(marks, texts):
    tensors = marks.marked(tf.constant(texts, tf.string))
    return [
        (text.decode(), bool(is_capital))
        for text, is_capital in zip(tensors.text.numpy(), tensors.is_capital.numpy(), strict=True)
    ]


def test_words_are_those_with_capitals_where_no_sentence_begins():
    assert sorted(cased_words(LINES)) == sorted(CASED)
    assert cased_words(LINES)[0] == "MQTT"
    assert cased_words(["Open It", "Open it", "Open it"]) == ()


def test_text_of_one_case_is_read_as_the_training_text_has_it():
    texts = [text for text, *_ in CASES]
    expected = [case[1:] for case in CASES]
    assert cased_texts(marks_of(PROTECTED), texts) == expected
    python = TextMarks(PROTECTED)
    assert [python.marked(text)[::2] for text in texts] == expected


def test_translations_of_capitals_are_in_capitals_but_for_spans():
    texts = ["TURN OFF {name}", "Turn off {name}", "turn off {name}"]
    marks = marks_of(PROTECTED)
    tensors = marks.marked(tf.constant(texts))
    translated = tf.constant(["⟦1⟧ große Straße"] * 3)
    back = [text.decode() for text in marks.put_back(translated, tensors).numpy()]
    assert back == ["{name} GROSSE STRASSE", *["{name} große Straße"] * 2]
    python = TextMarks(PROTECTED)
    assert [python.put_back("⟦1⟧ große Straße", python.marked(text)) for text in texts] == back
    # References and beginnings of translations are read as their sources are.
    references = ["{name} AUSSCHALTEN"] * 3
    as_sources, agree = marks.marked_as(tf.constant(references), tensors)
    expected = ["⟦1⟧ ausschalten", *["⟦1⟧ AUSSCHALTEN"] * 2]
    assert [text.decode() for text in as_sources.numpy()] == expected
    assert agree.numpy().all()
    assert [python.marked_as(references[0], python.marked(text)) for text in texts] == expected


@pytest.mark.parametrize("words", [(), CASED])
@settings(max_examples=60)
@given(
    texts=st.lists(st.text(LETTERS, max_size=30), max_size=6),
    piece=st.sampled_from([*CASED, ". ", "İ"]),
)
def test_graphs_read_as_python_does(words, texts, piece):
    texts = [piece.join(text) for text in texts]
    texts = [text for text in texts if text.isprintable()]
    texts = [*texts, *map(str.upper, texts), *map(str.lower, texts)]
    python = [*map(TextCasing(words), texts)]
    graph = GraphCasing(words)(tf.constant(texts, tf.string))
    assert [text.decode() for text in graph.text.numpy()] == [text for text, _ in python]
    assert graph.is_capital.numpy().tolist() == [capital for _, capital in python]
    for text, (cased, capital) in zip(texts, python, strict=True):
        assert cased.casefold() == text.casefold()
        has_both = text not in (text.lower(), text.upper())
        assert not has_both or (cased, capital) == (text, False)


def test_control_without_the_option_the_case_of_text_stays():
    protected = ProtectedSpans(tuple(KINDS))
    assert type(marks_of(protected)) is SpanMarks
    assert marks_of(None) is None
    assert TextMarks(protected).marked("TURN OFF") == ("TURN OFF", [], False)


def test_a_folder_keeps_the_words_and_a_description_does_not(tmp_path):
    PROTECTED.save(tmp_path)
    loaded = ProtectedSpans.load(tmp_path)
    assert loaded.cased_words == CASED
    assert loaded == ProtectedSpans.of(PROTECTED.as_dict())
    assert PROTECTED.as_dict() == {"protect": tuple(KINDS), "protect_pattern": "", "truecase": True}
