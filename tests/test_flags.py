"""Flag files are found from any folder, and later flags override earlier ones."""

import dataclasses
import types

import pytest

from keras_transformer import flags
from keras_transformer.flagfiles import FLAGFILES, expand_flagfiles


def values(arguments):
    return dict(argument.removeprefix("--").split("=") for argument in arguments)


@pytest.mark.parametrize("argv", [["--flagfile=base.flags"], ["--flagfile", "base.flags"]])
def test_the_package_s_flag_files_are_found_from_any_folder(argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert values(expand_flagfiles(argv))["d_model"] == "512"


def test_big_is_a_delta_on_base():
    base, big = (
        values(expand_flagfiles(["--flagfile=base.flags"])),
        values(expand_flagfiles(["--flagfile=big.flags"])),
    )
    different = {name for name in big if big[name] != base.get(name)}
    assert different == {
        "d_model",
        "d_ff",
        "num_heads",
        "dropout",
        "max_steps",
        "keep_checkpoints",
        "average_checkpoints",
    }
    assert set(base) <= set(big)


def test_a_file_in_the_working_folder_comes_first_and_may_include_the_package_s(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.flags").write_text("# mine\n--flagfile=base.flags\n\n--d_model=64\n// end\n")
    assert values(expand_flagfiles(["--flagfile=mine.flags", "--d_ff=96"]))["d_model"] == "64"
    assert values(expand_flagfiles(["--flagfile=mine.flags", "--d_ff=96"]))["d_ff"] == "96"
    (tmp_path / "base.flags").write_text("--d_model=32\n")
    assert values(expand_flagfiles(["--flagfile=base.flags"])) == {"d_model": "32"}


def test_order_is_kept():
    assert (
        expand_flagfiles(["--d_model=1", "--flagfile=toy.flags", "--d_model=2"])[-1]
        == "--d_model=2"
    )


def test_what_other_commands_read_is_left_out_of_files_but_not_of_the_command_line(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.flags").write_text("--flagfile=toy.flags\n--d_model=32\n--noema\n")
    expanded = expand_flagfiles(
        ["--d_ff=1", "--flagfile=mine.flags", "--seed=2"], {"d_model", "d_ff", "noema"}
    )
    assert expanded[0] == "--d_ff=1"
    assert expanded[-1] == "--seed=2"
    assert not {"d_model", "d_ff", "noema"} & {
        argument.lstrip("-").partition("=")[0] for argument in expanded[1:]
    }
    assert "--num_heads=4" in expanded


def test_a_missing_flag_file_names_those_there_are():
    with pytest.raises(
        FileNotFoundError,
        match=r"'none.flags'.*base.flags, base_en_fr.flags, .*big.flags, big_en_fr.flags, .*"
        r"table3/a_16_heads.flags, .*, tiny.flags",
    ):
        expand_flagfiles(["--flagfile=none.flags"])


def test_a_flag_file_that_includes_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.flags").write_text("--flagfile=b.flags\n")
    (tmp_path / "b.flags").write_text("--flagfile=a.flags\n")
    with pytest.raises(ValueError, match="includes itself"):
        expand_flagfiles(["--flagfile=a.flags"])


def every_flag():
    return [(group, name) for group, flag_values in flags.GROUPS.items() for name in flag_values]


def test_each_flag_stands_in_one_group():
    names = [name for _, name in every_flag()]
    assert len(names) == len(set(names)) > 80


@pytest.mark.parametrize("path", sorted(FLAGFILES.glob("*.flags")), ids=lambda path: path.name)
def test_a_flag_file_names_flags_that_there_are(path):
    known = {name for _, name in every_flag()}
    assert set(values(expand_flagfiles([f"--flagfile={path}"]))) <= known


@pytest.mark.parametrize(("group", "name"), every_flag())
def test_a_help_line_is_complete_by_itself(group, name):
    """Flags are shown sorted by name: a line that leans on the one before would lean on another."""
    # absl puts an enum's values in front.
    line = flags.GROUPS[group][name].help.rpartition(">: ")[2]
    assert line[0].isupper()
    assert line.endswith(".")


def test_values_are_those_of_the_groups_asked_for():
    declared = flags.declare("precision", "version")
    declared.mark_as_parsed()
    assert flags.values(declared, "precision") == {"precision": "float32"}
    assert flags.values(declared, "version", "precision") == {
        "version": None,
        "precision": "float32",
    }


def test_what_was_not_given_is_no_decoding_option(monkeypatch):
    declared = flags.declare("search", "decoding", "seed")
    assert flags.decoding_options(declared) == {}

    def give(name, value):
        monkeypatch.setattr(declared[name], "present", 1)
        monkeypatch.setattr(declared[name], "_value", value)

    give("beam_size", 4)
    give("coverage_penalty", 0.0)
    give("seed", 3)
    assert flags.decoding_options(declared) == {"beam_size": 4, "coverage_penalty": 0.0}
    give("samples", 2)
    assert flags.decoding_options(declared)["seed"] == 3


def test_flags_and_options_have_the_same_defaults():
    from keras_transformer.decoding import DecodingOptions

    fields = {field.name: field.default for field in dataclasses.fields(DecodingOptions)}
    # The task decides: trees may be longer than translations.
    fields |= {"max_length": None, "min_length": None}
    for group in ("search", "decoding"):
        for name in flags.GROUPS[group]:
            assert flags.GROUPS[group][name].default == fields[name], name


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--beam_size=3"], "--beam_size is for searches. Leave it out."),
        (["-beam_size", "3"], "--beam_size is for searches. Leave it out."),
        (["--noconstrained"], "--constrained is for searches. Leave it out."),
        (["--flagfile=parsing_small.flags", "--seed=3"], None),
    ],
)
def test_flags_are_refused_on_the_command_line_alone(argv, told, monkeypatch):
    declared = flags.declare("search", "decoding", "seed")
    monkeypatch.setattr("sys.argv", ["evaluate", *argv])
    if told is None:
        flags.refuse(declared, ("search", "decoding"), "is for searches")
        return
    with pytest.raises(ValueError) as raised:
        flags.refuse(declared, ("search", "decoding"), "is for searches")
    assert str(raised.value) == told


def test_a_package_that_is_missing_is_told_in_a_line(monkeypatch, capsys):
    def main(_):
        raise ImportError("pip install it\nand more")

    monkeypatch.setattr(flags, "FLAGS", types.SimpleNamespace(traceback=False))
    with pytest.raises(SystemExit):
        flags._tell_errors(main)
    assert capsys.readouterr().err == "error: pip install it\n"
    monkeypatch.setattr(flags, "FLAGS", types.SimpleNamespace(traceback=True))
    with pytest.raises(ImportError):
        flags._tell_errors(main)


def test_threads_are_set_before_a_corpus_is_read(monkeypatch):
    from keras_transformer import evaluate, tune

    class Given:
        model = "m"
        samples = None
        num_hypotheses = 1
        beam_sizes = ("1",)
        length_penalties = ("0",)

        def __getattr__(self, name):
            return None

    done = []

    def read(*_):
        done.append("corpus")
        raise ValueError("enough")

    monkeypatch.setattr(
        "keras_transformer.startup.spread_over_cores", lambda: done.append("threads")
    )
    monkeypatch.setattr("keras_transformer.translator.loading.description_of", lambda _: {})
    monkeypatch.setattr("keras_transformer.tasks.examination_class", lambda _: read)
    monkeypatch.setattr("keras_transformer.tasks.sentence_examination.validation_of", read)
    for command in (evaluate, tune):
        with pytest.raises(ValueError, match="enough"):
            command.main(Given())
    assert done == ["threads", "corpus"] * 2
