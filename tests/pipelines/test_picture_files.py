"""Pictures from files: transparent pixels lie over white, and the header is read before pixels."""

import collections
import itertools
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import batching, picture_files, shifted_pictures
from pipelines.corpora.images import Split
from pipelines.random_numbers import key

Image = pytest.importorskip("PIL.Image", reason="Pillow is the oracle")
RNG = np.random.default_rng(4)


def chunk(name, content):
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def png(width, height, depth, kind, row, extra=b""):
    """A PNG file whose rows are alike."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    rows = zlib.compress((b"\0" + row) * height)
    parts = chunk(b"IHDR", header) + extra + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return picture_files.PNG + parts


RGBA = [10, 20, 30, 255]
PALETTE = chunk(b"PLTE", bytes([0, 0, 0, 200, 100, 50, 9, 9, 9, 1, 2, 3]))
SECOND_IS_CLEAR = chunk(b"tRNS", bytes([255, 0]))
# Files of one row, and their pixels over white; numbers of fewer than 8 bits are packed by hand.
FILES = {
    "grey and alpha": (png(2, 1, 8, 4, bytes([0, 255, 0, 51])), [[0] * 3, [204] * 3]),
    "16 bits": (png(2, 1, 16, 4, struct.pack(">HHHH", 0, 65535, 0, 0)), [[0] * 3, [255] * 3]),
    "colour and alpha": (png(2, 1, 8, 6, bytes([0] * 4 + RGBA)), [[255] * 3, [10, 20, 30]]),
    "palette": (png(4, 1, 2, 3, b"\x1b", PALETTE), [[0] * 3, [200, 100, 50], [9] * 3, [1, 2, 3]]),
    "clear palette": (png(2, 1, 2, 3, b"\x10", PALETTE + SECOND_IS_CLEAR), [[0] * 3, [255] * 3]),
    "clear grey": (png(2, 1, 8, 0, b"\7\10", chunk(b"tRNS", b"\0\7")), [[255] * 3, [8] * 3]),
    # TensorFlow's alpha of these is nearly clear.
    "one bit": (png(8, 1, 1, 0, b"\x01"), [[0] * 3] * 7 + [[255] * 3]),
    "grey": (png(2, 1, 8, 0, bytes([7, 8])), [[7] * 3, [8] * 3]),
}


@pytest.mark.parametrize("name", FILES)
def test_transparent_pixels_lie_over_white(name, tmp_path):
    content, expected = FILES[name]
    (tmp_path / "a.png").write_bytes(content)
    np.testing.assert_array_equal(picture_files.read(tmp_path / "a.png", 3), [expected])
    with Image.open(tmp_path / "a.png") as picture:
        clear = picture.convert("RGBA")
    if name != "16 bits":
        white = Image.new("RGBA", clear.size, "white")
        theirs = np.asarray(Image.alpha_composite(white, clear).convert("RGB"))
        np.testing.assert_allclose(np.int32([expected]), theirs, atol=1)
    # A graph has the same pixels; the control ignores transparency.
    np.testing.assert_array_equal(decoded_in_a_graph(content), [expected])
    is_changed = (tf.io.decode_png(content, 3).numpy() != [expected]).any()
    assert is_changed == (name not in ("palette", "one bit", "grey"))
    if "grey" in name:
        grey = picture_files.read(tmp_path / "a.png", 1)
        np.testing.assert_array_equal(grey, [[pixel[:1] for pixel in expected]])


# As in a SavedModel.
decoded_in_a_graph = tf.function(
    lambda content: picture_files.decoded(content, 3), [tf.TensorSpec([], tf.string)]
)


def save(path, pixels, mode=None, **options):
    Image.fromarray(pixels, mode).save(path, **options)
    return path


@pytest.mark.filterwarnings("ignore:'mode' parameter is deprecated:DeprecationWarning")
def test_jpeg_is_read_and_unreadable_files_are_refused_in_one_line(tmp_path):
    smooth = np.full((16, 8, 3), (200, 100, 50), np.uint8)
    path = save(tmp_path / "a.JPG", smooth, quality=95)
    np.testing.assert_allclose(picture_files.read(path, 3).astype(int), smooth, atol=3)
    assert picture_files.size_of(tf.constant(path.read_bytes())).numpy().tolist() == [16, 8]
    grey = save(tmp_path / "grey.jpg", smooth[..., 0])
    assert picture_files.read(grey, 1).shape == (16, 8, 1)
    cmyk = save(tmp_path / "cmyk.jpg", RNG.integers(0, 256, (8, 8, 4), np.uint8), "CMYK")
    with pytest.raises(picture_files.UnreadablePicture, match=r"cmyk\.jpg .*: it is in CMYK\. Sa"):
        picture_files.read(cmyk, 3)
    whole = save(tmp_path / "cut.jpg", RNG.integers(0, 256, (64, 64, 3), np.uint8)).read_bytes()
    no_pictures = (b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", FILES["grey"][0][:40])
    for content in (*no_pictures, *(whole[:end] for end in (4, 100, len(whole) // 2))):
        (tmp_path / "cut.jpg").write_bytes(content)
        with pytest.raises(picture_files.UnreadablePicture, match=r"cut\.jpg is no PNG or JPEG "):
            picture_files.read(tmp_path / "cut.jpg", 3)


def test_a_huge_picture_is_refused_by_its_header(tmp_path, monkeypatch):
    """21 kB would become 529 MB."""
    (tmp_path / "big.png").write_bytes(png(13280, 13280, 1, 0, bytes(1660)))
    monkeypatch.setattr(picture_files, "decoded", None)
    error = r"big\.png must have at most 16,777,216 pixels\. Received: 13280 x 13280\. Resize it\.$"
    with pytest.raises(ValueError, match=error):
        picture_files.read(tmp_path / "big.png", 3)
    # Sides whose product is beyond 64 bits are no small picture.
    content = bytearray(FILES["grey"][0])
    content[16:24] = b"\x7f" + b"\xff" * 3 + b"\x7f" + b"\xff" * 3
    (tmp_path / "big.png").write_bytes(content)
    with pytest.raises(ValueError, match="Received: 2147483647 x 2147483647"):
        picture_files.read(tmp_path / "big.png", 3)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(10))
def test_a_jpeg_file_is_turned_as_its_camera_notes(tmp_path, orientation, order):
    """As Pillow turns it. 0 and 9 say nothing."""
    ImageOps = pytest.importorskip("PIL.ImageOps")
    pixels = RNG.integers(0, 256, (2, 3, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    mark = {"<": b"II*\0", ">": b"MM\0*"}[order]
    before = struct.pack(f"{order}HHII", 0x0100, 4, 1, 24)
    note = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    tiff = mark + struct.pack(f"{order}IH", 8, 2) + before + note + bytes(4)
    path = save(tmp_path / "a.jpg", pixels, exif=b"Exif\0\0" + tiff)
    with Image.open(path) as picture:
        theirs = np.asarray(ImageOps.exif_transpose(picture))
    ours = picture_files.read(path, 3)
    np.testing.assert_allclose(ours.astype(int), theirs, atol=4)
    content = tf.constant(path.read_bytes())
    assert picture_files.size_of(content).numpy().tolist() == [*theirs.shape[:2]]
    np.testing.assert_array_equal(decoded_in_a_graph(content), ours)
    # The control: without the note it is as it was.
    plain = picture_files.read(save(tmp_path / "b.jpg", pixels), 3)
    assert (plain.shape == ours.shape and (plain == ours).all()) == (orientation not in range(2, 9))


@pytest.mark.parametrize("end", [4, 12, 20, 30, 36])
def test_a_damaged_note_of_a_camera_turns_nothing(tmp_path, end):
    whole = b"Exif\0\0II*\0" + struct.pack("<IHHHIHH", 8, 1, 0x0112, 3, 1, 6, 0)
    pixels = RNG.integers(0, 256, (8, 16, 3), np.uint8)
    path = save(tmp_path / "a.jpg", pixels, exif=whole[:end] + b"\xff" * (len(whole) - end))
    assert picture_files.read(path, 3).shape == ((16, 8, 3) if end > len(whole) - 4 else (8, 16, 3))


# Moved pictures: all shifts are equally likely, and each epoch draws new ones.
PIXELS = np.random.default_rng(3).integers(1, 256, (40, 5, 4, 2), np.uint8)
SPLIT = Split(PIXELS, np.arange(40, dtype=np.int32) % 3)


def moved(picture, down, right):
    """A picture moved by at most one pixel each way; pixels from outside are 0."""
    height, width, _ = picture.shape
    around = np.pad(picture, [(1, 1), (1, 1), (0, 0)])
    return around[1 - down : 1 - down + height, 1 - right : 1 - right + width]


SHIFTS = list(itertools.product((-1, 0, 1), repeat=2))
# Each moved picture: its number and its shift.
MOVED = {
    moved(picture, *shift).tobytes(): (number, shift)
    for number, picture in enumerate(PIXELS)
    for shift in SHIFTS
}


def test_all_shifts_are_equally_likely():
    many = np.tile(PIXELS[:1], (2700, 1, 1, 1))
    images = shifted_pictures.shifted(tf.constant(many), 1, key(4, np.arange(2700))).numpy()
    counts = collections.Counter(MOVED[image.tobytes()] for image in images)
    assert counts.keys() == {(0, shift) for shift in SHIFTS}
    # Chi-squared of 8 degrees of freedom: 26 comes once in a thousand.
    assert sum((count - 300) ** 2 / 300 for count in counts.values()) < 26


def test_an_epoch_holds_each_picture_once_and_moves_it_anew():
    examples = shifted_pictures.examples(SPLIT, positions=2, most=1, seed=1)
    batches = batching.training_batches(examples, 20, seed=1)
    expected = "4 updates an epoch, of 20 input tokens each, in 1 shape, 0.0% padding"
    assert batches.describe() == expected
    dataset = batches.dataset()
    assert [spec.shape for spec in dataset.element_spec] == [(10, 5, 4, 2), (10,), (10,)]
    stream = [*dataset.take(8).as_numpy_iterator()]

    def shifts(epoch):
        shift_of_picture = {}
        for images, labels, weights in epoch:
            assert weights.tolist() == [1] * 10
            for image, label in zip(images, labels, strict=True):
                number, shift = MOVED[np.rint(image * 255).astype(np.uint8).tobytes()]
                assert label == SPLIT.classes[number]
                shift_of_picture[number] = shift
        assert len(shift_of_picture) == 40
        return shift_of_picture

    first, second = shifts(stream[:4]), shifts(stream[4:])
    # 8 of 9 on average.
    assert sum(first[number] != second[number] for number in range(40)) > 25


def test_evaluation_moves_no_picture():
    examples = shifted_pictures.examples(SPLIT, positions=2)
    batches = batching.evaluation_batches(examples, 20)
    images = np.concatenate([images.numpy() for images, _, _ in batches])
    np.testing.assert_array_equal(images, PIXELS.astype(np.float32) / np.float32(255))
