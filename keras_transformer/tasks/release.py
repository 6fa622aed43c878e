"""From the checkpoints of a finished run to a translator that can be served (Vaswani et al. 2017,
section 6.1).
"""

from keras_transformer.artifacts.saved_model import export
from keras_transformer.evaluation import bleu
from keras_transformer.training import averaging, checkpoint
from keras_transformer.translator.translation_module import TranslationModule
from keras_transformer.translator.translator import Translator
from pipelines.whole_files import write_json

EXAMPLES = 12


def choose_weights(folder, last, best=False, averages=None):
    """Write the weights that are scored and served, `folder.averaged`.

    Args:
        folder: the run's `RunFolder`.
        last: how many of the last checkpoints are averaged,
        best: unless those of the best epoch are asked for,
        averages: or arrays by name, those of a moving average.

    Returns:
        What was chosen, in words.
    """
    if best:
        averaging.write_average(folder.averaged, [folder.best])
        return "best epoch"
    if averages:
        checkpoint.write_archive(folder.averaged, averages)
        return "moving average of the weights"
    checkpoints = checkpoint.checkpoints(folder.checkpoints)[-last:]
    averaging.write_average(folder.averaged, checkpoints)
    return f"mean of the last {len(checkpoints)} checkpoints"


def release(folder, model, vocabulary, options, test, chosen, export_dir, description):
    """Score the chosen weights on the test split, export them, and show some translations.

    Args:
        folder: the run's `RunFolder`.
        model: a float32 `Transformer`, which takes over the weights.
        vocabulary: its `Vocabulary`.
        options: `DecodingOptions`.
        test: sentences with `sources` and `targets`.
        chosen: what the weights are, in words.
        export_dir: folder of the model's versions.
        description: what the model is, for its `model.json`.
    """
    checkpoint.load_weights(folder.averaged, model)
    module = TranslationModule(model, vocabulary, options)
    translations = Translator(module).translate(test.sources)
    scores = {**bleu.score(translations, test.targets), "weights": chosen}
    beam_size = options.search().beam_size
    write_json(folder.evaluation, {"split": "test", "beam_size": beam_size, **scores})
    print(f"{chosen}, beam {beam_size}: BLEU {scores['bleu']}  chrF {scores['chrf']}")
    print(f"  {scores['bleu_signature']}")
    for source, translation, reference in list(
        zip(test.sources, translations, test.targets, strict=True)
    )[:5]:
        print(
            f"\n  source       {source}\n  translation  {translation}\n  reference    {reference}"
        )
    write_json(folder.examples, list(test.sources[:EXAMPLES]))
    version = export(
        module, export_dir, {**description, **folder.read_scores()}, folder.read_examples()
    )
    print(
        f"\nexported to {version}. Try it:\n  echo '{test.sources[0]}' | python -m "
        f"keras_transformer.translate --model={version}"
    )
