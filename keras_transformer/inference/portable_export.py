"""A translator or a language model as graphs of ONNX or LiteRT, which run without TensorFlow.

The graphs are made of the live `encode` and `Stepper`, whatever the architecture; the search stays
outside, in `decoding.numpy_search`.
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
# What runs the graphs of another format.
RUNS_AS = {"web": "onnx"}
PACKAGES = ("tensorflow", "keras", "sentencepiece")
# What `TextModule.output` calls texts that need nothing but a search and a vocabulary.
KNOWN = ("translation", "generated")
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
    """Write a numbered version of a format, "onnx", "litert" or "web", into a folder, whole or not
    at all.

    In float32 it is not written if its golden examples come out otherwise than from the live model.
    With weights rounded to "float16" or "int8" the card says how many come out alike, the golden
    examples have what comes out of the folder, and text that was held out is translated by both.
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
        came = _translated(temporary, texts, module.options.samples)
        if precision == "float32":
            _check(texts, expected, came)
            if module.has_blocks and form != "web":
                _check_blocks(texts, temporary)
        else:
            alike = sum(one == other for one, other in zip(expected, came["alone"], strict=True))
            facts["golden_as_in_float32"] = f"{alike} of {len(texts)}"
            if held_out and not module.options.samples:
                facts["bleu"] = _bleu(held_out, module, temporary, precision)
        golden = [
            {"text": np.array(one, object), module.output: np.array(other, object)}
            for one, other in zip(texts, came["alone"], strict=True)
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
    """Refuse a module that a format does not keep."""
    if precision not in OF_PORTABLE:
        raise ValueError(
            f"--format={form} has a precision of {', '.join(OF_PORTABLE)}. Received: "
            f"--precision={precision}. Choose one of these."
        )
    if module.output not in KNOWN:
        raise ValueError(
            f"--format={form} is for translators and language models. Received: a model whose "
            f"output is a {module.output}, which TensorFlow's operations make. Export a SavedModel."
        )
    model = module.vocabulary.source.model
    if rules_of(model) or is_byte_level(model):
        raise ValueError(
            f"--format={form} keeps neither the replacements of preprocess.sh nor the bytes of "
            "GPT-2, which TensorFlow's operations cut. Export a SavedModel."
        )
    if module.marks:
        TextMarks(module.vocabulary.protected)
    refuse_unknown(module.options)


def require_operations(module: TextModule, form: str, folder: pathlib.Path) -> None:
    """Refuse a model whose operations LiteRT lacks, which its converter alone knows."""
    if form == "litert":
        with folder_beside(folder / form) as temporary:
            _convert(module, form, "float32", temporary)


def _convert(module, form, precision, folder):
    """Write the graphs of a module. Converters have a temporary folder in that of the graphs, which
    the next export removes if this one is killed.
    """
    graphs = RUNS_AS.get(form, form)
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(dir=folder) as of_converters:
        try:
            tempfile.tempdir = of_converters
            for name, function, specifications in graphs_of(module, of_blocks=form != "web"):
                path = (folder / DECODERS[graphs]).with_stem(name)
                CONVERSIONS[graphs].convert(function, specifications, path, precision)
        finally:
            tempfile.tempdir = before


def _golden(module, examples):
    """Texts and what comes out for them; greedily if they are drawn, for seeds differ elsewhere."""
    texts = [one["text"].item() for one in module.golden_inputs(examples)]
    texts = [text for text in texts if text.decode(errors="ignore").encode() == text]

    def greedily(text):
        ids, _, text = module.search_for_terms(module.options.greedy().search(), text)
        return {module.output: module.target_text(ids[:, 0], text)}

    is_drawn = module.options.samples
    serve = traced(greedily, TEXT) if is_drawn else module.functions()["serving_default"]
    outputs = serve(tf.constant(texts))[module.output].numpy()
    return [text.decode() for text in texts], as_strings(outputs)


def _translated(folder, texts, is_drawn):
    """What comes of golden texts out of a folder, in a batch and alone."""
    portable = Portable(folder, {"beam_size": 1} if is_drawn else {})
    alone = [portable.translate([text])[0] for text in texts]
    return {"in a batch": portable.translate(texts), "alone": alone}


def _check(texts, expected, came):
    for way, found in came.items():
        for text, one, other in zip(texts, expected, found, strict=True):
            if one != other:
                raise ValueError(
                    "nothing was exported: golden examples come out otherwise than from the live "
                    f"model. The first, {way}: {text!r} to {other!r}, expected {one!r}."
                )


def _check_blocks(texts, folder):
    searches = {"beam_size": 1}, {"blockwise": True}
    greedy, blocks = (Portable(folder, one).translate(texts) for one in searches)
    _check(texts, greedy, {"in blocks": blocks})


def _bleu(held_out, module, folder, precision):
    """BLEU of a module in float32 and of its folder, on the same text."""
    found = {
        name: held_out.measure(one.translate(held_out.sources), held_out.references)
        for name, one in (("float32", Translator(module)), (precision, Translator.load(folder)))
    }
    return {
        **{name: one["bleu"] for name, one in found.items()},
        "sentences": len(held_out.sources),
        "signature": found[precision]["bleu_signature"],
    }


def _in_words(facts):
    """What the README says of the files' size, and of what rounding changed."""
    said = [f"{facts['bytes'] / 1e6:.1f} MB in {facts['precision']}"]
    if alike := facts.get("golden_as_in_float32"):
        said.append(f"{alike} golden examples come out as in float32")
    if bleu := facts.get("bleu"):
        said.append(
            f"BLEU {bleu[facts['precision']]}, in float32 {bleu['float32']}, of "
            f"{bleu['sentences']} sentences of the test split"
        )
    return "; ".join(said)
