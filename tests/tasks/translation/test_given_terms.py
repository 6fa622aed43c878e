"""A small translator learns to use the translations that stand behind words of its source."""

import random

import pytest

from keras_transformer.inference.translator import Translator
from keras_transformer.runs.run import Run
from keras_transformer.tasks import TRAINING
from keras_transformer.tasks.translation.task import Translation
from pipelines.glossary import Glossary
from pipelines.vocabularies.protected_spans import ProtectedSpans

SIZES = (
    *("--num_layers=1", "--d_model=64", "--d_ff=128", "--num_heads=4", "--vocabulary_size=500"),
    *("--mixed_precision=float32", "--max_steps=180", "--validation_sentences=0", "--seed=1"),
    *("--batch_tokens=512", "--average_checkpoints=1", "--corpus=text_files", "--norelease"),
    *("--positions=rotary", "--dropout=0", "--schedule=constant", "--learning_rate=0.003"),
    *("--warmup_steps=50", "--label_smoothing=0"),
)
ENDS = [first + second for first in "bdfgklmn" for second in "aeiou"]
TRANSLATIONS = [f"{end}ri" for end in ENDS]
# Five translations of each word, of which the sentence does not say which is meant.
WORDS = {
    f"word{end}": [TRANSLATIONS[(place + step) % len(ENDS)] for step in (0, 1, 7, 19, 30)]
    for place, end in enumerate(ENDS)
}
COUNT = 60


def sentence(draw):
    words = draw.sample([*WORDS], draw.randint(2, 3))
    return " ".join(words), " ".join(draw.choice(WORDS[word]) for word in words)


@pytest.fixture(scope="module")
def trained(values_of, tmp_path_factory, shared):
    """The folder of a run that was trained with terms."""
    made = tmp_path_factory.mktemp("terms")
    draw = random.Random(1)
    for split, count in (("train", 8000), ("valid", 8), ("test", 8)):
        rows = [sentence(draw) for _ in range(count)]
        for language, side in zip(("en", "de"), zip(*rows, strict=True), strict=True):
            text = "\n".join(side) + "\n"
            (made / f"{split}.{language}").write_text(text, encoding="utf-8")
    flags = (f"--data_dir={made}", f"--model_dir={made / 'run'}", "--glossary_rate=0.7")
    Run(Translation, values_of(Translation, *SIZES, *flags), TRAINING).train()
    shared.add(made)
    return made / "run"


def appear(translator, glossaries):
    """In how many sentences a term's translation comes, without and with its glossary."""
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
        sum(one in text.split() for one, text in zip(expected, some, strict=True))
        for some in (translator.translate(lines), translator.translate(marked))
    ]


def test_terms_appear_that_were_never_seen(trained):
    draw = random.Random(3)
    translator = Translator.load(trained)
    seen = [{word: draw.choice(WORDS[word])} for word in draw.choices([*WORDS], k=COUNT)]
    unseen = [
        {word: draw.choice([one for one in TRANSLATIONS if one not in WORDS[word]])}
        for word in draw.choices([*WORDS], k=COUNT)
    ]
    for glossaries, most_without in ((seen, 0.4), (unseen, 0.1)):
        without, given = appear(translator, glossaries)
        assert without <= most_without * COUNT
        assert given >= 0.85 * COUNT
