"""Export a translator or a language model as graphs of ONNX or LiteRT, to run without TensorFlow.

The graphs are traced from the model's `encode` and `Stepper`, so that every architecture can be
exported. They hold no search: that is `decoding.numpy_search`.
"""

import importlib
import pathlib
import tempfile
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.numpy_rules import refuse_unknown
from keras_transformer.inference import litert_conversion, onnx_conversion, web_folder
from keras_transformer.inference.held_out_text import HeldOut
from keras_transformer.inference.model_graphs import traced
from keras_transformer.inference.portable import GOLDEN, Portable
from keras_transformer.inference.portable_graphs import RUNTIMES
from keras_transformer.inference.step_graphs import graphs_of
from keras_transformer.inference.text_module import TEXT, TextModule
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models import assets, card
from keras_transformer.saved_models.options import OF_PORTABLE
from keras_transformer.saved_models.signature import as_strings
from keras_transformer.saved_models.versions import DECODERS
from keras_transformer.saved_models.write import new_version
from pipelines import needing
from pipelines.vocabularies.model_proto import is_byte_level, rules_of
from pipelines.vocabularies.protected_spans import TextMarks
from pipelines.whole_files import folder_beside, whole_folder, write_json

CONVERSIONS = {"onnx": onnx_conversion, "litert": litert_conversion}
# Formats whose graphs are those of another format.
RUNS_AS = {"web": "onnx"}
PACKAGES = ("tensorflow", "keras", "sentencepiece")
# The values of `TextModule.output` whose text needs only a search and a vocabulary.
OUTPUTS = ("translation", "generated")
REMARK = (
    "`{encoder}` and `{decoder}` ({files}) run with {runtime}, `vocabulary*.model` with "
    "SentencePiece; neither needs TensorFlow.\n"
    "`keras_transformer.Translator.load(FOLDER)` searches with them. "
    f"`{GOLDEN}` has examples and what came out for\n"
    "them when this was exported.\n"
)


def export(
    module: TextModule,
    folder: str | pathlib.Path,
    description: Mapping,
    examples: Sequence[str] = (),
    precision: str = "float32",
    version: int | None = None,
    form: str = "onnx",
    held_out: HeldOut | None = None,
) -> pathlib.Path:
    """Write a numbered version of a format, "onnx", "litert" or "web", into a folder; if it fails,
    nothing is written.

    In float32 the golden examples must come out as from the live model. With weights rounded to
    "float16" or "int8" the golden examples are the export's own outputs; its card says how many
    equal those of the live model, and compares the two models' BLEU on held-out text.
    """
    require_packages(form)
    refuse(module, form, precision)
    graphs = RUNS_AS.get(form, form)
    final = new_version(folder, version)
    if form == "web":
        web_folder.prepare(module)
    with whole_folder(final) as temporary:
        _convert(module, form, precision, temporary)
        size = sum(path.stat().st_size for path in temporary.iterdir())
        module.write_files(temporary)
        facts = {"format": form, "precision": precision, "bytes": size}
        description = {**description, "decoding": module.facts()["decoding"]}
        write_json(temporary / "model.json", description)
        texts, expected = _golden(module, examples)
        outputs = _translations(temporary, texts, module.options.samples)
        if precision == "float32":
            _check(texts, expected, outputs)
            if module.has_blocks and form != "web":
                _check_blocks(texts, temporary)
        else:
            pairs = zip(expected, outputs["alone"], strict=True)
            equal = sum(reference == output for reference, output in pairs)
            facts["golden_as_in_float32"] = f"{equal} of {len(texts)}"
            if held_out and not module.options.samples:
                facts["bleu"] = _bleu(held_out, module, temporary, precision)
        golden = [
            {"text": np.array(text, object), module.output: np.array(output, object)}
            for text, output in zip(texts, outputs["alone"], strict=True)
        ]
        assets.write_golden(temporary / GOLDEN, golden)
        remark = REMARK.format(
            encoder=DECODERS[graphs].replace("decoder", "encoder"),
            decoder=DECODERS[graphs],
            files=_in_words(facts),
            runtime=RUNTIMES[graphs].runtime,
        )
        if form == "web":
            web_folder.write(temporary, module, module.title(description), size)
            facts["npm"] = web_folder.facts()
            remark += web_folder.remark()
        packages = (*PACKAGES, *CONVERSIONS[graphs].PACKAGES)
        card.write(temporary, module, description, facts, remark, packages)
    return final


def require_packages(form: str) -> None:
    """Refuse a format whose packages are not installed."""
    graphs = RUNS_AS.get(form, form)
    with needing(graphs, f"--format={form}"):
        for name in CONVERSIONS[graphs].MODULES:
            importlib.import_module(name)


def refuse(module: TextModule, form: str, precision: str = "float32") -> None:
    """Refuse a module that a format cannot express."""
    if precision not in OF_PORTABLE:
        raise ValueError(
            f"--format={form} has a precision of {', '.join(OF_PORTABLE)}. Received: "
            f"--precision={precision}. Choose one of these."
        )
    if module.output not in OUTPUTS:
        raise ValueError(
            f"--format={form} is for translators and language models. Received: a model whose "
            f"output is a {module.output}, which needs TensorFlow. Export a SavedModel."
        )
    model = module.vocabulary.source.model
    if rules_of(model) or is_byte_level(model):
        raise ValueError(
            f"--format={form} supports neither the replacements of preprocess.sh nor the bytes of "
            "GPT-2, which need TensorFlow. Export a SavedModel."
        )
    if module.marks:
        TextMarks(module.vocabulary.protected)
    refuse_unknown(module.options)


def require_operations(module: TextModule, form: str, folder: pathlib.Path) -> None:
    """Refuse a model with operations that LiteRT lacks, by a trial of its converter."""
    if form == "litert":
        with folder_beside(folder / form) as temporary:
            _convert(module, form, "float32", temporary)


def _convert(module, form, precision, folder):
    """Write the graphs of a module. Converters put temporary files into the folder of the graphs,
    which the next export removes if this one is killed.
    """
    graphs = RUNS_AS.get(form, form)
    usual = tempfile.tempdir
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        try:
            tempfile.tempdir = temporary
            for name, function, specifications in graphs_of(module, of_blocks=form != "web"):
                path = (folder / DECODERS[graphs]).with_stem(name)
                CONVERSIONS[graphs].convert(function, specifications, path, precision)
        finally:
            tempfile.tempdir = usual


def _golden(module, examples):
    """Return texts and the live outputs, greedy if sampled: other runtimes draw other samples."""
    texts = [inputs["text"].item() for inputs in module.golden_inputs(examples)]
    texts = [text for text in texts if text.decode(errors="ignore").encode() == text]

    def greedily(text):
        ids, _, text = module.search_for_terms(module.options.greedy().search(), text)
        return {module.output: module.target_text(ids[:, 0], text)}

    is_sampled = module.options.samples
    serve = traced(greedily, TEXT) if is_sampled else module.functions()["serving_default"]
    return as_strings(texts), as_strings(serve(tf.constant(texts))[module.output].numpy())


def _translations(folder, texts, is_sampled):
    """Return the outputs of a folder for golden texts, in a batch and alone."""
    portable = Portable(folder, {"beam_size": 1} if is_sampled else {})
    alone = [portable.translate([text])[0] for text in texts]
    return {"in a batch": portable.translate(texts), "alone": alone}


def _check(texts, expected, outputs):
    for way, translations in outputs.items():
        for text, reference, output in zip(texts, expected, translations, strict=True):
            if output != reference:
                raise ValueError(
                    "nothing was exported: golden examples come out otherwise than from the live "
                    f"model. The first, {way}: {text!r} to {output!r}, expected {reference!r}."
                )


def _check_blocks(texts, folder):
    searches = {"beam_size": 1}, {"blockwise": True}
    greedy, blocks = (Portable(folder, options).translate(texts) for options in searches)
    _check(texts, greedy, {"in blocks": blocks})


def _bleu(held_out, module, folder, precision):
    """Return the BLEU of a module in float32 and of its export, on the same text."""
    translators = {"float32": Translator(module), precision: Translator.load(folder)}
    scores = {
        name: held_out.measure(translator.translate(held_out.sources), held_out.references)
        for name, translator in translators.items()
    }
    return {
        **{name: score["bleu"] for name, score in scores.items()},
        "sentences": len(held_out.sources),
        "signature": scores[precision]["bleu_signature"],
    }


def _in_words(facts):
    """Return what the README says of the files' size and of the effect of rounding."""
    parts = [f"{facts['bytes'] / 1e6:.1f} MB in {facts['precision']}"]
    if equal := facts.get("golden_as_in_float32"):
        parts.append(f"{equal} golden examples come out as in float32")
    if bleu := facts.get("bleu"):
        parts.append(
            f"BLEU {bleu[facts['precision']]}, in float32 {bleu['float32']}, of "
            f"{bleu['sentences']} sentences of the test split"
        )
    return "; ".join(parts)
