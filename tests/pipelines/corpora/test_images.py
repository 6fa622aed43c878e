"""Sets of pictures: from packages, idx files, and folders of PNG files."""

import gzip
import os
import struct

import numpy as np
import pytest
from written import write_png

from pipelines.batches import picture_files
from pipelines.corpora import images

RNG = np.random.default_rng(2)


SPLITS = ("train", "valid", "test")


def keys_of(split):
    """The pictures of a split with their classes, in order."""
    labelled = zip(split.pixels, split.classes, strict=True)
    return [(pixels.tobytes(), int(label)) for pixels, label in labelled]


def all_keys(pictures):
    return sorted(key for split in SPLITS for key in keys_of(getattr(pictures, split)))


def test_digits_are_those_of_scikit_learn_and_each_is_in_one_split():
    pytest.importorskip("sklearn", reason="install the extra [vision]")
    from sklearn.datasets import load_digits

    digits = images.load("digits")
    splits = (digits.train, digits.valid, digits.test)
    assert [len(split) for split in splits] == [1257, 180, 360]
    theirs = load_digits()
    pixels = np.rint(theirs.images * 255 / 16).astype(np.uint8)
    assert all_keys(digits) == sorted(keys_of(images.Split(pixels, theirs.target)))
    # The shuffle mixes writers and classes: no class is missing anywhere.
    assert all(len(set(split.classes)) == 10 for split in splits)
    again = images.load("digits")
    np.testing.assert_array_equal(again.test.pixels, digits.test.pixels)


def write_idx(path, numbers):
    header = b"\0\0\x08" + bytes([numbers.ndim]) + struct.pack(f">{numbers.ndim}I", *numbers.shape)
    content = header + numbers.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def garments(tmp_path):
    """A folder like that of Debian's package, with few garments; their pixels and classes."""
    pixels = RNG.integers(0, 256, (2010, 2, 3))
    classes = RNG.integers(0, 10, 2010)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", pixels)
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", classes)
    write_idx(tmp_path / "t10k-images-idx3-ubyte", pixels[:7])
    write_idx(tmp_path / "t10k-labels-idx1-ubyte", classes[:7])
    return tmp_path, pixels, classes


def test_files_of_fashion_mnist_are_read_with_their_own_test_split(garments):
    folder, pixels, classes = garments
    pictures = images.load("fashion_mnist", folder)
    assert (len(pictures.train), len(pictures.valid), len(pictures.test)) == (10, 2000, 7)
    np.testing.assert_array_equal(pictures.test.pixels, pixels[:7, ..., None])
    np.testing.assert_array_equal(pictures.test.classes, classes[:7])
    whole = keys_of(images.Split(pixels.astype(np.uint8), classes))
    assert sorted(keys_of(pictures.train) + keys_of(pictures.valid)) == sorted(whole)


def test_damaged_idx_files_are_refused(garments):
    folder, _, _ = garments
    path = folder / "t10k-labels-idx1-ubyte"
    packed = path.with_suffix(".gz")
    flipped = bytearray(gzip.compress(bytes(range(256)) * 40))
    flipped[len(flipped) // 2] ^= 255
    for file, content, message in (
        (path, path.read_bytes()[:-1], r"must hold 7 bytes .*Received: 6\. Fetch it again"),
        (path, b"\0\0\x08\x01\0\0\0\x01\0", r"pictures \[7, 2, 3\], labels \[1\] up to 0"),
        (path, b"\0\0\x08\x01\0\0\0\x07" + bytes(range(4, 11)), r"labels \[7\] up to 10\. Fetch"),
        (path, b"\0\0\x08\x02\0\0\0\x07\0\0\0\x01" + bytes(7), r"labels \[7, 1\] up to 0"),
        (path, b"\0\0\x0d\x01", "is no idx file of bytes"),
        (packed, b"no gzip", r"\.gz is damaged"),
        (packed, flipped, r"\.gz is damaged"),
    ):
        path.unlink(missing_ok=True)
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            images.load("fashion_mnist", folder)
    smaller = folder / "t10k-images-idx3-ubyte"
    path.write_bytes(b"\0\0\x08\x01\0\0\0\x07" + bytes(7))
    smaller.write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 7, 3, 2) + bytes(42))
    with pytest.raises(ValueError, match=r"pictures of one size.*Received: pictures \[7, 3, 2\]"):
        images.load("fashion_mnist", folder)
    path.unlink()
    packed.unlink()
    with pytest.raises(FileNotFoundError, match=r"has no t10k-labels.*\[\.gz\]\. Install Debian's"):
        images.load("fashion_mnist", folder)


@pytest.fixture
def photographs(tmp_path):
    """A folder with colour pictures of 12 cats and 9 dogs, and their pixels by class."""
    written = {
        name: RNG.integers(0, 256, (n, 4, 6, 3), np.uint8) for name, n in (("cat", 12), ("dog", 9))
    }
    for name, many in written.items():
        (tmp_path / name).mkdir()
        for number, pixels in enumerate(many):
            write_png(tmp_path / name / f"{number}.png", pixels)
    return tmp_path, written


def test_the_subfolders_of_a_folder_are_its_classes(photographs):
    folder, written = photographs
    pictures = images.load("folder", folder)
    assert pictures.classes == ("cat", "dog")
    assert [len(getattr(pictures, split)) for split in SPLITS] == [17, 2, 2]
    numbered = enumerate(written.values())
    expected = [(pixels.tobytes(), number) for number, many in numbered for pixels in many]
    assert all_keys(pictures) == sorted(expected)


def test_names_of_files_and_classes_may_have_any_characters(photographs):
    folder, _ = photographs
    whole = images.load("folder", folder)
    (folder / "cat" / "3.png").rename(folder / "cat" / "3.PNG")
    (folder / "cat").rename(folder / "cat [1]*")
    (folder / "dog" / "notes.txt").write_text("no picture")
    renamed = images.load("folder", folder)
    assert renamed.classes == ("cat [1]*", "dog")
    for split in SPLITS:
        assert {*keys_of(getattr(renamed, split))} == {*keys_of(getattr(whole, split))}


def test_the_digest_changes_with_the_splits(photographs):
    folder, _ = photographs
    before = images.load("folder", folder)
    # A control: neither the content of pictures nor other files change it.
    write_png(folder / "dog" / "0.png", np.zeros((4, 6, 3), np.uint8))
    (folder / "dog" / "notes.txt").write_text("no picture")
    assert images.load("folder", folder).digest == before.digest
    (folder / "dog" / "0.png").rename(folder / "cat" / "12.png")
    moved = images.load("folder", folder)
    (folder / "cat" / "12.png").rename(folder / "dog" / "9.png")
    assert len({before.digest, moved.digest, images.load("folder", folder).digest}) == 3


def test_grey_files_have_one_channel(photographs):
    folder, written = photographs
    paths = [folder / f"grey{number}.png" for number in range(2)]
    grey = written["cat"][:2, ..., :1]
    write_png(paths[0], grey[0])
    write_png(paths[1], np.repeat(grey[1], 3, axis=-1))
    np.testing.assert_array_equal(picture_files.read_all(paths)[0], grey)
    # A control: beside a colour picture all have three channels.
    assert picture_files.read_all([*paths, folder / "dog" / "0.png"])[0].shape == (3, 4, 6, 3)
    paths[1].write_text("no picture")
    with pytest.raises(ValueError, match=r"grey1\.png is no PNG or JPEG file"):
        picture_files.read_all(paths)


def test_pictures_that_cannot_be_used_are_refused(photographs, tmp_path_factory):
    folder, _ = photographs
    write_png(folder / "dog" / "0.png", np.zeros((5, 6, 3), np.uint8))
    with pytest.raises(ValueError, match=r"0\.png must be 4 x 6 pixels, .* 5 x 6\. Resize it\.$"):
        images.load("folder", folder)
    (folder / "dog" / "0.png").write_bytes((folder / "dog" / "1.png").read_bytes()[:40])
    with pytest.raises(ValueError, match=r"0\.png is no PNG or JPEG file that can be read"):
        images.load("folder", folder, strict=True)
    (folder / "empty").mkdir()
    for arguments, message in (
        (("folder", folder), r"two subfolders or more.*Received: none in empty\.$"),
        (("folder", tmp_path_factory.mktemp("nothing")), r"Received: 0 subfolders\.$"),
        (("folder", folder / "nowhere"), r"there is no folder .*nowhere\. It must have"),
        (("folder",), "needs the folder that holds one subfolder"),
        (("cats",), r"`pictures` must be one of digits, .*: 'cats'"),
        (("digits", folder), "Only pictures=folder or fashion_mnist reads a folder"),
        (("digits", None, True), "Only pictures=folder reads `strict`"),
    ):
        error = FileNotFoundError if "there is no" in message else ValueError
        with pytest.raises(error, match=message):
            images.load(*arguments)
    (folder / os.fsdecode(b"caf\xe9")).mkdir()
    with pytest.raises(ValueError, match=r"class whose name is not UTF-8: .*caf.*Rename it\.$"):
        images.load("folder", folder)


def test_jpeg_files_are_read_and_other_files_counted_by_their_endings(photographs):
    image = pytest.importorskip("PIL.Image")
    folder, _ = photographs
    pixels = RNG.integers(0, 256, (4, 6, 3), np.uint8)
    for name in ("a.jpg", "b.JPEG", "c.JPG"):
        image.fromarray(pixels).save(folder / "dog" / name)
    for name in ("a.gif", "b.gif", "c.TXT", ".DS_Store"):
        (folder / "cat" / name).write_text("")
    pictures = images.load("folder", folder)
    assert sum(map(len, (pictures.train, pictures.valid, pictures.test))) == 24
    assert pictures.passed_over == {".DS_Store": 1, ".gif": 2, ".txt": 1}
    assert not pictures.dropped


def test_an_unreadable_file_moves_no_other_file_to_another_split(photographs):
    folder, _ = photographs
    whole = images.load("folder", folder)
    path = folder / "cat" / "5.png"
    for spoil in (lambda: path.write_bytes(b""), lambda: path.symlink_to("gone")):
        path.unlink()
        spoil()
        spoilt = images.load("folder", folder)
        assert spoilt.dropped == {"unreadable": 1}
        assert spoilt.dropped.firsts == {"unreadable": str(path)}
        assert spoilt.digest == whole.digest
        assert len(all_keys(spoilt)) == len(all_keys(whole)) - 1
        for split in SPLITS:
            assert {*keys_of(getattr(spoilt, split))} <= {*keys_of(getattr(whole, split))}


def test_pictures_that_nothing_can_be_learned_from_are_refused(photographs):
    folder, written = photographs
    for name, many in written.items():
        for number, pixels in enumerate(many):
            flat = np.full_like(pixels, number * 9)
            write_png(folder / name / f"{number}.png", flat)
    with pytest.raises(ValueError, match=r"each of the 17 pictures of .* has a single colour"):
        images.load("folder", folder)
    for path in folder.glob("*/*"):
        write_png(path, written["cat"][0])
    with pytest.raises(ValueError, match=r"the 17 pictures of .* to train on are all equal"):
        images.load("folder", folder)
