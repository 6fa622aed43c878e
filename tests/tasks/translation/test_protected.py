"""A translator that keeps placeholders, tags and links, live and exported; and one that uses a
glossary's translations of terms.
"""

import asyncio
import functools
import json
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf
from command_flags import flags_of, values_of_task
from exports import checks_here
from small_model import eager_training

from keras_transformer import translate
from keras_transformer.inference.loading import load_trained, module_of_run
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.run import Run
from keras_transformer.saved_models import ctranslate2_model
from keras_transformer.tasks import TRAINING
from keras_transformer.tasks.translation.task import Translation
from keras_transformer.visualization.length_charts import Lengths
from pipelines.batches.bucketing import MOST_PADDING, MOST_PADDING_STATIC, bucket
from pipelines.glossary import Glossary
from pipelines.vocabularies.protected_spans import FILE, MARKS, ProtectedSpans, TextMarks

KINDS = "--protect=placeholders,tags,urls,emails,numbers"
SIZES = (
    *("--num_layers=1", "--d_model=16", "--d_ff=32", "--num_heads=2", "--vocabulary_size=340"),
    *("--mixed_precision=float32", "--max_steps=3", "--validation_sentences=0", "--seed=1"),
    *("--batch_tokens=256", "--average_checkpoints=1", "--corpus=text_files"),
)
SPANS = ("{name}", "<b>", "</b>", "https://a.b/c", "me@example.com", "12345", "%s")
# Nested tags, many and long spans, no spans, half a pair of brackets.
HARD = (
    *("<p>a <b>b</b> <i>c</i></p>", "", "  ", "only words", "⟦ a", "⟦keep me⟧ b", "{a} {a} {a}"),
    *(" ".join(f"{{x{number}}}" for number in range(70)), "a {" + "y" * 4000 + "} b"),
)


def sentences(seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        words = [draw.choice("abcdefgh") for _ in range(draw.randint(1, 5))]
        for _ in range(draw.randint(0, 2)):
            words.insert(draw.randint(0, len(words)), draw.choice(SPANS))
        yield words


def times(text):
    """How often each span of any sentence here stands in a text."""
    return {span: text.count(span) for span in (*SPANS, "{a}", "{x1}", "{x69}", "y" * 4000)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("text")
    for split, count in (("train", 120), ("valid", 8), ("test", 8)):
        rows = list(sentences(split, count))
        for language, side in (("en", rows), ("de", [row[::-1] for row in rows])):
            text = "\n".join(" ".join(row) for row in side) + "\n"
            (path / f"{split}.{language}").write_text(text, encoding="utf-8")
    # One pair whose sides differ.
    for language, line in (("en", "a {name}"), ("de", "{nome} a")):
        with (path / f"train.{language}").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return path


@pytest.fixture(scope="module")
def values(folder):
    """A function of arguments: the values of flags."""

    def of(*arguments):
        return values_of_task(Translation, *SIZES, f"--data_dir={folder}", *arguments)

    return of


@pytest.fixture(scope="module")
def trained(values, tmp_path_factory, shared):
    """The folder of a run."""
    path = tmp_path_factory.mktemp("protected")
    flags = (KINDS, "--truecase", f"--model_dir={path / 'run'}", "--norelease")
    with eager_training():
        Run(Translation, values(*flags), TRAINING).train()
    shared.add(path)
    return path / "run"


def test_a_run_resumes_with_the_same_protection_alone(trained, values, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    go_on = (KINDS, "--truecase", f"--model_dir={tmp_path / 'run'}", "--norelease")
    with eager_training():
        Run(Translation, values(*go_on, "--max_steps=4"), TRAINING).train()
    assert "going on from step 3 " in capsys.readouterr().out
    for flags in (("--protect=tags", "--truecase"), (KINDS,)):
        with pytest.raises(ValueError, match=r"holds another run: (protect|truecase) was "):
            Run(Translation, values(*go_on[2:], *flags), TRAINING).train()


@pytest.fixture(scope="module")
def module(trained):
    """The module of the run, which its translator and its export share: graphs are traced once."""
    return module_of_run(RunFolder(trained), {})


@pytest.fixture(scope="module")
def translator(trained, module):
    """A function of options: the translator of the run, which is loaded and traced once."""

    def load(**options):
        return Translator.load(trained, **options) if options else Translator(module)

    return functools.cache(load)


@pytest.fixture(scope="module")
def saved(trained, module, tmp_path_factory, shared):
    """The folder of the versions of the run."""
    path = tmp_path_factory.mktemp("exported") / "saved"
    description = RunFolder(trained).read_description()
    examples = [" ".join(words) for words in sentences("test", 4)]
    with checks_here():
        Translation.write("saved_model", module, path, description, examples)
    return shared.add(path)


@pytest.fixture(scope="module")
def exported(saved):
    return Translator.load(saved)


@pytest.mark.parametrize(
    ("is_static", "share"), [(False, MOST_PADDING), (True, MOST_PADDING_STATIC)]
)
def test_the_picture_of_lengths_has_the_pairs_and_buckets_of_the_training(
    trained, values, tmp_path, is_static, share
):
    task = Translation(values(KINDS, "--truecase"))
    task.read_files(RunFolder(trained))
    lengths = task.examples("train").lengths
    shutil.copytree(trained, tmp_path / "run")
    description = RunFolder(trained).read_description()
    description["asked"]["static_shapes"] = is_static
    (tmp_path / "run" / "model.json").write_text(json.dumps(description))
    counts = Lengths().measure(str(tmp_path / "run"), {}).args[0]
    np.testing.assert_array_equal(counts.lengths, lengths)
    np.testing.assert_array_equal(counts.buckets.lengths, bucket(lengths, 256, share).lengths)


def test_a_run_says_what_it_protects(trained, saved):
    described = RunFolder(trained).read_description()
    kinds = ["placeholders", "tags", "urls", "emails", "numbers"]
    assert described["protected"] == {"protect": kinds, "protect_pattern": "", "truecase": True}
    for place in (trained, saved / "1" / "assets.extra"):
        expected = described["protected"] | {"cased_words": []}
        assert json.loads((place / FILE).read_text()) == expected


def test_marks_are_single_pieces_and_pairs_that_differ_are_counted(values, folder, tmp_path):
    run = Run(Translation, values(KINDS, f"--model_dir={tmp_path / 'run'}"), TRAINING)
    run._prepare_folder()
    task = run.task
    assert task.corpus.dropped == {"with unequal protected spans": 1}
    assert set(MARKS) <= set(task.vocabulary.pieces)
    source = task.vocabulary.tokenize(tf.constant(["a ⟦1⟧"])).to_list()[0]
    assert task.vocabulary.pieces.index("⟦1⟧") in source


def test_terms_are_looked_for_in_the_pairs_that_are_trained_on(
    values, folder, tmp_path, monkeypatch
):
    """Words are compared with each other: those of a huge line would take 14 GB."""
    texts = []

    def spy(text, *more):
        texts.append(text)
        return text.sources

    monkeypatch.setattr("keras_transformer.tasks.translation.task.with_terms", spy)
    flags = (KINDS, "--glossary_rate=1", "--max_train_length=6", f"--model_dir={tmp_path / 'run'}")
    run = Run(Translation, values(*flags), TRAINING)
    run._prepare_folder()
    run.task.examples("train")
    [read] = texts
    assert max(len(source.split()) for source in read.sources) < 6
    # The control: longer lines are in the corpus.
    assert len(read) < len(run.task.corpus.train)


@pytest.mark.parametrize(
    "options", [{}, {"beam_size": 1}, {"samples": 2, "seed": 1}, {"beam_form": "shrinking"}]
)
def test_every_span_comes_back_once(translator, options):
    lines = [" ".join(words) for words in sentences("new", 12)] + list(HARD)
    translated = translator(**options).translate(lines)
    for line, translation in zip(lines, translated, strict=True):
        assert times(translation) == times(line)
    assert translated[len(lines) - len(HARD) + 1] == ""
    assert "keep me" in translated[lines.index("⟦keep me⟧ b")]


def test_the_savedmodel_translates_as_the_run(translator, exported):
    lines = [" ".join(words) for words in sentences("new", 6)] + list(HARD)
    live = translator()
    assert exported.translate(lines) == live.translate(lines)
    scored = (np.array(model.score(lines[:4], lines[2:6])) for model in (live, exported))
    np.testing.assert_allclose(*scored, rtol=1e-5)


def test_words_within_spans_are_counted_as_they_stand(translator, exported):
    lines = ['A <b c="d e"> b\tc {f  g}h', "A b"]
    for model in (translator(), exported):
        [links, alone] = model.align(lines, [lines[0], "A"])
        assert [target for _, target in links] == [*range(len(lines[0].split()))]
        assert [target for _, target in alone] == [0]


def test_text_in_capitals_has_its_own_translation_in_capitals(translator, exported):
    lines = ["A B C D E {name}", "F G A H B"]
    for model in (translator(), exported):
        [first, second] = model.translate(lines)
        # Cased as in the training text.
        as_read = model.translate(["A b c d e {name}", "F g a h b"])
        assert first == as_read[0].upper().replace("{NAME}", "{name}")
        assert second == as_read[1].upper() != as_read[1]
        lengths = model._model.lengths([*lines, "A b c d e {name}", "F g a h b"])
        assert lengths[:2] == lengths[2:]
        scores = model.score([lines[1], "F g a h b"], ["B H A G F", "B h a g f"])
        np.testing.assert_allclose(*scores, rtol=1e-5)
        [[best, *_]] = model.translate_in_detail([lines[1]], [""])
        assert best.text == second


def test_nested_tags_stay_nested(translator):
    [translated] = translator().translate([HARD[0]])
    opened = []
    for tag in translated.replace("<", " <").replace(">", "> ").split():
        if tag.startswith("</"):
            assert opened.pop() == tag.replace("/", "")
        elif tag.startswith("<"):
            opened.append(tag)
    assert opened == []


def test_a_line_does_not_depend_on_its_batch(translator):
    translate = translator().translate
    lines = [*HARD[:7], "a {name} b"]
    assert translate(lines) == [translate([line])[0] for line in lines]


def test_references_and_prefixes_have_the_marks_of_their_sources(translator):
    attention = translator().attention("{x} a {y}", "{y} {x} {z}")
    assert [piece for piece in attention["target_pieces"] if piece in MARKS] == ["⟦2⟧", "⟦1⟧"]
    [[first, *_]] = translator().translate_in_detail(["a {name}"], ["{name}"])
    assert first.text.startswith("{name}")
    assert first.text.count("{name}") == 1


def test_ctranslate2_has_the_model_and_warns_of_lost_spans(trained, tmp_path, capsys):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="install the extra [ctranslate2]")
    loaded = load_trained(RunFolder(trained))
    folder = ctranslate2_model.convert(*loaded, tmp_path / "other", {})
    assert "can lose protected spans" in capsys.readouterr().out
    assert "marks.put_back" in (folder / "README.md").read_text()
    marks = TextMarks(ProtectedSpans.load(folder))
    hidden = marks.marked("a {name}").text
    pieces = loaded[1].processor.encode(hidden, out_type=str)
    [answer] = ctranslate2.Translator(str(folder)).translate_batch([pieces])
    assert answer.hypotheses[0]


def test_an_invalid_pattern_is_refused_before_anything_is_written(values, tmp_path):
    wrong = values("--protect_pattern=(", f"--model_dir={tmp_path / 'run'}")
    message = r"`protect_pattern` must be a regular expression\. Received: \( \(missing [^[]*\)\."
    with pytest.raises(ValueError, match=message):
        Run(Translation, wrong, TRAINING).train()
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").glob("*.model"))


def test_a_damaged_file_is_refused(trained, tmp_path):
    (tmp_path / FILE).write_text('{"protect": ["names"]}')
    with pytest.raises(ValueError, match=r"protected_spans.json is damaged: .*Received: .*names"):
        ProtectedSpans.load(tmp_path)
    assert ProtectedSpans.load(trained).are_any
    assert np.all([ProtectedSpans.load(tmp_path / "none") is None])


def test_terms_of_a_glossary_get_their_translations(trained, translator, exported):
    protected = ProtectedSpans.load(trained)
    glossary = Glossary({"a": "Alpha", "b c": "beta gamma"}, protected)
    lines = ["a b c {name}", "h", "A g"]
    for model in (translator(), exported):
        translated = model.translate([glossary.applied(line) for line in lines])
        assert all(translated[0].count(term) == 1 for term in ("Alpha", "beta gamma", "{name}"))
        assert translated[2].count("Alpha") == 1
        assert "Alpha" not in translated[1]


def test_json_has_the_source_without_the_marks_of_a_glossary(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.startup.spread_over_cores", lambda: 1)
    files = {name: tmp_path / name for name in ("input", "glossary", "output")}
    files["input"].write_text("a b\n")
    files["glossary"].write_text("a\tAlpha\n")
    named = (f"--{name}={path}" for name, path in files.items())
    translate.main(flags_of("translate", f"--model={trained}", "--json", *named))
    line = json.loads(files["output"].read_text())
    assert line["source"] == "a b"
    assert "Alpha" in line["hypotheses"][0]["translation"]


def test_a_server_takes_a_glossary(saved):
    pytest.importorskip("orjson", reason="install the extra [serve]")
    from keras_transformer.server.batcher import Batcher
    from keras_transformer.server.options import RequestError, ServeOptions
    from keras_transformer.server.served_versions import Versions
    from keras_transformer.server.service import Service

    options = ServeOptions()
    versions = Versions(saved)
    batcher = Batcher(options)
    service = Service("m", versions, batcher, options)

    def ask(**more):
        body = json.dumps({"instances": ["a b"], **more}).encode()
        answer = b"".join(asyncio.run(service.predict("m", None, body, {})))
        return json.loads(answer)["predictions"][0]

    assert "Alpha" in ask(glossary={"a": "Alpha"})
    assert "Alpha" not in ask()
    for wrong in ({"a": 1}, ["a"], {"a": ""}, {"a": "\ud800"}):
        with pytest.raises(RequestError, match=r"glossary|surrogates"):
            ask(glossary=wrong)
    batcher.close()
    versions.close()


# A small translator learns to use the translations that follow words in its source.
SIZES_FOR_TERMS = (
    *("--num_layers=1", "--d_model=64", "--d_ff=128", "--num_heads=4", "--vocabulary_size=500"),
    *("--mixed_precision=float32", "--max_steps=130", "--validation_sentences=0", "--seed=1"),
    *("--batch_tokens=512", "--average_checkpoints=1", "--corpus=text_files", "--norelease"),
    *("--positions=rotary", "--dropout=0", "--schedule=constant", "--learning_rate=0.003"),
    *("--warmup_steps=50", "--label_smoothing=0"),
)
ENDS = [first + second for first in "bdfgklmn" for second in "aeiou"]
TRANSLATIONS = [f"{end}ri" for end in ENDS]
# Five translations of each word, between which nothing in the sentence decides.
WORDS = {
    f"word{end}": [TRANSLATIONS[(place + step) % len(ENDS)] for step in (0, 1, 7, 19, 30)]
    for place, end in enumerate(ENDS)
}
COUNT = 60


def sentence_of_terms(draw):
    words = draw.sample([*WORDS], draw.randint(2, 3))
    return " ".join(words), " ".join(draw.choice(WORDS[word]) for word in words)


def appear(translator, glossaries):
    """In how many sentences a term has its translation, without and with the glossary."""
    draw = random.Random(2)
    protected = ProtectedSpans.in_description(translator.description)
    lines = []
    for terms in glossaries:
        words = [*terms, *draw.sample([word for word in WORDS if word not in terms], 2)]
        lines.append(" ".join(draw.sample(words, 3)))
    pairs = zip(glossaries, lines, strict=True)
    marked = [Glossary(terms, protected).applied(line) for terms, line in pairs]
    expected = [translation for terms in glossaries for translation in terms.values()]
    return [
        sum(term in text.split() for term, text in zip(expected, translations, strict=True))
        for translations in (translator.translate(lines), translator.translate(marked))
    ]


def test_terms_appear_that_training_never_saw(tmp_path):
    draw = random.Random(1)
    for split, count in (("train", 6000), ("valid", 8), ("test", 8)):
        rows = [sentence_of_terms(draw) for _ in range(count)]
        for language, side in zip(("en", "de"), zip(*rows, strict=True), strict=True):
            text = "\n".join(side) + "\n"
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    flags = (f"--data_dir={tmp_path}", f"--model_dir={tmp_path / 'run'}", "--glossary_rate=0.7")
    Run(Translation, values_of_task(Translation, *SIZES_FOR_TERMS, *flags), TRAINING).train()
    translator = Translator.load(tmp_path / "run")
    draw = random.Random(3)
    learned = [{word: draw.choice(WORDS[word])} for word in draw.choices([*WORDS], k=COUNT)]
    unseen = [
        {word: draw.choice([term for term in TRANSLATIONS if term not in WORDS[word]])}
        for word in draw.choices([*WORDS], k=COUNT)
    ]
    for glossaries, most_without in ((learned, 0.4), (unseen, 0.1)):
        without, with_glossary = appear(translator, glossaries)
        assert without <= most_without * COUNT
        assert with_glossary >= 0.85 * COUNT
