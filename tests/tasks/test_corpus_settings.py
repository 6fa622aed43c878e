"""What a run says of its text: the languages are those of the corpus, and a run of an earlier
version, which wrote those of the flags, resumes.
"""

import pytest

from keras_transformer.tasks import corpus_settings
from keras_transformer.tasks.translation.task import Translation
from pipelines import corpora

# Of a corpus and flags: the languages of its text.
SAID = {
    "lines": ((), ("en", "en")),
    "spans": ((), ("en", "spans")),
    "treebank": ((), ("en", "trees")),
    "intents": ((), ("en", "intent")),
    "slots": (("--target_language=slots",), ("en", "slots")),
    "reverse": (("--target_language=x",), ("en", "x")),
}


@pytest.fixture
def settings_of(values_of, tmp_path):
    """A function of a key of `SAID` and flags: the settings of its corpus, and its values."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("one dog runs\n")
        (tmp_path / f"{split}.trees").write_text("(S (N dogs) (V run))\n")

    def settings(name, *arguments):
        folder = () if name in ("intents", "slots", "reverse") else (f"--data_dir={tmp_path}",)
        corpus = "intents" if name == "slots" else name
        values = values_of(Translation, f"--corpus={corpus}", *folder, *SAID[name][0], *arguments)
        return corpus_settings.corpus_settings(values), values

    return settings


@pytest.mark.parametrize("name", SAID)
def test_a_run_says_the_languages_of_its_corpus(settings_of, name):
    if name in ("intents", "slots"):
        pytest.importorskip("hassil", reason="install the extra [intents]")
        pytest.importorskip("home_assistant_intents", reason="install the extra [intents]")
    settings, values = settings_of(name)
    corpus = corpus_settings.load(settings, None, strict=False)
    said = corpus_settings.described(settings, corpus)
    languages = (said["corpus"]["source_language"], said["corpus"]["target_language"])
    assert languages == (corpus.source_language, corpus.target_language) == SAID[name][1]
    assert corpora.load(**said["corpus"]) == corpus
    assert corpus_settings.folder_name(values) == "_".join([settings["name"], *languages])
    # An earlier version wrote the languages of the flags.
    assert corpus_settings.fixed({"corpus": settings}) == corpus_settings.fixed(said)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("lines", "--source_language=de"),
        ("intents", "--target_language=slots"),
        ("reverse", "--target_language=y"),
    ],
)
def test_control_another_text_is_another_run(settings_of, name, flag):
    before, now = (
        corpus_settings.fixed({"corpus": settings_of(name, *more)[0]}) for more in ((), (flag,))
    )
    assert before != now
