"""preprocess.sh of a release of OPUS-MT (Tiedemann and Thottingal 2020): what its sed and Perl
replace in a text before SentencePiece cuts it. The file is read as text, never run.
"""

import pathlib
import re

from pipelines.json_files import quote, read_text

PREPROCESS = "preprocess.sh"
QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
SUBSTITUTION = re.compile(r"s/((?:[^/\\]|\\.)*)/((?:[^/\\]|\\.)*)/g?")
# Lines and words around the replacements.
AROUND = re.compile(r"#.*|\w+=.*|if .*; then|else|fi|preprocess\(\) ?\{|\}|")
WORDS = re.compile(r"sed|perl|-C\w*|-p?e|\||\|?\\|\$\{SPMENCODE\}|(\S*\/)?spm_encode|--model|\$\d")
# Perl's \p{C} has what is not assigned, too; RE2's has not.
ASSIGNED = r"\pL\pM\pN\pP\pS\pZ"
PERL = {
    r"\p{C}": f"[^{ASSIGNED}]",
    r"(?!\n)\p{C}": f"[^\n{ASSIGNED}]",
    r"[\x{2060}\x{200B}\x{feff}]": r"[\x{2060}\x{200B}\x{feff}]",
}
# What puts the label of a language before a text.
LABEL = re.compile(r"s/\^/>>\$\d<< /")


def read_rules(path: pathlib.Path) -> list[tuple[str, str]]:
    """The replacements of a script, in their order: regular expressions of RE2, and what stands for
    what they find. The label of a language is no replacement: it is part of the text.
    """
    rules = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        found = [] if AROUND.fullmatch(line.strip()) else _rules_of(line)
        if found is None:
            raise ValueError(
                f"line {number} of {path} must replace characters, by sed or Perl. Received: "
                f"{quote(line.strip())}. Delete the line, or the file, to import without it."
            )
        # The branches of a script have the same.
        rules |= dict.fromkeys(found)
    return list(rules)


def _rules_of(line):
    """The replacements of a line; None if it has anything else."""
    if any(not WORDS.fullmatch(word) for word in QUOTED.sub(" ", line).split()):
        return None
    rules = []
    for single, double in QUOTED.findall(line):
        # Within double quotes a backslash is one, but before these.
        text = single or re.sub(r"\\([\"$`\\])", r"\1", double)
        parts = [one for one in text.split(";") if one and not LABEL.fullmatch(one)]
        found = [SUBSTITUTION.fullmatch(one) for one in parts]
        if not all(found):
            return None
        for one in found:
            pattern, rewrite = one.groups()
            known = PERL.get(pattern) if "perl" in line else _of_sed(pattern)
            if known is None or re.search(r"(?<!\\)&", rewrite):
                return None
            rules.append((known, re.sub(r"\\(.)", r"\1", rewrite).replace("\\", r"\\")))
    return rules


def _of_sed(pattern):
    """A basic regular expression as one of RE2; None if it has more than a few operators."""
    if re.search(r"[\\\[\]]|.\^|\$.|^\*", pattern):
        return None
    return re.sub(r"[+?(){}|]", r"\\\g<0>", pattern)
