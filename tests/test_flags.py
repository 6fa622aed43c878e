"""Flag files are found from any folder, and later flags override earlier ones."""

import pytest

from keras_transformer.flagfiles import expand_flagfiles


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
        match=r"'none.flags'.*base.flags, base_en_fr.flags, big.flags, tiny.flags",
    ):
        expand_flagfiles(["--flagfile=none.flags"])


def test_a_flag_file_that_includes_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.flags").write_text("--flagfile=b.flags\n")
    (tmp_path / "b.flags").write_text("--flagfile=a.flags\n")
    with pytest.raises(ValueError, match="includes itself"):
        expand_flagfiles(["--flagfile=a.flags"])
