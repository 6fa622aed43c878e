"""Text to ids and back: one SentencePiece BPE vocabulary shared by both languages (Vaswani et al.
2017, section 5.1).

Byte fallback spells what no piece covers. So any text survives the round trip, apart from NFKC
normalization and runs of white space.
"""

import contextlib
import functools
import hashlib
import io
import os
import pathlib
from collections.abc import Iterable

import sentencepiece

from pipelines.special_ids import BOS, EOS, PAD, UNK
from pipelines.whole_files import write_whole

BYTES = 256
RESERVED = {"<pad>", "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(BYTES))}


def learn(lines: Iterable[str], size: int, tags: Iterable[str] = ()) -> "Vocabulary":
    """Learn a joint byte-pair encoding.

    Args:
        lines: text of the training side only, both languages.
        size: V, number of pieces, with the 4 special ones, 256 bytes and the tags.
        tags: strings such as "<2de>" that tell the model what to do. Each is one piece wherever it
            stands, and no other piece crosses it.

    Raises:
        ValueError: if the text does not hold that many pieces, `size` leaves no room for any, or a
            tag is given twice or is a piece already.
    """
    tags = list(tags)
    if taken := sorted({tag for tag in tags if tag in RESERVED or tags.count(tag) > 1}):
        raise ValueError(
            "`tags` must differ from each other and from the special pieces and bytes. "
            f"Received: {', '.join(taken)}. Choose another name."
        )
    smallest = BYTES + 5 + len(tags)
    if size < smallest:
        held = (
            f"4 special pieces, 256 bytes, {len(tags)} tags, 1 of text"
            if tags
            else "4 special pieces, 256 bytes, 1 of text"
        )
        raise ValueError(
            f"`vocabulary_size` must be at least {smallest}: {held}. Received: {size}."
        )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type="bpe",
            byte_fallback=True,
            normalization_rule_name="nmt_nfkc",
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            user_defined_symbols=tags,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        remedy = "larger" if "smaller than" in reason else "smaller"
        raise ValueError(
            f"`vocabulary_size`={size} could not be learned from the training text: {reason}. "
            f"Try a {remedy} one."
        ) from error
    return Vocabulary(model.getvalue())


class Vocabulary:
    """A learned SentencePiece model.

    Args:
        model: its bytes.

    Attributes:
        size: V, the number of pieces.
        pieces: the V pieces by id, strings.
        fingerprint: 16 hexadecimal digits of the model's SHA-256; equal for equal vocabularies.
    """

    def __init__(self, model: bytes):
        self.model = model
        self.size = sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
        self.fingerprint = hashlib.sha256(model).hexdigest()[:16]

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is not a SentencePiece model.
        """
        model = pathlib.Path(path).read_bytes()
        # SentencePiece accepts an empty file, as a model without pieces.
        with contextlib.suppress(RuntimeError):
            if model:
                return cls(model)
        raise ValueError(
            f"{path} is not a SentencePiece model, or is damaged. Every export of its run has a "
            "copy: assets.extra/vocabulary.model."
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the model, whole or not at all."""
        write_whole(path, lambda temporary: temporary.write_bytes(self.model))

    @functools.cached_property
    def pieces(self) -> list[str]:
        """V strings by id; a space is "\u2581"."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        return [processor.id_to_piece(number) for number in range(self.size)]

    @functools.cached_property
    def tokenizer(self):
        """The same model as an operation of TensorFlow. A module whose graph uses it must track it,
        or it is not saved.
        """
        import tensorflow_text

        return tensorflow_text.SentencepieceTokenizer(model=self.model, add_eos=True)

    def tokenize(self, text):
        """Strings (B,) to a ragged tensor of ids (B, None), each row closed by EOS."""
        return self.tokenizer.tokenize(text)

    def detokenize(self, ids):
        """A ragged tensor of ids (B, None) to strings (B,), without the special ids."""
        return self.tokenizer.detokenize(ids)
