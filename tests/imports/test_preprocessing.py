"""preprocess.sh of a release: what its sed and Perl replace is what our rules replace."""

import shutil
import subprocess

import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.imports.preprocessing import PREPROCESS, read_rules

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
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
