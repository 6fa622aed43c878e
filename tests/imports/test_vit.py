"""What is done before a model of hubs reads: pictures as ViTs scale them, and preprocess.sh."""

import shutil
import subprocess

import numpy as np
import pytest
import small_folders
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_folders import config_of

from keras_transformer.imports import vit
from keras_transformer.imports.family import ANOTHER, ArraysByPath
from keras_transformer.imports.preprocessing import PREPROCESS, read_rules
from pipelines.json_files import settings as settings_of

SIZE = 2
CONFIG = small_folders.VIT
PATH = "preprocessor_config.json"
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def pictures_of(document):
    """What preprocessor_config.json says, checked."""
    pictures, _ = settings_of(vit.Pictures, document, PATH, ANOTHER)
    vit.check_pictures(pictures, config_of(vit, CONFIG), PATH)
    return pictures


@pytest.fixture
def tensors():
    """The weights of a ViT of patches of 2 x 2."""
    return small_folders.tensors_of(vit, CONFIG)


@pytest.mark.parametrize(
    ("preprocessor", "mean", "deviation"),
    [
        ({}, 0.5, 0.5),
        ({"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, 0.5, 0.5),
        (IMAGENET, *IMAGENET.values()),
        ({"do_normalize": False, **IMAGENET, "rescale_factor": 0.00392156862745098}, 0.0, 1.0),
    ],
)
def test_patches_are_those_of_pictures_scaled_as_the_folder_says(
    tensors, preprocessor, mean, deviation
):
    arrays = ArraysByPath(vit.table(config_of(vit, CONFIG)), tensors)
    found = vit.for_ours(arrays, pictures_of(preprocessor))
    picture = np.random.default_rng(2).uniform(size=(SIZE, SIZE, 3))
    kernel = tensors["embeddings.patch_embeddings.projection.weight"]
    scaled = (picture - np.array(mean)) / np.array(deviation)
    expected = np.einsum("ocij,ijc->o", kernel, scaled)
    expected += tensors["embeddings.patch_embeddings.projection.bias"]
    embedded = (2 * picture - 1).reshape(-1) @ found["embedding/kernel"] + found["embedding/bias"]
    np.testing.assert_allclose(embedded, expected, rtol=1e-5, atol=1e-5)
    assert {array.dtype for array in found.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"do_rescale": False}, r"`do_rescale` of .*json must be true\. Received: false"),
        ({"rescale_factor": 1 / 127.5}, r"`rescale_factor` of .*json must be 1/255\. Received"),
    ],
)
def test_pictures_that_are_not_scaled_to_1_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        pictures_of(settings)


def test_a_vit_without_classes_is_refused():
    with pytest.raises(ValueError, match=r"must be ViTForImageClassification\. Received: ViTModel"):
        vit.hyperparameters(config_of(vit, {**CONFIG, "architectures": ["ViTModel"]}))


# preprocess.sh of a release: what its sed and Perl replace is what our rules replace.
SCRIPT = r"""#!/bin/bash
# USAGE preprocess.sh source-langid target-langid spmodel < input > output
SPMENCODE=`which spm_encode || echo "${PWD}/spm_encode"`

sed -e 's/，/,/g' \
    -e 's/。 */. /g' \
    -e 's/？/\?/g' \
    -e 's/（/\(/g' \
    -e 's/」/"/g' \
    -e 's/～/\~/g' \
    -e "s/’/\'/g" \
    -e 's/…/\.\.\./g' \
    -e 's/a+(b)/\\/g' \
    -e 's/〈/\</g' |
perl -C -pe  's/(?!\n)\p{C}/ /g;' |
perl -CIOE -pe 's/[\x{2060}\x{200B}\x{feff}]//g' |\
sed 's/  */ /g;s/^ *//g;s/ *$//g' |
${SPMENCODE} --model $3 |
sed "s/^/>>$2<< /"
"""
# Characters of the rules, and others.
CHARACTERS = "，。？（」～’…〈 a+(b)|\\&é日\u00ad\u200b\u2060\ufeff\u0007\t\ue000\u0378"
QUIET = [HealthCheck.function_scoped_fixture]
TEXTS = st.lists(st.text(st.sampled_from(CHARACTERS), max_size=12), min_size=1, max_size=30)


def replaced(texts, rules):
    made = tf.constant(texts)
    for pattern, rewrite in rules:
        made = tf.strings.regex_replace(made, pattern, rewrite)
    return [one.decode() for one in made.numpy()]


def run(texts, script):
    """What the script makes of texts, without the pieces and the label."""
    made = subprocess.run(
        ["bash", "-c", script],
        input="".join(f"{one}\n" for one in texts).encode(),
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return made.stdout.decode().split("\n")[:-1]


@pytest.mark.skipif(not shutil.which("perl"), reason="no Perl")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_rules_are_what_sed_and_perl_replace(tmp_path, texts):
    path = tmp_path / PREPROCESS
    path.write_text(SCRIPT)
    pipe = SCRIPT[SCRIPT.index("sed -e") : SCRIPT.index("|\n${SPM")]
    assert replaced(texts, read_rules(path)) == run(texts, pipe)
    # The control: a rule less.
    shorter = replaced(["a，b"], read_rules(path)[1:])
    assert shorter != run(["a，b"], pipe)


UNKNOWN = {
    "another program": "tr a b |",
    "a class": "sed -e 's/[ab]/c/g' |",
    "what was found": "sed 's/a/&&/g' |",
    "another of Perl's": r"perl -C -pe 's/\s+/ /g;' |",
    "no replacement": "sed -e 'y/a/b/' |",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_another_line_is_refused_with_its_number(tmp_path, name):
    path = tmp_path / PREPROCESS
    path.write_text(f"#!/bin/bash\n{UNKNOWN[name]}\n")
    with pytest.raises(ValueError, match=r"line 2 of .*preprocess\.sh must replace") as told:
        read_rules(path)
    assert "\n" not in str(told.value)
