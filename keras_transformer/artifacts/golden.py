"""Sentences that travel with a SavedModel, and what they are translated to: whether it still does
that can be asked wherever it runs.
"""

import base64
import json

EDGES = (b"", b"  ", b"\xff no UTF-8 \xfe", b"a\tb\x00c", "日本語 😀 “ﬁ”".encode())
SENTENCES = 12
LONGEST = 400


def golden_texts(pieces, examples):
    """Strings to translate, as bytes: some of real text, and what real text seldom is.

    Args:
        pieces: of the vocabulary, of which sentences are made where there are no examples.
        examples: sentences of the model's test set; may be empty.
    """
    fitting = [example for example in examples if 0 < len(example) <= LONGEST]
    words = [piece[1:] for piece in pieces if piece.startswith("▁") and piece[1:].isalpha()] or [
        "a"
    ]
    made = [
        " ".join(words[(7 * start + 3 * place) % len(words)] for place in range(start + 1))
        for start in range(SENTENCES)
    ]
    return [*(sentence.encode() for sentence in (fitting or made)[:SENTENCES]), *EDGES]


def write(path, texts, translations):
    """A JSON object a line: `text`, as TF Serving's REST takes it, {"b64": ...} where it is no
    UTF-8, and `translation`.
    """
    with open(path, "w", encoding="utf-8") as file:
        for text, translation in zip(texts, translations, strict=True):
            file.write(
                json.dumps(
                    {"text": _as_json(text), "translation": translation.decode()},
                    ensure_ascii=False,
                )
                + "\n"
            )


def _as_json(text):
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(text).decode()}
