"""What config.json says of a model, whatever its family."""

from typing import Annotated, ClassVar

import msgspec

from pipelines.json_files import Schema, refuse

AGAIN = "Take the config.json that was saved with the weights, or import another model."
ANOTHER = "Import another model."
ONE_OF_SEVERAL = "single_label_classification"
MOST = 2**31 - 1
Size = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Epsilon = Annotated[float, msgspec.Meta(gt=0, le=1)]
# Notes of the packages that saved it, and what they return or how they train and compute.
NOTES = (
    *("_attn_implementation", "_name_or_path", "attn_implementation", "bos_token_id"),
    *("chunk_size_feed_forward", "dtype", "eos_token_id", "finetuning_task", "forced_bos_token_id"),
    *("gradient_checkpointing", "initializer_factor", "initializer_range", "label2id"),
    *("model_type", "output_attentions", "output_hidden_states", "output_past", "return_dict"),
    *("sep_token_id", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16"),
    *("use_cache",),
)


class Config(Schema):
    """What each family's config.json may say, besides its sizes."""

    HARMLESS = NOTES
    FIXED: ClassVar = {
        "cross_attention_hidden_size": (None,),
        "preprocessor": (),
        "pruned_heads": ({},),
        "quantization_config": (None,),
        "tie_encoder_decoder": (False,),
    }

    architectures: list[str] | None = None
    id2label: dict[str, str] | None = None
    problem_type: str | None = None

    def architecture(self, default: str) -> str:
        """The class of transformers that the model was saved from."""
        return (self.architectures or [default])[0]

    def labels(self, path: str = "config.json") -> list[str]:
        """The names of a classifier's labels in the order of its logits, two if it names none.

        Raises:
            ValueError: if they are not numbered from 0 without a gap.
        """
        names = self.id2label or {"0": "LABEL_0", "1": "LABEL_1"}
        numbers = [str(number) for number in range(len(names))]
        if gap := next((number for number in numbers if number not in names), None):
            refuse("id2label", path, f"numbered from 0, with {gap}", self.id2label, AGAIN)
        return [names[number] for number in numbers]

    def refuse_no_choice(self, architecture: str) -> None:
        """Refuse a classifier that does not choose one among several labels.

        Raises:
            ValueError: naming what it does in place of that.
        """
        problem = self.problem_type or ONE_OF_SEVERAL
        count = len(self.labels())
        if problem != ONE_OF_SEVERAL or count < 2:
            raise ValueError(
                f"a {architecture} must have problem_type={ONE_OF_SEVERAL} and at least 2 labels "
                f"in config.json, for we give each input one of them. Received: "
                f"problem_type={problem}, {count} labels. Import another model."
            )
