"""A translator that Marian trained, fine-tuned on other text: what is learned there, and what is
forgotten of its own.

    python -m benchmarks.pretrained --minutes=10 --data=../shared/data --work_dir=runs/pretrained

`data` has marian_tiny and opennmt_tf_tiny, trained on Multi30k, and multi30k. The other text is
Home Assistant's in German. Each row trains for as many minutes by `keras_transformer.train
--init_from`, and says what learns, how many updates were made, the peak of resident memory, the
size of a checkpoint, and BLEU (13a, cased, decoded as imported) of both test sets. A row whose run
is there is only scored.
"""

import dataclasses
import gzip
import json
import os
import pathlib
import subprocess
import sys

from absl import app, flags

from benchmarks.tables import print_table

ROOT = pathlib.Path(__file__).parents[1]
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
TUNED = (
    *("--batch_tokens=1024", "--validation_sentences=0", "--norelease", "--schedule=constant"),
    *("--warmup_steps=100", "--checkpoint_minutes=1", "--max_steps=1000000"),
)
COLUMNS = (
    *("what learns", "parameters", "updates", "peak GB", "checkpoint MB"),
    *("BLEU Home Assistant", "BLEU Multi30k"),
)

MINUTES = flags.DEFINE_float("minutes", 10.0, "Minutes of training a row.")
DATA = flags.DEFINE_string("data", "../shared/data", "Folder with marian_tiny and multi30k.")
WORK = flags.DEFINE_string("work_dir", "runs/pretrained", "Folder of runs and texts.")
ROWS = flags.DEFINE_list("rows", None, "Names of rows; all if not given.")
SENTENCES = flags.DEFINE_integer("sentences", 0, "Lines of each test set to translate; 0: all.")


@dataclasses.dataclass(frozen=True)
class Row:
    """A way of fine-tuning: its name in words, and its flags. Adapters take a higher rate."""

    words: str
    flags: tuple[str, ...]
    is_mixed: bool = False
    origin: str = "marian_tiny"


FULL = "--learning_rate=0.0005"
WAYS = {
    "full": Row("all", (FULL,)),
    "frozen": Row("all but the embeddings", (FULL, "--freeze=embedding")),
    "lora": Row("LoRA, rank 8, query and value", ("--learning_rate=0.002", "--lora_rank=8")),
    "lora_all": Row(
        "LoRA, rank 8, all matrices",
        (
            *("--learning_rate=0.002", "--lora_rank=8"),
            "--lora_on=query,key,value,output,inner,outer",
        ),
    ),
    "mixed": Row("all, a third of the pairs are Multi30k's", (FULL,), is_mixed=True),
    "mixed_lora": Row(
        "LoRA as above, a third of the pairs are Multi30k's",
        ("--learning_rate=0.002", "--lora_rank=8", "--lora_on=query,key,value,output,inner,outer"),
        is_mixed=True,
    ),
    "opennmt": Row("all, of OpenNMT-tf's", (FULL,), origin="opennmt_tf_tiny"),
}


def work():
    return pathlib.Path(WORK.value)


def command(name, *arguments):
    """Run a command of the package; its output, and the peak of its resident memory in GB."""
    log = work() / "log.txt"
    line = [sys.executable, "-m", f"keras_transformer.{name}", *arguments]
    with open(log, "w", encoding="utf-8") as file:
        child = subprocess.Popen(line, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8")
    if child.returncode:
        raise SystemExit(f"{' '.join(line)} failed:\n{text[-2000:]}")
    return text, usage.ru_maxrss * 1024 / 1e9


def write_texts():
    """Multi30k as text files, both test sets as lines, and the mixture of both corpora."""
    from pipelines import corpora

    multi30k = work() / "multi30k"
    multi30k.mkdir(parents=True, exist_ok=True)
    for ours, theirs in SPLITS.items():
        for language in ("en", "de"):
            packed = pathlib.Path(DATA.value) / "multi30k" / f"{theirs}.{language}.gz"
            (multi30k / f"{ours}.{language}").write_bytes(gzip.decompress(packed.read_bytes()))
    home = corpora.load("home_assistant", source_language="en", target_language="de").test
    for language, lines in (("en", home.sources), ("de", home.targets)):
        text = "".join(f"{line}\n" for line in lines)
        (work() / f"home.{language}").write_text(text, encoding="utf-8")
    languages = {"source_language": "en", "target_language": "de"}
    members = [
        {"corpus": "home_assistant", **languages},
        # A third of an epoch: there are about as many pairs of either.
        {"corpus": "text_files", **languages, "data_dir": "multi30k", "weight": 0.5},
    ]
    (work() / "mixture.json").write_text(json.dumps({"corpora": members}), encoding="utf-8")


def bleu(model):
    """BLEU of both test sets, as text."""
    found = []
    for source in (work() / "home.en", work() / "multi30k" / "test.en"):
        reference = source.with_suffix(".de")
        if SENTENCES.value:
            source, reference = _first_lines(source), _first_lines(reference)
        files = (f"--source_file={source.resolve()}", f"--reference_file={reference.resolve()}")
        text, _ = command(
            "evaluate", f"--model={model}", *files, "--metrics=bleu", "--tokenize=13a", "--json"
        )
        numbers = json.loads(text[text.index("{") : text.rindex("}") + 1])
        found.append(f"{numbers['scores']['bleu']['score']:.2f}")
    return found


def _first_lines(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[: SENTENCES.value]
    short = path.with_name(f"first_{path.name}")
    short.write_text("".join(lines), encoding="utf-8")
    return short


def tuned(name, origin):
    """Train a row, unless it is there; its cells but the scores."""
    row = WAYS[name]
    run = (work() / name).resolve()
    kept = work() / f"{name}.json"
    if not kept.exists():
        corpus = ["--corpus=home_assistant"]
        if row.is_mixed:
            corpus = ["--corpus=mixture", f"--mixture={(work() / 'mixture.json').resolve()}"]
        text, peak = command(
            "train",
            *(f"--init_from={origin}", f"--model_dir={run}", f"--max_minutes={MINUTES.value}"),
            *(*corpus, *TUNED, *row.flags),
        )
        [parameters] = [line for line in text.splitlines() if " parameters, " in line]
        every, _, rest = parameters.partition(" parameters, ")
        learned = rest.split(" of them learn")[0] if " of them learn" in rest else every
        newest = max((run / "checkpoints").glob("*.npz"), key=lambda path: path.name[5:])
        updates = int(newest.stem.rpartition("-")[2])
        size = newest.stat().st_size / 1e6
        cells = [learned, f"{updates:,}", f"{peak:.2f}", f"{size:.1f}"]
        kept.write_text(json.dumps(cells), encoding="utf-8")
    return [row.words, *json.loads(kept.read_text(encoding="utf-8"))], run


def imported(name):
    """The run of a model in `data`."""
    origin = (work() / name).resolve()
    if not origin.exists():
        folder = (pathlib.Path(DATA.value) / name).resolve()
        saved = f"--export_dir={(work() / f'{name}_saved').resolve()}"
        command("import_model", f"--from={folder}", f"--model_dir={origin}", saved)
    return origin


def rows():
    """Each imported model, and each way of fine-tuning it."""
    told = set()
    for name in ROWS.value or WAYS:
        row = WAYS[name]
        origin = imported(row.origin)
        if row.origin not in told:
            told.add(row.origin)
            yield [f"nothing: {row.origin}", "0", "0", "", "", *bleu(origin)]
        cells, run = tuned(name, origin)
        yield [*cells, *bleu(run)]


def main(_):
    work().mkdir(parents=True, exist_ok=True)
    write_texts()
    print_table(COLUMNS, rows())


if __name__ == "__main__":
    app.run(main)
