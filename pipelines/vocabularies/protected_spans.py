"""Which spans of a sentence must not be translated: placeholders, tags, links, numbers. Each
becomes a mark, one piece of the vocabulary with its number within the sentence, and is put back
verbatim: see `span_marks`.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from pipelines.json_files import read_object
from pipelines.options import FIXED, Options, option
from pipelines.whole_files import write_json

FILE = "protected_spans.json"
MOST = 32
MARKS = tuple(f"⟦{number + 1}⟧" for number in range(MOST))
# What somebody protects in a text of their own; what would part lines of files.
BY_HAND = "⟦[^⟧]*⟧"
ALWAYS = (BY_HAND, r"[\n\t]+")
# Up to three levels of braces, as those of ICU's plural forms; RE2 has no recursion.
BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
# Regular expressions of RE2 by the names of kinds, in the order in which they are tried.
KINDS = {
    "urls": (r"\]\([^()\s]+\)", r"(?:https?://|www\.)[^\s<>\"`{}]*[^\s<>\"`{}.,;:!?)\]'*]"),
    "emails": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",),
    "tags": (r"</?[A-Za-z][^<>]*>", r"<!--[^<>]*-->", r"&(?:#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z]+);"),
    "placeholders": (
        "`[^`]+`",
        r"\[%[^%\]]*%\]",
        r"\$t\([^()]*\)",
        r"\$?" + BRACES,
        r"%(?:[0-9]+\$)?[-+#0]*[0-9]*(?:\.[0-9]+)?l{0,2}[sdiufFeEgGxXcr@]\b",
        r"%@",
        r"%\([^()\s]*\)[-+#0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]",
    ),
    "numbers": (
        r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z?)?\b",
        r"\b[0-9]+(?:\.[0-9]+){2,}\b",
        r"\b[0-9]{4,}\b",
    ),
}


AGAIN = "Copy the file again from where the model was trained."


@dataclasses.dataclass(frozen=True)
class ProtectedSpans(Options):
    """Protected spans.

    Raises:
        ValueError: an unknown kind.
    """

    protect: tuple[str, ...] = option(
        (),
        "What is put back as it stands instead of being translated: some of "
        f"{', '.join(KINDS)}, joined by commas. Pairs whose sides differ in it are left out. "
        "Default: nothing.",
        resumed=FIXED,
    )
    protect_pattern: str = option(
        "",
        "Regular expression of RE2 for more that is put back as it stands. Default: none.",
        resumed=FIXED,
    )

    def __post_init__(self):
        object.__setattr__(self, "protect", tuple(self.protect))
        super().__post_init__()
        if unknown := [kind for kind in self.protect if kind not in KINDS]:
            raise ValueError(
                f"`protect` must be some of {', '.join(KINDS)}. Received: {', '.join(unknown)}."
            )

    @property
    def are_any(self) -> bool:
        """Whether anything is protected."""
        return bool(self.protect or self.protect_pattern)

    @property
    def expression(self) -> str:
        """The regular expression of all spans."""
        own = [f"(?:{self.protect_pattern})"] if self.protect_pattern else []
        kinds = [one for kind, found in KINDS.items() if kind in self.protect for one in found]
        return "|".join([*own, *ALWAYS, *kinds])

    def save(self, folder: pathlib.Path) -> None:
        """Write a file beside those of a vocabulary."""
        write_json(folder / FILE, dataclasses.asdict(self))

    @classmethod
    def in_description(cls, description: Mapping[str, Any]) -> "ProtectedSpans | None":
        """What a run's description says; None if it protects nothing."""
        said = description.get("protected")
        return cls.of(said) if said else None

    @classmethod
    def load(cls, folder: pathlib.Path) -> "ProtectedSpans | None":
        """Read what `save` wrote; None if there is nothing."""
        path = folder / FILE
        if not path.exists():
            return None
        said = read_object(path, AGAIN)
        try:
            return cls(**said)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error} {AGAIN}") from error
