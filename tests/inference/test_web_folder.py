"""The folder of `export --format=web` has all its page loads, and other options are refused. The
search of its page, run by node, finds what the search in NumPy finds.
"""

import base64
import dataclasses
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import tarfile
import types

import numpy as np
import pytest
from drawn_models import random_model
from shell import printed

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.lengths import in_tokens, parse_length
from keras_transformer.decoding.numpy_rules import Spans
from keras_transformer.decoding.numpy_search import NumpySearch
from keras_transformer.inference import web_folder
from keras_transformer.inference.portable import Portable
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.special_ids import BOS, EOS, PAD
from pipelines.vocabularies import casing
from pipelines.vocabularies.protected_spans import KINDS, MARKS, MOST, ProtectedSpans, TextMarks


def module_with(options, protected=None):
    return types.SimpleNamespace(
        options=DecodingOptions(**options),
        vocabulary=types.SimpleNamespace(protected=protected),
        output="translation",
        marks=protected is not None,
    )


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Small packages in the cache folder, in place of npm's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    replaced = []
    for package in web_folder.PACKAGES:
        package.path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(package.path, "w:gz") as archive:
            for name in package.files:
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(name)
                archive.addfile(member, io.BytesIO(name.encode()))
        digest = base64.b64encode(hashlib.sha512(package.path.read_bytes()).digest()).decode()
        replaced.append(dataclasses.replace(package, integrity=f"sha512-{digest}"))
    monkeypatch.setattr(web_folder, "PACKAGES", replaced)
    return replaced


def test_the_folder_has_all_that_its_page_loads_and_no_other_host(packages, pieces, tmp_path):
    module = TranslationModule(random_model(), pieces, DecodingOptions(beam_size=3))
    web_folder.prepare(module)
    web_folder.write(tmp_path, module, "A translator, <a> to b", 12_345_678)
    page = (tmp_path / "index.html").read_text()
    assert "A translator, &lt;a&gt; to b" in page
    assert "12 MB" in page
    assert "{{" not in page
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) == 5
    for address in loaded:
        assert address == "data:," or (tmp_path / address).exists()
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', page)[1]
    assert policy == "default-src 'self' data: 'unsafe-inline' 'unsafe-eval'"
    settings = json.loads((tmp_path / "web.json").read_text())
    assert settings["title"] == "A translator, <a> to b"
    assert settings["beam_size"] == 3
    assert settings["max_length"] == [1, 1, 50]
    assert settings["marks"] is None
    contents = {path.name: path.read_text() for path in (tmp_path / "runtime").iterdir()}
    assert contents == {new: name for package in packages for name, new in package.files.items()}
    assert str(packages[0]) in web_folder.remark()


def test_no_line_of_this_page_and_of_the_server_s_is_over_100_columns():
    files = [*web_folder.PAGE.iterdir(), *web_folder.STYLE.parent.iterdir()]
    assert {path.suffix for path in files} == {".css", ".html", ".js"}
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [number for number, line in enumerate(lines, 1) if len(line) > 100] == [], path.name


def test_a_package_that_is_not_the_pinned_one_is_refused(packages, monkeypatch, tmp_path):
    path = packages[1].path
    path.write_bytes(b"something else")
    (tmp_path / "npm").write_text('#!/bin/sh\nfor last in "$@"; do :; done\nexit 0\n')
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(OSError, match=r"its checksum is not sha512-.* Put the file"):
        web_folder.prepare(module_with({}))
    message = "npm error code ENOTFOUND\\nnpm error at somewhere"
    (tmp_path / "npm").write_text(f"#!/bin/sh\nprintf '{message}' >&2\nexit 1\n")
    with pytest.raises(OSError, match=r"npm said: code ENOTFOUND \(is its registry reachable\?\)"):
        web_folder.prepare(module_with({}))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match=r"could not download @agnai/.* there is no npm here"):
        web_folder.prepare(module_with({}))


KILLED = """
import os
os.environ |= {variables}
from keras_transformer.inference import web_folder
web_folder._download(web_folder.PACKAGES[0])
"""


def test_the_next_download_removes_what_a_killed_one_left(
    packages, monkeypatch, tmp_path, fresh_shell
):
    first = packages[0]
    whole = first.path.rename(tmp_path / first.path.name)
    (tmp_path / "npm").write_text("#!/bin/sh\nkill $PPID\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    variables = {name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME")}
    killed = fresh_shell.program(KILLED.format(variables=variables))
    assert killed.returncode == -signal.SIGTERM
    other_names = {package.path.name for package in packages[1:]}
    assert len({*os.listdir(first.path.parent)} - other_names) == 1
    to = '#!/bin/sh\nfor one in "$@"; do case $one in --pack-d*) to=${one#*=};; esac; done\n'
    (tmp_path / "npm").write_text(f'{to}cp "{whole}" "$to"\n')
    web_folder.prepare(module_with({}))
    assert {*os.listdir(first.path.parent)} == {first.path.name, *other_names}


def test_options_texts_and_patterns_that_the_page_cannot_follow_are_refused(packages):
    for option, value in {"samples": 2, "num_hypotheses": 2, "blockwise": True}.items():
        with pytest.raises(ValueError, match=f"without it: {option}={value}. Leave it out"):
            web_folder.prepare(module_with({option: value}))
    module = module_with({}, ProtectedSpans((), r"\$\w+"))
    with pytest.raises(ValueError, match=r"of --protect_pattern otherwise. Received: \\\$\\w\+"):
        web_folder.prepare(module)
    module.output = "generated"
    with pytest.raises(ValueError, match=r"is for translators\. Received: a language model"):
        web_folder.prepare(module)


SCRIPT = "".join(
    (web_folder.PAGE / name).read_text(encoding="utf-8") for name in ("search.js", "translator.js")
)
TEXT = [f"w{number}" for number in range(8)]
PIECES = ["<pad>", "<unk>", "<s>", "</s>", *MARKS, *TEXT]
SUMS = 97
# The ids of labels of languages.
LABELS = {"a": 36, "b": 40}
PROTECTED = ProtectedSpans(tuple(KINDS))
SPELLED = ["", "", "", "", *MARKS, *(f" {word}" for word in TEXT)]
FORBIDDEN = ("w3", "w1 w5", "w5 w2 w2", "w2 w0")
# A model whose log P follows from the sum of all ids so far, the source's too, its state.
MODEL = """
const [tables, cases, ...more] = inputs;
const best = (logs, count) => logs.map((_, id) => id).sort((one, other) =>
  logs[one] === logs[other] ? one - other : logs[other] - logs[one]).slice(0, count);
const sum = (ids) => ids.reduce((one, other) => one + other, 0);
function step(ids, position, rows, count, bias, factor, state) {
  const sums = rows.map((row, n) => state[row] + ids[n]), logs = [], tokens = [];
  sums.forEach((sum, n) => {
    const [ours, times] = [bias, factor].map((one) => one[one.length > 1 ? n : 0]);
    const biased = tables[sum % tables.length].map((one, id) =>
      f32(f32(one * (times[id] ?? 1)) + ours[id]));
    biased[PAD] = biased[BOS] = -Infinity;
    for (const id of best(biased, count)) { logs.push(biased[id]); tokens.push(id); }
  });
  return { logs, tokens, state: sums };
}
"""
SEARCH = """
const [settings, expected] = more, results = [];
for (const [number, [options, source, spans]] of cases.entries()) {
  const start = (rows) => Array(rows).fill(sum(source));
  results.push(await search({ start, step }, request(settings[options], source, spans)));
  // The first that differs tells enough.
  if (JSON.stringify(results[number]) !== JSON.stringify(expected[number])) break;
}
return results;
"""
TRANSLATE = """
const [pieces] = more, [settings, lines] = cases;
const idOf = (piece) => Math.max(pieces.indexOf(piece), 1);
const source = { encodeIds: (text) => (text.match(/⟦[0-9]+⟧|[^ ⟦]+/g) ?? []).map(idOf) };
const target = { decodeIds: (ids) => ids.map((id) => pieces[id]).join(" ") };
const reading = (ids) => ({ start: (rows) => Array(rows).fill(sum(ids)), step });
const parts = { settings, source, target, graphs: { reading } };
const translator = Object.assign(new Translator(), parts);
const translations = [];
for (const line of lines) translations.push(await translator.translate(line));
return translations;
"""
BY_LENGTH = {"length_penalty_form": "length", "length_penalty": 1.0}
OPTIONS = [
    {},
    {"beam_size": 1},
    {"beam_size": 6, "length_penalty": 1.5, "min_length": 4},
    {"beam_size": 3, "length_penalty_form": "length", "max_length": "1.5x"},
    {"beam_size": 4, "beam_form": "shrinking", "length_penalty": 1.5, "barred": (1, 40)},
    {"beam_size": 2, "protect_all": False, "max_length": 3},
    {"beam_size": 3, "beam_form": "until_full", "max_length": 6},
    {"beam_size": 2, "beam_form": "until_worse", "length_penalty": 2.0},
    {"beam_size": 4, "beam_form": "until_worse", **BY_LENGTH},
    {"beam_size": 6, "beam_form": "staying", "max_length": 8, **BY_LENGTH, "length_penalty": 2.0},
    {"beam_size": 4, "num_hypotheses": 4, "length_penalty": 1.5},
    {"beam_size": 4, "num_hypotheses": 3, "beam_form": "staying", "max_length": 5},
    {"beam_size": 3, "forbidden_words": FORBIDDEN},
    {
        "beam_size": 4,
        "forbidden_words": FORBIDDEN[1:],
        "protect_all": False,
        "target_language": "a",
    },
    {"beam_size": 1, "beam_form": "staying", "target_language": "a"},
    {"beam_size": 3, "no_repeat_ngram_size": 2, "forbidden_words": FORBIDDEN},
    {"beam_size": 1, "no_repeat_ngram_size": 1},
    {"beam_size": 2, "repetition_penalty": 1.5},
    {"beam_size": 4, "repetition_penalty": 0.8, "no_repeat_ngram_size": 3, "beam_form": "staying"},
    {"beam_size": 3, "target_language": "b", "max_length": 1, "min_length": 1},
    {"beam_size": 3, "target_language": "b", "max_length": 5},
    {"beam_size": 4, "target_language": "b", "beam_form": "staying", "protect_all": False},
]
SPANS = ["<b>", "{x}", "</b>", "<i>", "<br/>", "</i>", "</p>"]
CASES = [
    *("Open MQTT. Émile is „home“", "x < y", "STRAßE", "Σας Ǆ ŉ İ ı"),
    *("ab cd", "ab cde", "𐐀 {a} 𝒜b"),
]
LINES = [
    *("a {x} b <b>c {y}</b> d", "see https://a.b/c?d or me@a.org.", "", "%s d 12345 %(n)d 1.2.3"),
    *("<p>a <b>b</b> <i>c</i></p>", "⟦keep me⟧ \U0001f600 b\n{x}"),
    "h \u00a0{x\u2028y} `\U0001f600`",
    *(" ".join(f"{{x{number}}}" for number in range(40)), "[%a%] [a](b.c) $t(d) &amp; 2026-11-26"),
]


def run(program, *inputs):
    """What a program returns behind the page's script."""
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    declaration = f"const inputs = {json.dumps(inputs)};"
    end = "().then((result) => console.log(JSON.stringify(result)));"
    whole = f"{SCRIPT}\n{declaration}\n(async () => {{ {program} }}){end}"
    return json.loads(printed(shutil.which("node"), "-", input=whole, timeout=60))


class TableModel:
    """`MODEL` for the search in NumPy."""

    def __init__(self, tables, source):
        self._tables = tables
        self._source = source

    def start(self, rows):
        return np.full(rows, sum(self._source))

    def step(self, ids, position, rows, count, bias, factor, state, source):
        sums = state[rows] + ids.reshape(-1)
        biased = self._tables[sums % SUMS] * factor + bias
        biased[:, [PAD, BOS]] = -np.inf
        tokens = np.argsort(-biased, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(biased, tokens, axis=1), tokens, sums


def module_of(options, protected=PROTECTED):
    side = types.SimpleNamespace(pieces=PIECES)
    both = {"source": side, "target": side, "protected": protected}
    options = DecodingOptions(**options)
    return types.SimpleNamespace(
        options=options,
        vocabulary=types.SimpleNamespace(kind="joint", size=len(PIECES), **both),
        forbidden=forbidden_by(options),
        labels=types.SimpleNamespace(ids=LABELS) if options.target_language else None,
    )


def forbidden_by(options):
    words = options.forbidden_words
    return ForbiddenWords(words, SPELLED) if words else None


def searched(logs, options, source, spans):
    """What the search in NumPy finds for one sentence."""
    options = DecodingOptions(**options)
    ids = np.array([PIECES.index(mark) for mark in MARKS])
    count = (np.array(source)[:, None] == ids).sum(axis=0, keepdims=True)
    opened_by = np.array([TextMarks.openings(spans)])
    limit, minimum = (
        max(in_tokens(parse_length(name, getattr(options, name)), len(source) + 1), 1)
        for name in ("max_length", "min_length")
    )
    rules = Spans(ids, count, opened_by) if options.protect_all else None
    label = LABELS.get(options.target_language)
    forbidden = forbidden_by(options)
    search = NumpySearch(options, len(PIECES), forbidden, free_prefix=1 if label else 0)
    [hypotheses] = search(
        TableModel(logs, source), [], [limit], [minimum], [[label] if label else []], [1], rules
    )
    return [hypothesis.ids[:-1] for hypothesis in hypotheses]


def tables():
    """Log P by the sum of ids."""
    random = np.random.default_rng(3)
    logits = random.normal(0, 2, (SUMS, len(PIECES))).astype(np.float32)
    # Most sentences have several translations that end.
    logits[:, EOS] += 3
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def sentences():
    """Sources, ids, and their spans: with none, with some, with a tag that nothing opened."""
    first = PIECES.index(MARKS[0])
    words = [PIECES.index(word) for word in TEXT]
    for number in range(20):
        count = number % (len(SPANS) + 1)
        yield [*words[: 1 + number % 5], *range(first, first + count)], SPANS[:count]


@pytest.fixture(scope="module")
def cases():
    # All options for one sentence, then for the next: a search without a rule soon differs.
    return [(options, *sentence) for sentence in sentences() for options in OPTIONS]


@pytest.fixture(scope="module")
def expected(cases):
    logs = tables()
    return [searched(logs, *case) for case in cases]


@pytest.fixture(scope="module")
def inputs(cases, expected):
    """The inputs of `MODEL + SEARCH`."""
    settings = [
        web_folder.settings(module_of(options)) | {"most": options.get("num_hypotheses", 1)}
        for options in OPTIONS
    ]
    numbered = [(OPTIONS.index(options), *more) for options, *more in cases]
    return tables().tolist(), numbered, settings, expected


def test_the_search_of_the_page_finds_what_the_search_in_numpy_finds(inputs, expected):
    assert run(MODEL + SEARCH, *inputs) == expected
    assert len({*map(str, expected)}) > 60


# Rules of the search, and what stands in place of each where it is left out.
RULES = {
    "(5 + n) / 6": "(1 + n) / 6",
    "f32(score / this.penalty(this.limit)) > last.score": "false",
    "f32(score / this.penalty(this.limit))": "score",
    "this.penalty(likeliest.ids.length)": "this.penalty(this.limit)",
    'this.form === "until_full" ||': "this.fills ||",
    "this.finished[this.size - 1]": "this.finished[this.most - 1]",
    "this.finished[this.most - 1]": "this.finished[0]",
    "(beam.fills && atLimit)": "false",
    "position < options.begin.length": "false",
    "settings.max_length, tokens), begin.length": "settings.max_length, tokens), 0",
    "Math.max(limit, begin.length + total": "Math.max(limit, total",
    "ended ? before[place].score": "false ? before[place].score",
    "chosen = atLimit ?": "chosen = false ?",
    "if (left) row[EOS]": "if (false) row[EOS]",
    "open[m] === innermost": "true",
    "if (shrinks) this.places--;": "",
    "position + 1 < options.minimum": "false",
    "after(state, id) < 0": "false",
    "changed[state][id] ?? first": "first",
    "ids.length - n + 1": "ids.length - n",
    "row.fill(penalty": "row.fill(1",
}
OF_SCRIPTS = """
const [scripts, program, ...rest] = inputs, found = [];
for (const script of scripts)
  found.push(await Function("inputs", `${script}; return (async () => {${program}})()`)(rest));
return found;
"""


def test_control_a_search_without_one_of_its_rules_finds_others(inputs, expected):
    assert [rule for rule in RULES if SCRIPT.count(rule) != 1] == []
    scripts = [SCRIPT.replace(*change) for change in RULES.items()]
    answers = run(OF_SCRIPTS, scripts, MODEL + SEARCH, *inputs)
    same = [rule for rule, of_rule in zip(RULES, answers, strict=True) if of_rule == expected]
    assert same == []


def test_a_forbidden_phrase_may_have_pieces_in_it_that_write_nothing():
    options = DecodingOptions(forbidden_words=FORBIDDEN)
    automaton = web_folder.settings(module_of({"forbidden_words": FORBIDDEN}))["forbidden"]
    ids = [PIECES.index("w1"), *[BOS] * 40]
    program = "const [ids, rules, row] = inputs; return forbid(row, ids, rules).map((x) => x < 0);"
    is_barred = run(program, ids, automaton, [0] * len(PIECES))
    assert is_barred == forbidden_by(options).bars(np.array([ids]))[0].tolist()
    assert is_barred[PIECES.index("w5")]


@pytest.mark.parametrize("words", [None, ("MQTT", "Home", "Émile")])
def test_spans_become_marks_and_come_back_as_in_python(words):
    protected = ProtectedSpans(tuple(KINDS), truecase=words is not None, cased_words=words or ())
    program = """
        const [expression, casing, lines] = inputs;
        return lines.map((line) => {
          const read = marked(line, expression, casing);
          const back = putBack(`\u27e64\u27e7${read.shown}\u27e61\u27e7`, read);
          return [read.shown, read.spans, openings(read.spans), back];
        });
    """
    marks = TextMarks(protected)
    expected = []
    lines = [*LINES, *CASES, *map(str.upper, CASES), *map(str.lower, CASES)]
    for line in lines:
        read = marks.marked(line)
        back = marks.put_back(f"⟦4⟧{read.text}⟦1⟧", read)
        expected.append([read.text, read.spans, marks.openings(read.spans), back])
    assert run(program, protected.expression, words and casing.settings(words), lines) == expected
    assert sum(len(spans) for _, spans, *_ in expected) > MOST
    assert any(opening >= 0 for _, _, openings, _ in expected for opening in openings)


class Words:
    """Pieces that stand between spaces, as `TRANSLATE` has them."""

    def encode(self, text):
        words = re.findall("⟦[0-9]+⟧|[^ ⟦]+", text)
        return [PIECES.index(word) if word in PIECES else 1 for word in words]

    def decode(self, ids):
        return " ".join(PIECES[number] for number in ids)

    def vocab_size(self):
        return len(PIECES)


class ModelOfOne(TableModel):
    """A `TableModel` of what it reads last, one sentence."""

    def encode(self, sources):
        [self._source] = [[*ids, EOS] for ids in sources]
        return []


class InTables(Portable):
    """What a folder's translator does, with such pieces and such a model."""

    def __init__(self, module):
        protected = module.vocabulary.protected
        self.labels = {}
        self._given_tokens = 0
        self.options = module.options
        self._source = self._target = Words()
        self._marks = TextMarks(protected)
        self._learned_terms = bool(protected.glossary_rate)
        self._puts_terms_in = protected.puts_terms_in
        self._ids_of_marks = [np.array([PIECES.index(mark) for mark in MARKS])] * 2
        self._model = ModelOfOne(tables(), [])
        self.reads_source = True
        self.positions = 1024


def test_a_line_that_is_too_long_is_refused_as_in_python():
    case = [web_folder.settings(module_of({"max_length": 3})), ["w1 " * 1023, "w1 " * 1024]]
    program = TRANSLATE.replace("(line))", "(line).catch((error) => error.message))")
    short, refused = run(MODEL + program, tables().tolist(), case, PIECES)
    assert "has 1025 tokens, more than the 1024 allowed" in refused
    assert "tokens" not in short


@pytest.mark.parametrize("protect_all", [True, False])
@pytest.mark.parametrize("protect", [(), ("placeholders",)])
def test_missing_terms_are_put_in_as_in_python(protect, protect_all):
    draw = random.Random(1)
    lines = [f"w{place % 8}⟪ w1⟹ w{draw.randrange(8)} w3⟫ {{x}}" for place in range(20)]
    lines += [f"⟪w2⟹ w{place}⟫⟪ w3⟹ {{x}} b⟫ {{x}}" for place in range(8)]
    lines += ["", "w1 {x}", "w2 w3", "w4⟹ w9⟫", "⟪w5⟹⟫"]
    protected = ProtectedSpans(protect, glossary_rate=0.1)
    module = module_of({"beam_size": 3, "protect_all": protect_all}, protected)
    portable = InTables(module)
    expected = [portable.translate([line])[0] for line in lines]
    case = [web_folder.settings(module), lines]
    translations = run(MODEL + TRANSLATE, tables().tolist(), case, PIECES)
    assert translations == expected
    lacking = [
        line
        for line, text in zip(lines, translations, strict=True)
        if any(term not in text for term in re.findall("⟹ ([^⟫]+)⟫", line) if "⟪" in line)
    ]
    assert lacking == [] if protect and protect_all else len(lacking) > 10
