"""preprocess.sh of a release of OPUS-MT (Tiedemann and Thottingal 2020): the replacements that its
sed and Perl make in a text before SentencePiece cuts it. The script is parsed, never run.
"""

import pathlib
import re

from pipelines.json_files import quote, read_text

PREPROCESS = "preprocess.sh"
QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
SUBSTITUTION = re.compile(r"s/((?:[^/\\]|\\.)*)/((?:[^/\\]|\\.)*)/(g?)")
# What stands for itself: neither what was found (&) nor a line feed, a tab or a group.
LITERAL = re.compile(r"(?:[^\\&]|\\\W)*")
# Lines, and words of a line, that replace nothing.
AROUND = re.compile(r"#.*|\w+=.*|if .*; then|else|fi|preprocess\(\) ?\{|\}|")
WORDS = re.compile(r"sed|perl|-C\w*|-p?e|\||\|?\\|\$\{SPMENCODE\}|(\S*\/)?spm_encode|--model|\$\d")
# Perl's \p{C} includes unassigned code points; RE2's does not.
ASSIGNED = r"\pL\pM\pN\pP\pS\pZ"
PERL = {
    r"\p{C}": f"[^{ASSIGNED}]",
    r"(?!\n)\p{C}": f"[^\n{ASSIGNED}]",
    r"[\x{2060}\x{200B}\x{feff}]": r"[\x{2060}\x{200B}\x{feff}]",
}
# Puts a language label before the text.
LABEL = re.compile(r"s/\^/>>\$\d<< /")


def read_rules(path: pathlib.Path) -> list[tuple[str, str]]:
    """Return the replacements of a script in their order, as pairs (pattern of RE2, rewrite). A
    language label is not one of them: it is part of the text.
    """
    rules = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        line_rules = [] if AROUND.fullmatch(line.strip()) else _rules_of(line)
        if line_rules is None:
            raise ValueError(
                f"line {number} of {path} must replace characters, by sed or Perl. Received: "
                f"{quote(line.strip())}. Delete the line, or the file, to import without it."
            )
        # The branches of a script repeat each other's replacements.
        rules |= dict.fromkeys(line_rules)
    return list(rules)


def _rules_of(line):
    """Return the replacements of a line; None if it does anything else."""
    if any(not WORDS.fullmatch(word) for word in QUOTED.sub(" ", line).split()):
        return None
    rules = []
    for single, double in QUOTED.findall(line):
        # Within double quotes the shell removes a backslash before these characters only.
        text = single or re.sub(r"\\([\"$`\\])", r"\1", double)
        commands = [part for part in text.split(";") if part and not LABEL.fullmatch(part)]
        substitutions = [SUBSTITUTION.fullmatch(command) for command in commands]
        if not all(substitutions):
            return None
        for substitution in substitutions:
            pattern, rewrite, everywhere = substitution.groups()
            re2 = PERL.get(pattern) if "perl" in line else _re2_of_sed(pattern)
            is_once = pattern.startswith("^") or pattern.endswith("$")
            if re2 is None or not LITERAL.fullmatch(rewrite) or not (everywhere or is_once):
                return None
            rules.append((re2, re.sub(r"\\(.)", r"\1", rewrite).replace("\\", r"\\")))
    return rules


def _re2_of_sed(pattern):
    """Translate a basic regular expression to RE2; None if it has an unsupported operator."""
    if re.search(r"[\\\[\]]|.\^|\$.|^\*", pattern):
        return None
    return re.sub(r"[+?(){}|]", r"\\\g<0>", pattern)
