"""A flag that changes nothing is refused in one line, wherever it stands, and the line says what it
is for.
"""

import dataclasses
import re

import pytest
from command_flags import COMMANDS, EVERY_FLAG, flags_of, names_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer import flags, train
from keras_transformer.flagfiles import FLAGFILES
from keras_transformer.flags.arguments import WrongFlag
from keras_transformer.flags.definition import PathParser
from keras_transformer.flags.scopes import every_place
from keras_transformer.flags.scopes import tasks_of as tasks_among
from keras_transformer.tasks import TASKS
from keras_transformer.visualize import PICTURES
from pipelines.corpora import CORPORA
from pipelines.options import recipe
from pipelines.options import settings as options_of


def tasks_of(name):
    return tasks_among(name, TASKS)


def values_of(command, *arguments):
    return flags_of(command, *arguments).flag_values_dict()


def refusal(command, *arguments):
    with pytest.raises(WrongFlag) as raised:
        flags_of(command, *arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# Of options that may not be 1, or whose default is no value.
ODD_VALUES = {"ema": "0.9", "source_language": "x", "steps": "9"}


def some_value(name):
    """A value that the flag may have."""
    flag = EVERY_FLAG[name]
    if flag.boolean:
        return "true"
    if name in ODD_VALUES:
        return ODD_VALUES[name]
    if flag.default is not None:
        return flag.serialize().partition("=")[2]
    if choices := every_place()[name][0].option.setting.choices:
        return next(iter(choices))
    return "1"


FOREIGN = [(task, name) for task in TASKS for name in EVERY_FLAG if task not in tasks_of(name)]


@pytest.mark.parametrize("task", TASKS)
def test_a_flag_of_another_task_is_refused_and_its_task_named(task, tmp_path):
    foreign = [name for of_task, name in FOREIGN if of_task == task]
    path = tmp_path / "my.flags"
    for name in foreign:
        argument = f"--{name}={some_value(name)}"
        expected = f"--{name} is for --task={' or '.join(tasks_of(name))}. Leave it out."
        path.write_text(f"# A comment.\n{argument}\n", encoding="utf-8")
        in_file = refusal("train", f"--task={task}", f"--flagfile={path}")
        assert in_file == f"{path}, line 2: {expected}"
        assert refusal("train", argument, f"--task={task}") == f"command line: {expected}"
    # Commands that do not train refuse it in a file that says its task.
    path.write_text(f"{argument}\n--task={task}\n", encoding="utf-8")
    assert refusal("evaluate", f"--flagfile={path}") == f"{path}, line 1: {expected}"


def test_the_foreign_flags_are_many():
    assert len(FOREIGN) > 100
    assert {("translation", "mask_share"), ("masking", "source_end")} < {*FOREIGN}


@pytest.mark.parametrize("architecture", ["transformer", "recurrent", "convolutional"])
def test_a_flag_of_another_architecture_is_refused(architecture, tmp_path):
    from keras_transformer.models import ARCHITECTURES

    fields = {
        name: {field.name for field in dataclasses.fields(kind)}
        for name, kind in ARCHITECTURES.items()
    }
    path = tmp_path / "my.flags"
    choice = f"--architecture={architecture}"
    shared = {"max_positions", "vocabulary_size"}
    for name in set().union(*fields.values()) & {*EVERY_FLAG} - shared:
        readers = [kind for kind in fields if name in fields[kind]]
        argument = f"--{name}={some_value(name)}"
        if architecture in readers:
            if name not in ("architecture", "max_positions", "first_position"):
                flags_of("train", choice, argument)
            continue
        expected = f"--{name} is for --architecture={' or '.join(readers)}. Leave it out."
        path.write_text(f"{argument}\n", encoding="utf-8")
        assert refusal("train", argument, choice) == f"command line: {expected}"
        assert refusal("train", choice, f"--flagfile={path}") == f"{path}, line 1: {expected}"


def test_flags_and_defaults_of_pictures_are_those_of_their_model():
    from keras_transformer.models import VisionHyperparameters

    fields = {field.name: field.default for field in dataclasses.fields(VisionHyperparameters)}
    task = "image_classification"
    values = values_of("train", f"--task={task}")
    expected = {name: default for name, default in fields.items() if name in values}
    assert {name: values[name] for name in fields if name in values} == expected
    assert len(values.keys() & fields.keys()) > 10
    assert values_of("train", f"--task={task}", "--num_layers=2")["num_layers"] == 2
    # A control: another task has the paper's.
    assert values_of("train")["num_layers"] == 6


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_corpus_takes_its_own_flags_and_refuses_others(corpus):
    """The refusal names the corpora that have the flag."""
    for name in {name for kind in CORPORA.values() for name in options_of(kind)} - {"seed"}:
        argument = f"--{name}={some_value(name)}"
        if name in options_of(CORPORA[corpus]):
            flags_of("train", f"--corpus={corpus}", argument)
        else:
            readers = [reader for reader, kind in CORPORA.items() if name in options_of(kind)]
            assert refusal("train", f"--corpus={corpus}", argument) == (
                f"command line: --{name} is for --corpus={' or '.join(readers)}. Received: "
                f"--corpus={corpus}. Pass another --corpus, or leave out --{name}."
            )


CHOICES = {
    "corpus": [
        *("home_assistant", "lines", "text_files", "tfds", "records", "mixture", "treebank"),
        "tsv",
    ],
    "distribution": ["one", "tpu"],
    "pictures": ["digits", "folder"],
    "augment": ["case", "typos", "punctuation"],
    "scheduled_sampling": ["0", "0.0", "0.25"],
    "positions": ["rotary", "learned", "tensor2tensor"],
    "attention": ["linear", "low_rank:2"],
    "schedule": ["transformer", "cosine"],
    "lora_rank": ["0", "8"],
    "picture": [*PICTURES],
}
CONDITIONED = [
    name
    for name, [place, *_] in every_place().items()
    if place.option.setting.only and "architecture" not in place.option.setting.only
]


def among(choices):
    """A function that says whether a choice is among those of an option."""
    return choices if callable(choices) else choices.__contains__


@pytest.mark.parametrize("name", CONDITIONED)
def test_a_flag_of_another_choice_is_refused(name, tmp_path):
    setting = every_place()[name][0].option.setting
    on = next(iter(setting.only))
    command = "visualize" if on == "picture" else "train"
    task = [] if on == "picture" else [f"--task={tasks_of(name)[0]}"]
    path = tmp_path / "my.flags"
    argument = f"--{name}={some_value(name)}"
    path.write_text(f"{argument}\n", encoding="utf-8")
    held = set()
    for choice in CHOICES[on]:
        holds = among(setting.only[on])(choice)
        chosen = [*task, f"--{on}={choice}"]
        held.add(holds)
        if holds:
            values_of(command, *chosen, argument)
            values_of(command, *chosen, f"--flagfile={path}")
            continue
        expected = f"--{name} is for {setting.only_words or f'--{on}='}"
        on_line = refusal(command, argument, *chosen)
        assert on_line.startswith(f"command line: {expected}")
        assert f"Received: --{on}={choice}" in on_line
        assert on_line.endswith(" Leave it out.")
        in_file = refusal(command, *chosen, f"--flagfile={path}")
        assert in_file.startswith(f"{path}, line 1: {expected}")
        # A file's flag is dropped if a later choice outside of the file does not have it.
        assert values_of(command, f"--flagfile={path}", *chosen)[name] == EVERY_FLAG[name].default
    assert held == {True, False}


@pytest.mark.parametrize("task", TASKS)
def test_a_dumped_recipe_gives_the_same_values(task, tmp_path):
    """With defaults alone, and with typed values."""
    sections = (*train.SECTIONS, *train.OF_TASKS[task])
    unfit = ("--model_dir=a # 100%\n--seed=5", "--export_dir=b ")
    for more in ((), unfit, ("--seed=3", "--norelease", "--max_minutes=2.5", "--export_dir=a b")):
        before = values_of("train", f"--task={task}", *more)
        path = tmp_path / "recipe.flags"
        path.write_text(recipe(sections, before), encoding="utf-8")
        assert values_of("train", f"--flagfile={path}") == before


@pytest.mark.parametrize("task", TASKS)
def test_the_help_of_a_task_has_its_flags_and_no_others(task, capsys):
    pages = []
    for chosen in ([f"--task={task}"], ["--task", task]):
        with pytest.raises(SystemExit):
            flags._parse(["train", *chosen, "--help"], train.SECTIONS, train.OF_TASKS)
        pages.append(capsys.readouterr().out)
    page, again = pages
    assert page == again
    names = set(re.findall(r"^  --(?:\[no\])?(\w+)", page, re.MULTILINE))
    assert names == values_of("train", f"--task={task}").keys()
    assert max(map(len, page.splitlines())) <= 100
    # The first page of help names this section as an example.
    assert page.count("\nModel:\n") == 1


def test_the_help_of_training_is_one_page(capsys):
    for arguments in (["--help"], ["--help=Optimizer"], ["--help=nowhere"]):
        with pytest.raises(SystemExit) as ended:
            flags._parse(["train", *arguments], train.SECTIONS, train.OF_TASKS, "", train.EVERYDAY)
        assert ended.value.code == (2 if "nowhere" in arguments[0] else None)
    page, errors = capsys.readouterr()
    front, optimizer = page.split("\nOptimizer:\n")
    assert all(f"  --task={task} " in front and TASKS[task].aim in front for task in TASKS)
    assert len(front.splitlines()) < 70
    assert set(re.findall(r"^  --(\w+)", optimizer, re.MULTILINE)) >= {"schedule", "ema"}
    assert errors.startswith("error: --help=nowhere is no section. There are: Task, ")


def test_a_value_that_is_called_help_prints_no_help():
    assert values_of("train", "--model_dir", "help")["model_dir"] == "help"
    assert flags._parse(["train", "--model_dir", "help"], train.SECTIONS, train.OF_TASKS)


def test_a_flag_is_refused_though_its_file_names_another_corpus_later(tmp_path):
    path = tmp_path / "my.flags"
    path.write_text("--dataset=a/b\n--corpus=lines\n", encoding="utf-8")
    assert "line 1: --dataset is for --corpus=tfds" in refusal("train", f"--flagfile={path}")


@pytest.mark.parametrize("path", sorted(FLAGFILES.rglob("*.flags")), ids=lambda path: path.name)
def test_each_recipe_is_read_by_every_command_of_its_task(path):
    for command in COMMANDS:
        values_of(command, f"--flagfile={path}")


@pytest.mark.parametrize(
    ("command", "arguments", "line"),
    [
        ("train", ["--d_modle=3"], "--d_modle does not exist. Did you mean --d_model?"),
        ("train", ["--qqqqqqq"], "--qqqqqqq does not exist. See --help."),
        ("train", ["--noema"], "--noema does not exist. Did you mean --ema?"),
        ("train", ["--batch_size=3"], "--batch_size does not exist. Did you mean --batch_tokens?"),
        ("translate", ["--beam=3"], "--beam does not exist. Did you mean --beam_size?"),
        ("train", ["--d_model"], "--d_model needs a value: --d_model=VALUE."),
        ("train", ["--norelease=1"], "--norelease takes no value. Received: 1"),
        ("train", ["--max_minutes=0"], "--max_minutes=0: must be a number, at least 1e-09."),
        ("train", ["--max_minutes=nan"], "--max_minutes=nan: must be a finite number."),
        (
            "train",
            ["--seed=4294967296"],
            "--seed=4294967296: must be an integer from 0 to 4294967295.",
        ),
        ("train", ["--ema=1"], "--ema=1: must be a number from 1e-09 to 0.999999999."),
        (
            "serve",
            ["--rest_api_port=65536"],
            "--rest_api_port=65536: must be an integer from 0 to 65535.",
        ),
        ("translate", ["--num_heads=3"], "--num_heads is a flag of other commands. Leave it out."),
        ("tune", ["--samples=1"], "--samples is a flag of other commands. Leave it out."),
        (
            "translate",
            ["--format=po"],
            "--format is a flag of other commands. Did you mean --file_format? Else leave it out.",
        ),
        ("train", ["tiny.flags"], "unexpected argument 'tiny.flags'. Write --flagfile=tiny.flags."),
        ("train", ["--SEED=3"], "--SEED does not exist. Did you mean --seed?"),
        ("train", ["--", "x"], "unexpected argument '--'"),
    ],
)
def test_a_wrong_argument_is_refused(command, arguments, line):
    assert refusal(command, *arguments).startswith(f"command line: {line}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("--d_model 64", "--d_model 64 does not exist. Write --d_model=64."),
        ("--d_modle=64", "--d_modle does not exist. Did you mean --d_model?"),
        ("--d_model", "--d_model needs a value: --d_model=VALUE."),
        ("d_model=64", "unexpected argument 'd_model=64': every argument is a flag"),
        ("--d_model=x", "--d_model=x: must be an integer."),
        ("--d_model=1.5", "--d_model=1.5: must be an integer."),
        ("--length_penalty=x", "--length_penalty=x: must be a number."),
        ("--truecase=x", "--truecase=x: must be true or false."),
        ("--traceback=", "--traceback=: must be true or false."),
        ("--input=~nobody_here/x", "--input=~nobody_here/x: ~nobody_here is no user's home."),
        ("--input=a --seed=3", "--input=a --seed=3: a path has no flag in it. Write each flag"),
        ('--input="a b"', '--input="a b": a path has no quotes here. Leave them out.'),
    ],
)
@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_wrong_line_of_a_flag_file_is_refused(command, text, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.flags").write_text(f"// mine\n\n--output=A -- B\n{text}\n", encoding="utf-8")
    (tmp_path / "outer.flags").write_text("--flagfile=wrong.flags\n", encoding="utf-8")
    assert refusal(command, "--flagfile=outer.flags").startswith(f"wrong.flags, line 4: {line}")


def reader_of(name):
    """A command that reads a flag, with the choices that the flag is for."""
    command = next(command for command in COMMANDS if name in names_of(command))
    task = [f"--task={tasks_of(name)[0]}"] if command == "train" else []
    only = {**(every_place()[name][0].option.setting.only or {})}
    only.pop("architecture", None)
    corpora = [corpus for corpus, kind in CORPORA.items() if name in options_of(kind)]
    only |= {"corpus": corpora} if corpora else {}
    choices = {on: next(filter(among(some), CHOICES.get(on, some))) for on, some in only.items()}
    return [command, *task, *(f"--{on}={choice}" for on, choice in choices.items())]


@pytest.mark.parametrize("spoiled", ["nan", "inf", "-inf", "1e999"])
def test_a_number_that_is_not_finite_is_refused(spoiled):
    numbers = [name for name in EVERY_FLAG if every_place()[name][0].option.type is float]
    assert len(numbers) > 20
    for name in numbers:
        assert f"--{name}={spoiled}" in refusal(*reader_of(name), f"--{name}={spoiled}")


PATHS = [name for name in EVERY_FLAG if isinstance(EVERY_FLAG[name].parser, PathParser)]


@pytest.mark.parametrize("name", PATHS)
def test_an_impossible_path_is_refused_when_flags_are_parsed(name, tmp_path):
    reader = reader_of(name)
    for path in ("a" * 256, f"b/{'ä' * 128}", "a/" * 2048):
        message = refusal(*reader, f"--{name}={path}")
        assert message.startswith(f"command line: --{name}=")
        assert len(message) < 300
    values_of(*reader, f"--{name}={'a' * 255}")
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        argument = f"--{name}={path}"
        if EVERY_FLAG[name].parser.is_folder:
            assert f"{tmp_path / 'file'} is no folder" in refusal(*reader, argument)
        else:
            values_of(*reader, argument)


NAMES = st.sampled_from([*EVERY_FLAG])
WORDS = st.one_of(
    NAMES,
    NAMES.map(lambda name: f"no{name}"),
    st.text(max_size=12),
    st.sampled_from(["flagfile", "", "help_me", "d_modle"]),
)
VALUES = st.one_of(
    st.sampled_from(
        [
            *("", "nan", "inf", "-1", "0", "1", "1.5", "9" * 400, "1e999", "true", "a,b", '"', "~"),
            *("~nobody/x", "-", "translation", "masking", "lines", "a" * 300, "/dev/null"),
            *("toy.flags", "f.flags", "bert.flags", "nowhere.flags", "/dev/zero", ".", "\ud800"),
        ]
    ),
    st.text(max_size=20),
)
ARGUMENTS = st.one_of(
    st.builds("{}{}={}".format, st.sampled_from(["--", "-", "", "---"]), WORDS, VALUES),
    st.builds("--{}".format, WORDS),
    VALUES,
)
FILES = st.one_of(
    st.binary(max_size=60),
    st.lists(ARGUMENTS, max_size=5).map(
        lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")
    ),
)
BROKEN = given(
    command=st.sampled_from(COMMANDS),
    arguments=st.lists(ARGUMENTS, max_size=4),
    content=st.one_of(st.none(), FILES),
)


def check_broken(folder, command, arguments, content):
    """Whatever is written, the command goes on or ends with one line and status 2."""
    if content is not None:
        (folder / "f.flags").write_bytes(content)
        arguments = [*arguments, "--flagfile=f.flags"]
    try:
        flags_of(command, *arguments)
    except (OSError, ValueError) as error:
        # `flags.run` turns these into status 2.
        line = " ".join(str(error).split())
        assert line
        assert len(line) < 3000
        return False
    return True


@pytest.fixture(scope="module")
def broken_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        yield folder


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=150, suppress_health_check=QUIET)
@BROKEN
def test_any_arguments_are_taken_or_refused_in_one_line(broken_folder, command, arguments, content):
    check_broken(broken_folder, command, arguments, content)


@pytest.mark.slow
@settings(max_examples=10_000, suppress_health_check=QUIET)
@BROKEN
def test_ten_thousand_arguments(broken_folder, command, arguments, content):
    check_broken(broken_folder, command, arguments, content)


NOT_ONE_OF = r"`\w+` must be one of "


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(([arg], "") for arg in ("--d_modle=3", "--flagfile=none.flags", "--flagfile=/dev/zero")),
        # Help with a choice that does not exist.
        *(([f"--{choice}", "--help"], NOT_ONE_OF) for choice in ("task=parse", "corpus=x")),
        (["--architecture=x", "--help"], NOT_ONE_OF),
    ],
)
def test_a_refused_command_prints_one_line_and_ends_with_status_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        flags._parse(["train", *arguments], train.SECTIONS, train.OF_TASKS)
    assert ended.value.code == 2
    assert re.fullmatch(f"error: {message}[^\n]+\n", capsys.readouterr().err)
