"""What each picture is made of: from the values of the command's flags to a function that draws.

Each function takes the values that it needs by name, and gives a function from a `Theme` to a
figure. What a picture alone needs is imported by its function, so that a picture of a learning
rate loads no translator.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Draw = Callable
# What can be drawn, by the name that --picture has for it.
PICTURES: dict[str, Callable[..., Draw]] = {}


def _picture(function):
    PICTURES[function.__name__] = function
    return function


@_picture
def attention(
    model: str,
    attend_of: Callable,
    line: str | None,
    translation: str | None,
    stack: str | None,
    pieces: bool,
    options: Mapping,
    **_: Any,
) -> Draw:
    """The maps of all layers and heads of a stack."""
    from keras_transformer.visualization import attention_maps
    from keras_transformer.visualization.model_reading import attended_by

    found = attended_by(model, attend_of, line, translation, stack, pieces, options)
    return functools.partial(attention_maps.draw, found)


@_picture
def head(
    model: str,
    attend_of: Callable,
    line: str | None,
    translation: str | None,
    stack: str | None,
    pieces: bool,
    layer: int | None,
    heads: Sequence[str],
    from_word: str | None,
    options: Mapping,
    **_: Any,
) -> Draw:
    """Heads of one layer as lines between words."""
    from keras_transformer.visualization import attention_lines
    from keras_transformer.visualization.model_reading import attended_by

    found = attended_by(model, attend_of, line, translation, stack, pieces, options)
    rows = attention_lines.rows_of(found, from_word)
    chosen = (found.layer(layer), found.heads(heads), rows)
    return functools.partial(attention_lines.draw, found, *chosen)


@_picture
def alignment(
    model: str,
    attend_of: Callable,
    line: str | None,
    translation: str | None,
    stack: str | None,
    pieces: bool,
    layer: int | None,
    heads: Sequence[str],
    options: Mapping,
    **_: Any,
) -> Draw:
    """The matrix of words: the mean of a layer's heads."""
    from keras_transformer.visualization import attention_matrix
    from keras_transformer.visualization.attended import TITLES
    from keras_transformer.visualization.model_reading import attended_by

    if stack not in (None, "cross"):
        raise ValueError(
            "--picture=alignment draws the attention of the decoder to the source. Received: "
            f"--stack={stack}. Leave it out, or take --picture=attention."
        )
    found = attended_by(model, attend_of, line, translation, None, pieces, options)
    if found.stack != "cross":
        raise ValueError(
            "--picture=alignment draws the attention of a translator to the source. Received: "
            f"{model}, which has the {TITLES[found.stack]} alone. Try --picture=attention."
        )
    weights = found.weights[found.layer(layer)][found.heads(heads)].mean(axis=0)
    return functools.partial(attention_matrix.draw, found.columns, found.rows, weights)


@_picture
def positions(model: str, **_: Any) -> Draw:
    """What the model knows positions by."""
    from keras_transformer.visualization import position_maps, position_values
    from keras_transformer.visualization.model_reading import trained_model

    trained, _, _ = trained_model(model, "positions")
    return functools.partial(position_maps.draw, position_values.maps_of(trained))


@_picture
def learning_rate(recipes: Mapping[str, Mapping], steps: int | None, **_: Any) -> Draw:
    """Learning rates of several recipes."""
    from keras_transformer.visualization import line_chart
    from keras_transformer.visualization.learning_rates import learning_rates

    return functools.partial(line_chart.draw, [learning_rates(recipes, steps)])


@_picture
def curves(model: str, **_: Any) -> Draw:
    """Loss and scores of several runs."""
    from keras_transformer.visualization import line_chart, run_histories

    paths = model.split(",")
    names = run_histories.names_of(paths)
    histories = {
        name: run_histories.read_history(path) for name, path in zip(names, paths, strict=True)
    }
    return functools.partial(line_chart.draw, run_histories.panels(histories))


@_picture
def lengths(model: str, **_: Any) -> Draw:
    """The lengths and buckets of the text that a run learned from."""
    from keras_transformer.visualization import length_charts, length_counts
    from keras_transformer.visualization.model_reading import run_of_pairs
    from pipelines import corpora, vocabularies
    from pipelines.batches import batching

    folder = run_of_pairs(model, "lengths")
    description = folder.read_description()
    training = description["training"]
    corpus = corpora.load(**description["corpus"])
    if corpus.weights is not None:
        print("Each pair is counted once: the weights of the mixture are left out.")
    vocabulary = vocabularies.load(folder.path)
    pairs = batching.tokenize_pairs(corpus.train, vocabulary, training["max_length"])
    counts = length_counts.count(pairs.examples().lengths, training["batch_tokens"])
    return functools.partial(length_charts.draw, counts)


@_picture
def n_best(model: str, line: str | None, options: Mapping, **_: Any) -> Draw:
    """The best hypotheses as a tree."""
    from keras_transformer.decoding.options import kept_in, options_of_run
    from keras_transformer.inference.loading import description_of
    from keras_transformer.inference.translator import Translator
    from keras_transformer.visualization import hypothesis_drawing, hypothesis_tree
    from keras_transformer.visualization.model_reading import required_line

    line = required_line(line)
    # All that the search holds at its end: as asked, as the model remembers, or the default.
    search = options_of_run(options, kept_in(description_of(model)))
    count = {"num_hypotheses": search.samples or search.beam().beam_size}
    translator = Translator.load(model, **{**count, **options})
    [hypotheses] = translator.translate_in_detail([line])
    return functools.partial(hypothesis_drawing.draw, hypothesis_tree.tree(hypotheses))


@_picture
def heads(
    model: str,
    validation_of: Callable,
    source_file: str | None,
    reference_file: str | None,
    measured_sentences: int,
    trees: str | None,
    ablate: bool,
    options: Mapping,
    **_: Any,
) -> Draw:
    """What heads do. The table is printed."""
    from keras_transformer.evaluation.table import aligned
    from keras_transformer.inference.translator import Translator
    from keras_transformer.visualization import head_maps, heads_of_run
    from keras_transformer.visualization.bracket_trees import read_phrases
    from keras_transformer.visualization.head_survey import table
    from keras_transformer.visualization.model_reading import trained_model

    # Errors are reported before anything is measured.
    read = read_phrases(trees, measured_sentences) if trees else []
    trained = trained_model(model, "heads --ablate") if ablate else None
    asked = validation_of(model) if ablate else None
    translator = Translator.load(model)
    text = heads_of_run.text_of(translator.description, model, source_file, reference_file)
    sources, references = (side[:measured_sentences] for side in text)
    found = heads_of_run.measured(translator, sources, references)
    if read:
        agreed, chance = heads_of_run.agreement_with(translator, read)
        found[heads_of_run.IN_PHRASE] = {"encoder": agreed}
        print(f"{heads_of_run.IN_PHRASE}, by chance: {chance:.2f}")
    if trained:
        asked.keep_first(measured_sentences)
        lost = heads_of_run.points_lost(trained, model, asked.sources, asked.quality, options)
        found[f"{asked.unit} lost"] = lost
    print(aligned(table(found)))
    return functools.partial(head_maps.draw, found)


@_picture
def patches(model: str, png: str | None, **_: Any) -> Draw:
    """The patches that a Vision Transformer attends to. The class that it predicts is printed."""
    from keras_transformer.inference.loading import description_of
    from keras_transformer.inference.picture_classifier import PictureClassifier
    from keras_transformer.visualization import patch_attention
    from pipelines.batches import picture_files
    from pipelines.corpora.images import load

    description = description_of(model)
    classifier = PictureClassifier.load(model)
    if not png and "pictures" not in description:
        raise ValueError(
            f"{model} does not say what pictures it was trained on. Pass one by --png=FILE."
        )
    channels = description["hyperparameters"]["channels"]
    pixels = (
        picture_files.read(png, channels) if png else load(**description["pictures"]).test.pixels[0]
    )
    [name], probabilities = classifier.classify(pixels[None])
    title = f"{name}: {probabilities.max():.1%}"
    print(title)
    return functools.partial(patch_attention.draw, pixels, classifier.attention(pixels), title)
