"""Metrics of translations side by side, and paired tests, against sacrebleu and its command line; a
grid of searches is scored by them. Accuracy and macro F1 of labels are those of scikit-learn, and
F1 of spans that of nltk.
"""

import functools
import json
import random
import re
import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import sacrebleu

from keras_transformer.evaluation import label_score, metrics, span_score, table, tuning
from keras_transformer.evaluation.metrics import CompoundBLEU, split_compounds
from keras_transformer.evaluation.tuning import Grid

REFERENCES = [
    "Der Hund läuft schnell über die Straße.",
    "Schalte das Licht in der Küche aus!",
    "Zwei Männer stehen vor einem Haus.",
    "Das ist, wie man sagt, ein guter Tag-Nacht-Rhythmus.",
    "In den Jahren 1998-2004 kostete es 3.50 Euro „pro Stück“.",
    "Ist O'Brien's Hund der Sieger?",
] * 4


def damaged(seed, share):
    """The references with this share of their words, a tenth of them with a capital."""
    draw = random.Random(seed)
    return [
        " ".join(
            word.title() if draw.random() < 0.1 else word
            for word in line.split()
            if draw.random() < share
        )
        for line in REFERENCES
    ]


GOOD = damaged(seed=1, share=0.9)
BAD = damaged(seed=2, share=0.7)


def command_line(folder, systems, *arguments):
    """What sacrebleu's command line prints for translations, parsed from JSON.

    Args:
        folder: for files.
        systems: lists of translations; of several, the first is the baseline.
        arguments: of the command line.
    """
    texts = {f"s{number}": lines for number, lines in enumerate(systems)}
    for name, lines in {"references": REFERENCES, **texts}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", *texts, *arguments]
    process = subprocess.run(
        [*command, "--quiet", "--format", "json", "-w", "6"], cwd=folder, capture_output=True
    )
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout)


ASIAN = "--ter-normalized --ter-asian-support"
# By the arguments of sacrebleu's command line: our tokenizer, and what is printed, by our names.
ARGUMENTS = {
    f"-m bleu chrf ter {ASIAN}": ("13a", {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}),
    "-m bleu chrf -tok intl --chrf-word-order 2": (
        *("13a", {"bleu_intl": "BLEU", "chrf++": "chrF2++"}),
    ),
    "-m bleu -tok zh": ("13a", {"bleu_language": "BLEU"}),
    "-m bleu -tok char": ("char", {"bleu": "BLEU"}),
    "-m bleu -tok none -lc --force": ("none", {"bleu_lc": "BLEU"}),
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_scores_and_intervals_are_those_of_the_command_line(tmp_path, arguments):
    printed = command_line(tmp_path, [GOOD], *arguments.split(), "--confidence")
    entries = printed if isinstance(printed, list) else [printed]
    theirs = {entry["name"]: entry for entry in entries}
    tokenize, names = ARGUMENTS[arguments]
    chosen = metrics.choose(names, tokenize, "zh-Hans")
    for name, scored in metrics.measure(chosen, GOOD, REFERENCES, confidence=True).items():
        their_name = names[name]
        assert scored.pop("label")
        assert scored == {
            "score": round(theirs[their_name]["score"], 2),
            "signature": theirs[their_name]["signature"],
            "mean": round(theirs[their_name]["confidence_mean"], 2),
            "interval": round(theirs[their_name]["confidence_var"], 2),
        }
        assert 0 < scored["interval"] < 15
        assert "bs:1000|seed:12345" in scored["signature"]


def test_chrf_has_an_interval_where_some_resamples_score_0_and_where_all_do():
    """Of two sentences one is right: a quarter of the resamples has the wrong one twice."""
    chosen = metrics.choose(["chrf"])
    scored = metrics.measure(chosen, ["abcdefg", "xyz"], ["abcdefg", "hijklmn"], confidence=True)
    assert scored["chrf"]["score"] == pytest.approx(scored["chrf"]["mean"], abs=10)
    assert scored["chrf"]["interval"] == 50
    both = metrics.choose(["bleu", "chrf"])
    for wrong in metrics.measure(both, ["x y"] * 3, ["a b"] * 3, confidence=True).values():
        assert (wrong["score"], wrong["mean"], wrong["interval"]) == (0, 0, 0)


OF_WORDS = ("bleu_intl", "bleu_compounds", "chrf++")


@pytest.mark.parametrize(
    ("language", "label", "left_out"),
    [
        ("zh", "BLEU zh", OF_WORDS),
        ("zh-Hans", "BLEU zh", OF_WORDS),
        ("zh_TW", "BLEU zh", OF_WORDS),
        ("th", None, ("bleu_language", *OF_WORDS, "ter")),
        *((spaced, None, ("bleu_language",)) for spaced in ("de", "ja-Latn", "zh-min-nan")),
        ("", None, ("bleu_language",)),
    ],
)
def test_by_default_all_metrics_of_the_language_are_chosen(language, label, left_out):
    chosen = metrics.choose(None, "13a", language)
    assert list(chosen) == [name for name in metrics.METRICS if name not in left_out]
    if label:
        assert chosen["bleu_language"].label == label
        # Counted by the same tokenizer, it would be the same row twice.
        assert "bleu_language" not in metrics.choose(None, None, language)


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_japanese_and_korean_have_a_row_of_words_beside_characters(language):
    chosen = metrics.choose(None, None, language)
    assert chosen["bleu"].label == "BLEU char"
    assert "bleu_language" in chosen
    assert ("chrf++" in chosen) == (language == "ko")


# By the tokenizer that sacrebleu's README advises, or characters where it needs a dictionary. The
# last code is empty.
CODES = {
    "zh": "zh ZH zh-Hans zh_TW zh-Hant-HK zh-yue zho_Hans yue wuu cmn-Hans de+zh zh-CN+en "
    "chi gan hak hsn lzh cdo cjy zh-classical",
    "char": "ja ko th km lo my bo dz ja-JP ko_KR jpn_Jpan kor_Hang tha_Thai khm_Khmr mya_Mymr "
    "th+de zh+ja jv-Java",
    "13a": "de pt-BR sr-Latn en_GB zh-Latn ja-Latn zh-min-nan vi jv id hi reversed trees intent "
    "slots words my_text de+fr ja.tok thai lower th_words ",
}


@pytest.mark.parametrize("tokenizer", CODES)
def test_the_language_decides_the_tokenizer_unless_one_is_asked_for(tokenizer):
    for language in CODES[tokenizer].split(" "):
        assert metrics.tokenizer_of(language) == tokenizer, language
        assert metrics.tokenizer_of(language, "intl") == "intl"
        assert metrics.choose(["bleu"], None, language)["bleu"].label == f"BLEU {tokenizer}"


# Made up, by language: too short for 4 words between spaces.
WITHOUT_SPACES = {
    "zh": ["请打开大的门。", "我们晚上把灯关掉。"],
    "ja": ["大きなドアを開けてください。", "夜に電気を消します。"],
    "ko": ["큰 문을 열어 주세요.", "밤에 불을 끕니다."],
    "th": ["กรุณาเปิดประตูบานใหญ่", "เราปิดไฟตอนกลางคืน"],
    "km": ["សូមបើកទ្វារធំ", "យើងបិទភ្លើងនៅពេលយប់"],
    "lo": ["ກະລຸນາເປີດປະຕູໃຫຍ່", "ພວກເຮົາປິດໄຟໃນຕອນກາງຄືນ"],
    "my": ["တံခါးကြီးကိုဖွင့်ပါ", "ကျွန်တော်တို့ညမှာမီးပိတ်တယ်"],
}


@pytest.mark.parametrize("language", WITHOUT_SPACES)
def test_a_perfect_translation_without_spaces_has_the_best_score_of_each_metric(language):
    lines = WITHOUT_SPACES[language]
    [scored] = metrics.measure(metrics.choose(["bleu"], None, language), lines, lines).values()
    assert f"|tok:{metrics.tokenizer_of(language)}|" in scored["signature"]
    scores = metrics.measure(metrics.choose(None, None, language), lines, lines)
    for name, scored in scores.items():
        if name != "bleu_language":
            assert scored["score"] == pytest.approx(0 if name == "ter" else 100), name
    # The control: sacrebleu#147.
    if language != "ko":
        assert metrics.measure(metrics.choose(["bleu"], "13a"), lines, lines)["bleu"]["score"] == 0


def test_an_ideograph_is_a_word_of_ter():
    """One of 7 characters is another, of 8 tokens with the full stop."""
    [ter] = metrics.measure(
        metrics.choose(["ter"], None, "zh"), ["请打开小的门。"], ["请打开大的门。"]
    ).values()
    assert ter["score"] == pytest.approx(100 / 7, abs=0.01)
    assert "norm:yes" in ter["signature"]
    assert "asian:yes" in ter["signature"]


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_missing_tokenizer_is_said_in_the_label_and_characters_are_counted(language, monkeypatch):
    module = f"sacrebleu.tokenizers.tokenizer_{language}_mecab"
    __import__(module)
    monkeypatch.setattr(sys.modules[module], "MeCab", None)
    named = metrics.choose(None, "13a", language)["bleu_language"]
    remedy = f"pip install 'sacrebleu[{language}]'"
    assert named.label == f"BLEU char ({language}-mecab needs: {remedy})"
    expected = metrics.measure(metrics.choose(["bleu"], "char"), GOOD, REFERENCES)["bleu"]
    [scored] = metrics.measure({"x": named}, GOOD, REFERENCES).values()
    assert scored["score"] == expected["score"]
    message = rf"^the tokenizer {language}-mecab is not installed: pip install .*--tokenize=char\.$"
    with pytest.raises(ValueError, match=message):
        metrics.choose(["bleu"], f"{language}-mecab")
    # Training asks for the `warning` before it begins.
    with pytest.raises(ValueError, match=message):
        metrics.warning(REFERENCES, f"{language}-mecab")


@pytest.mark.parametrize(
    ("language", "received"), [("de", r"is de\. Leave it out"), ("", "is not known")]
)
def test_bleu_language_is_refused_where_the_language_has_none(language, received):
    message = rf"for zh, ja, ko, and the target language {received}"
    with pytest.raises(ValueError, match=message):
        metrics.choose(["bleu_language"], "13a", language)


def test_compounds_of_tokenized_text_are_split_without_a_tokenizer():
    [metric] = metrics.choose(["bleu_compounds"], "none").values()
    assert metric.label.startswith("BLEU none")
    assert metric.metric.tokenizer_signature == "none+compounds"
    for tokenize in ("13a", "intl", "char"):
        named = metrics.choose(["bleu_compounds"], tokenize)["bleu_compounds"]
        assert named.label == "BLEU 13a, compounds split"


# Tables of scores, typed by hand.
SCORE = {"label": "BLEU 13a", "score": 41.5, "signature": "nrefs:1|tok:13a"}


def test_numbers_stand_under_each_other_with_an_interval_where_there_is_one():
    ter = {"label": "TER, lower is better", "score": 8.123, "signature": "nrefs:1"}
    assert table.of_scores({"bleu": SCORE, "ter": ter}).splitlines() == [
        "metric                score  signature",
        "BLEU 13a              41.50  nrefs:1|tok:13a",
        "TER, lower is better   8.12  nrefs:1",
    ]
    assert table.of_scores({"bleu": {**SCORE, "mean": 41.4, "interval": 1.25}}).splitlines() == [
        "metric    score  95 % interval  signature",
        "BLEU 13a  41.50   41.40 ± 1.25  nrefs:1|tok:13a",
    ]


def test_a_comparison_names_the_other_system_and_the_test():
    better = {**SCORE, "baseline": 40.0, "difference": 1.5, "p_value": 0.031}
    # Equal translations have no p.
    same = {**SCORE, "baseline": 41.5, "difference": 0.0, "p_value": None}
    compared = {"bleu": better, "same": same}
    assert table.of_comparison(compared, "old.de", "bootstrap").splitlines() == [
        "baseline: old.de; paired test: bootstrap",
        "metric    baseline  score  difference       p  signature",
        "BLEU 13a     40.00  41.50       +1.50  0.0310  nrefs:1|tok:13a",
        "BLEU 13a     41.50  41.50       +0.00       -  nrefs:1|tok:13a",
    ]


# Paired tests.
NEAR = damaged(seed=3, share=0.87)
PAIRED = {"bootstrap": ["--paired-bs"], "approximate_randomization": ["--paired-ar"]}


@pytest.mark.parametrize("test", PAIRED)
def test_differences_and_p_values_are_those_of_the_command_line(tmp_path, test):
    baseline, system = command_line(tmp_path, [NEAR, GOOD], "-m", "bleu", *PAIRED[test])
    ours = metrics.compare(metrics.choose(["bleu"]), NEAR, GOOD, REFERENCES, test)["bleu"]
    assert ours["baseline"] == round(baseline["BLEU"]["score"], 2)
    assert ours["score"] == round(system["BLEU"]["score"], 2)
    assert ours["p_value"] == round(system["BLEU"]["p_value"], 4)
    assert 0.01 < ours["p_value"] < 1
    assert ours["difference"] == pytest.approx(ours["score"] - ours["baseline"], abs=0.011)


def test_kinds_of_bleu_are_told_apart():
    """All of them are "BLEU" to sacrebleu."""
    names = ["bleu", "bleu_lc", "bleu_compounds"]
    compared = metrics.compare(metrics.choose(names), BAD, GOOD, REFERENCES)
    alone = metrics.measure(metrics.choose(names), GOOD, REFERENCES)
    scores = {name: result["score"] for name, result in compared.items()}
    assert scores == {name: result["score"] for name, result in alone.items()}
    assert len({*scores.values()}) == 3
    assert all("bs:1000|seed:12345" in result["signature"] for result in compared.values())


def test_one_system_twice_has_no_p_value():
    """Sacrebleu's would be 0.001, as if there were a difference."""
    [same] = metrics.compare(metrics.choose(["bleu"]), GOOD, list(GOOD), REFERENCES).values()
    assert same["difference"] == 0
    assert same["p_value"] is None
    # Another system is tested, even if it has the same score.
    rotated = [*GOOD[1:6], GOOD[0], *GOOD[6:]]
    references = [*REFERENCES[1:6], REFERENCES[0], *REFERENCES[6:]]
    [compared] = metrics.compare(metrics.choose(["bleu"]), rotated, GOOD, references).values()
    assert compared["p_value"] is not None
    # A metric that sees no difference gives no evidence of one.
    lower = [line.lower() for line in GOOD]
    blind = metrics.compare(metrics.choose(["bleu_lc", "ter"]), lower, GOOD, REFERENCES).values()
    assert [(result["difference"], result["p_value"]) for result in blind] == [(0, 1), (0, 1)]


# BLEU and chrF against sacrebleu, called directly.
@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_scores_and_signatures_are_sacrebleus_of_the_corpus(tokenize):
    hypotheses = damaged(seed=0, share=0.8)
    scores = metrics.score(hypotheses, REFERENCES, tokenize)
    theirs = {"bleu": sacrebleu.BLEU(tokenize=tokenize), "chrf": sacrebleu.CHRF()}
    for name, metric in theirs.items():
        assert scores[name] == round(metric.corpus_score(hypotheses, [REFERENCES]).score, 2)
        assert scores[f"{name}_signature"] == str(metric.get_signature())
    assert scores["sentences"] == len(REFERENCES)
    # A control: with another tokenizer it is another score.
    assert scores["bleu"] != metrics.score(hypotheses, REFERENCES, "char")["bleu"]


@pytest.mark.parametrize(
    ("hypotheses", "references"), [(["a"], ["a", "b"]), (["a", "b"], ["a"]), ([], []), (["a"], [])]
)
def test_as_many_references_as_translations_are_needed_and_at_least_one(hypotheses, references):
    with pytest.raises(ValueError, match=rf"Received: {len(hypotheses)} and {len(references)}\.$"):
        metrics.score(hypotheses, references)


# The paper's BLEU: its rule of compounds by cases worked out by hand, and its score by sacrebleu of
# text that is split beforehand.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("rich-text-format", "rich ##AT##-##AT## text ##AT##-##AT## format"),
        # The first match takes b along, so that the second hyphen has nothing before it.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-bc-d", "a ##AT##-##AT## bc ##AT##-##AT## d"),
        # Only a hyphen between two characters is one inside a word.
        ("Hin - und Rückfahrt", "Hin - und Rückfahrt"),
        ("Vor- und Nachteile", "Vor- und Nachteile"),
        ("-40 Grad", "-40 Grad"),
        # The two hyphens of a dash: the first has a character on both sides, the second hyphen.
        ("a--b", "a ##AT##-##AT## -b"),
        ("Überraschungs-Ei", "Überraschungs ##AT##-##AT## Ei"),
        ("", ""),
    ],
)
def test_a_hyphen_inside_a_word_gets_room(text, expected):
    assert split_compounds(text) == expected


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_bleu_of_compounds_is_sacrebleus_bleu_of_text_that_is_split_beforehand(tokenize):
    tokenizer = sacrebleu.BLEU(tokenize=tokenize).tokenizer
    ready = [
        [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenizer(line)) for line in lines]
        for lines in (GOOD, REFERENCES)
    ]
    expected = sacrebleu.corpus_bleu(
        ready[0], [ready[1]], tokenize="none", smooth_method="none", force=True
    )
    metric = CompoundBLEU(tokenize)
    assert metric.corpus_score(GOOD, [REFERENCES]).score == expected.score
    assert f"tok:{tokenize}+compounds|smooth:none" in str(metric.get_signature())
    whole = sacrebleu.corpus_bleu(GOOD, [REFERENCES], tokenize=tokenize, smooth_method="none")
    assert expected.score > whole.score


# Which references look tokenized: typed lines of each kind.
LOOKS_TOKENIZED = [
    *("a man in an orange hat starring at something .", "two young , white males are outside"),
    *("the man 's hat", "der rich @-@ text", "the man &apos;s hat", "&quot; hello &quot;"),
    *("ein Kin@@ derwagen", "rich ##AT##-##AT## text"),
]
PLAIN = [
    *("A man in an orange hat, starring at something.", "The man's hat costs 3.50, he said: “Oh!”"),
    *("Est-ce vrai ? Oui ; non : si !", "Mail an a@b.de und @alice"),
    *("Set .NET or .5 as the value ...", ". is a dot", "R&D; AT&T", ""),
]


def test_traces_of_a_tokenizer_are_found_and_nothing_else():
    assert all(map(metrics.TRACES.search, LOOKS_TOKENIZED))
    assert not any(map(metrics.TRACES.search, PLAIN))


@pytest.mark.parametrize(
    ("references", "tokenize"),
    [(REFERENCES, "13a"), (LOOKS_TOKENIZED, "none"), ([LOOKS_TOKENIZED[0], *PLAIN * 2], "13a")],
)
def test_tokenized_references_alone_are_doubted_with_an_example_and_a_remedy(references, tokenize):
    assert metrics.warning(references, tokenize) is None
    text = metrics.warning([LOOKS_TOKENIZED[0]] * 3 + [PLAIN[0]], "13a")
    assert text.startswith(f"75% of the references look tokenized, such as {LOOKS_TOKENIZED[0]!r}.")
    assert text.endswith("Pass --tokenize=none for the latter.")
    assert "\n" not in text


def test_accuracy_and_macro_f1_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    draw = random.Random(1)
    truth = draw.choices("abc", k=60)
    predicted = [label if draw.random() < 0.6 else draw.choice("abcd") for label in truth]
    labels = sorted(set(truth))
    expected = metrics.f1_score(truth, predicted, labels=labels, average="macro")
    scores = label_score.measure(predicted, truth)
    assert scores["texts"] == 60
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted), abs=1e-4)
    assert scores["macro_f1"] == pytest.approx(expected, abs=1e-4)


# Accuracy and confusion matrix, against scikit-learn's.
def test_the_confusion_matrix_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 200)
    predicted = np.where(rng.random(200) < 0.6, truth, rng.integers(0, 4, 200))
    counts = label_score.confusion(truth, predicted, 4)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(truth, predicted))
    assert label_score.accuracy(counts) == pytest.approx(metrics.accuracy_score(truth, predicted))


def test_the_table_has_a_row_for_each_class():
    text = label_score.confusion_as_text([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["a", "b", "c"])
    assert [line.split() for line in text.splitlines()] == [
        ["class", "a", "b", "c", "right"],
        ["a", "3", "1", ".", "75.0%"],
        ["b", ".", "2", ".", "100.0%"],
        ["c", ".", ".", ".", "-"],
    ]


# Spans of tags and their scores, against nltk's and against a sum by hand.
TAGS = st.sampled_from(["O", "B-area", "I-area", "B-name", "I-name"])
ROWS = st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def chunk():
    return pytest.importorskip("nltk.chunk", reason="install the extra [parsing]")


def nltk_tree(chunk, tags):
    return chunk.conlltags2tree([(str(number), "X", tag) for number, tag in enumerate(tags)])


def nltk_spans(chunk, tags):
    spans = set()
    place = 0
    for child in nltk_tree(chunk, tags):
        length = 1 if isinstance(child, tuple) else len(child)
        if not isinstance(child, tuple):
            spans.add((child.label(), place, place + length))
        place += length
    return spans


def well_formed(tags):
    """The tags with a B wherever a span begins, as nltk needs them."""
    before = "O"
    fixed = []
    for tag in tags:
        is_on = before != "O" and before[2:] == tag[2:]
        fixed.append(f"B-{tag[2:]}" if tag.startswith("I-") and not is_on else tag)
        before = fixed[-1]
    return fixed


@hypothesis.given(st.lists(TAGS, max_size=12))
def test_the_spans_are_those_of_nltk(chunk, tags):
    assert span_score.spans_of(tags) == nltk_spans(chunk, well_formed(tags))


@hypothesis.given(st.lists(ROWS, min_size=1, max_size=4))
def test_the_figures_are_those_of_nltk(chunk, rows):
    predicted, truth = ([[pair[side] for pair in row] for row in rows] for side in (0, 1))
    score = chunk.ChunkScore()
    for predicted_tags, true_tags in zip(predicted, truth, strict=True):
        trees = (nltk_tree(chunk, well_formed(tags)) for tags in (true_tags, predicted_tags))
        score.score(*trees)
    measured = span_score.measure(predicted, truth)
    assert measured["precision"] == pytest.approx(100 * score.precision(), abs=0.006)
    assert measured["recall"] == pytest.approx(100 * score.recall(), abs=0.006)
    assert measured["f1"] == pytest.approx(100 * score.f_measure(), abs=0.006)


def test_span_scores_worked_out_by_hand():
    truth = [["O", "B-area", "I-area", "B-name"], ["B-name", "O"]]
    predicted = [["O", "B-area", "O", "B-name"], ["B-name", "B-area"]]
    measured = span_score.measure(predicted, truth)
    assert measured == {
        "words": 6,
        "accuracy": 0.6667,
        "spans": 3,
        "precision": 50.0,
        "recall": 66.67,
        "f1": 57.14,
        "by_name": {"area": 0.0, "name": 100.0},
    }
    text = span_score.summary(measured)
    assert text.startswith("57.14 F1 of 3 spans (precision 50.00, recall 66.67); 66.7% of 6 words")
    assert text.index("area") < text.index("name  100.0")
    of_speech = span_score.measure([["NOUN", "O"]], [["NOUN", "VERB"]])
    assert of_speech == {"words": 2, "accuracy": 0.5}
    assert span_score.summary(of_speech) == "50.0% of 2 words get their tag"


MIDDLE = damaged(seed=4, share=0.8)
# Translations by beam size and length penalty.
SYSTEMS = {1: {0.0: BAD, 0.6: BAD}, 4: {0.0: MIDDLE, 0.6: GOOD}}
BEAM_SIZES = functools.partial(tuning.beam_sizes_of, most=1000)


def grid(scores, beam_sizes=(1, 4), length_penalties=(0.0, 0.6)):
    return Grid(beam_sizes, length_penalties, scores)


def test_each_cell_is_the_quality_of_its_translations():
    calls = []

    def quality(translations):
        return sacrebleu.corpus_bleu(translations, [REFERENCES]).score

    def translate(beam_size, length_penalties):
        calls.append((beam_size, list(length_penalties)))
        systems = [SYSTEMS[beam_size][alpha] for alpha in length_penalties]
        return [list(row) for row in zip(*systems, strict=True)]

    scored = tuning.score_searches(translate, quality, [1, 4], [0.6, 0.0])
    assert calls == [(1, [0.6, 0.0]), (4, [0.6, 0.0])]
    expected = [[quality(SYSTEMS[size][alpha]) for alpha in (0.6, 0.0)] for size in (1, 4)]
    assert scored.scores == expected
    assert scored.best == (4, 0.6, scored.scores[1][0])


@pytest.mark.parametrize(
    ("scores", "best", "beam_sizes"),
    [
        ([[1.0, 2.0], [3.0, 2.5]], (4, 0.0, 3.0), (1, 4)),
        ([[1.0, 2.0], [1.0, 3.0]], (4, 0.6, 3.0), (1, 4)),
        # Of equal scores, the smallest beam's is best, and then the first penalty's.
        ([[2.0, 3.0], [3.0, 3.0]], (1, 0.6, 3.0), (1, 4)),
        ([[3.0, 3.0], [3.0, 3.0]], (1, 0.0, 3.0), (1, 4)),
        ([[3.0, 1.0], [3.0, 1.0]], (2, 0.0, 3.0), (8, 2)),
    ],
)
def test_the_best_is_the_highest(scores, best, beam_sizes):
    assert grid(scores, beam_sizes).best == best


def test_the_table_marks_the_best():
    assert grid([[7.0, 8.25], [10.5, 10.25]]).table().splitlines() == [
        "beam  alpha 0   alpha 0.6",
        "   1     7.00        8.25",
        "   4    10.50*      10.25",
    ]


@pytest.mark.parametrize(
    ("read", "texts", "numbers"),
    [
        (BEAM_SIZES, ["1", "12"], [1, 12]),
        (tuning.length_penalties_of, ["0", ".6", "1e0"], [0.0, 0.6, 1.0]),
    ],
)
def test_beam_sizes_and_length_penalties_are_read(read, texts, numbers):
    assert read(texts) == numbers


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (BEAM_SIZES, ["0"]),
        (BEAM_SIZES, ["1001"]),
        (BEAM_SIZES, ["2.5"]),
        (BEAM_SIZES, []),
        (BEAM_SIZES, ["4", "4"]),
        (tuning.length_penalties_of, ["-0.1"]),
        (tuning.length_penalties_of, ["nan"]),
        (tuning.length_penalties_of, ["inf"]),
        (tuning.length_penalties_of, ["0.6", "x"]),
        (tuning.length_penalties_of, ["0.6", "0.60"]),
    ],
)
def test_other_numbers_are_refused(read, texts):
    with pytest.raises(ValueError, match=r"joined by commas, each once\. Received: --") as raised:
        read(texts)
    assert str(raised.value).endswith(f"={','.join(texts)}.")
