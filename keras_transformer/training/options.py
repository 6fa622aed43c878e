"""Options of training. The defaults are the paper's (Vaswani et al. 2017, section 5)."""

from pipelines.options import FIXED, FREE, REPORTED, Options, option


class Seed(Options):
    """Seed."""

    seed: int = option(
        1,
        "Random seed for weights, dropout, batch order, sampling and synthetic text. Members of "
        "a mixture have seeds of their own.",
        at_least=0,
        at_most=4294967295,
    )


class Batches(Options):
    """Batches."""

    batch_tokens: int = option(
        25000,
        "Tokens in one update, over all replicas and accumulated batches, without padding: the "
        "mean of source and target tokens, so that 512 may be 468 source and 551 target tokens.",
        at_least=1,
    )
    accumulate: int = option(
        1,
        "Number of batches in which each replica computes its share of an update. More need "
        "less memory.",
        at_least=1,
        resumed=REPORTED,
        on_tensorflow=True,
    )
    static_shapes: bool = option(
        False,
        "Pad batches to few shapes, and compile a graph for each, as TPUs and XLA need it.",
        resumed=FIXED,
    )
    jit_compile: bool = option(
        False,
        "Compile the forward and the backward pass by XLA. This is slower on a CPU.",
        resumed=REPORTED,
    )
    distribution: str = option(
        "one",
        "Replicas to train on: one device, all GPUs of this machine, several machines, or a TPU.",
        choices=("one", "mirrored", "multi_worker", "tpu"),
        resumed=REPORTED,
        on_tensorflow=True,
    )
    tpu: str = option(
        "",
        "Name or address of the TPU, for --distribution=tpu.",
        resumed=FREE,
        only={"distribution": ("tpu",)},
    )


class ObjectiveOptions(Options):
    """Objective."""

    r_drop: float = option(
        0.0,
        "Weight alpha of R-Drop, which computes each batch twice with different dropout and trains "
        "the results to agree; 0: no R-Drop. Its authors take 5. A step takes twice the time.",
        at_least=0,
        resumed=REPORTED,
        on_tensorflow=True,
    )


class OptimizerOptions(Options):
    """Optimizer."""

    resumed = REPORTED

    schedule: str = option(
        "transformer",
        "Learning rate after the warm-up. transformer: the paper's, section 5.3. constant: "
        "stays. cosine: falls to 0 at --max_steps.",
        choices=("transformer", "cosine", "constant"),
    )
    warmup_steps: int = option(4000, "Steps until the learning rate peaks.", at_least=1)
    learning_rate_scale: float = option(
        1.0,
        "Factor that multiplies the paper's learning rate; it has no effect if --learning_rate "
        "is given.",
        at_least=1e-09,
    )
    learning_rate: float | None = option(
        None,
        "Peak of the learning rate, for --schedule=cosine and constant. Default: the peak of "
        "the paper's schedule.",
        at_least=1e-09,
        only={"schedule": ("cosine", "constant")},
    )
    optimizer: str = option(
        "adam",
        "Optimizer. adam is the paper's; adamw is Adam with decoupled weight decay; muon makes "
        "the updates of matrices orthogonal; adafactor needs half of Adam's memory for its state.",
        choices=("adam", "adamw", "muon", "adafactor"),
        resumed=FIXED,
    )
    weight_decay: float = option(
        0.0,
        "Weight decay of the matrices, for any --optimizer but adam. adamw needs it.",
        at_least=0,
    )
    clip_norm: float | None = option(
        None, "Largest global norm of the gradients. Default: no clipping.", at_least=1e-09
    )
    ema: float | None = option(
        None,
        "Momentum of a moving average of the weights, such as 0.999. If it is given, the average "
        "is scored and exported.",
        at_least=1e-09,
        at_most=0.999999999,
        resumed=FIXED,
    )


class Averaging(Options):
    """Average."""

    average_checkpoints: int = option(
        5,
        "Number of last checkpoints to average. With --max_minutes, training averages this many or "
        "fewer: the number with the lowest validation cross-entropy, which it prints.",
        at_least=1,
        resumed=REPORTED,
    )


class Course(Options):
    """Course of the run."""

    resumed = FREE

    max_steps: int = option(
        100000, "Stop after this many steps, if no other limit comes first.", at_least=1
    )
    max_epochs: int | None = option(
        None, "Stop after this many epochs, if no other limit comes first.", at_least=1
    )
    max_minutes: float | None = option(
        None, "Stop training after this many minutes, if no other limit comes first.", at_least=1e-9
    )
    patience: int | None = option(
        None,
        "Stop when the measure of --keep_best, by default the cross-entropy, has not improved for "
        "this many epochs.",
        at_least=1,
    )
    keep_best: str | None = option(
        None,
        "Score and export the best epoch by this measure, instead of an average of checkpoints: "
        "cross_entropy; for translation also bleu, for parsing f1, for other tasks accuracy.",
        resumed=REPORTED,
    )
    checkpoint_minutes: float = option(
        10.0,
        "Minutes between two checkpoints to resume from. Each epoch's end is saved as well.",
        at_least=0,
        resumed=REPORTED,
    )
    average_over: str = option(
        "minutes",
        "Checkpoints to average: those written every --checkpoint_minutes, as in the paper "
        "(with --max_minutes those of --average_share), or those written at the ends of epochs.",
        choices=("minutes", "epochs"),
        resumed=REPORTED,
    )
    average_share: float = option(
        0.2,
        "With --max_minutes and --average_over=minutes: the last share of the run, in which the "
        "checkpoints to average are written, evenly in time. The final weights are one of them.",
        at_least=1e-06,
        at_most=1,
        resumed=REPORTED,
    )
    keep_checkpoints: int = option(
        10,
        "Number of last checkpoints to keep, of those that --average_over names.",
        at_least=1,
        resumed=REPORTED,
    )
    mixed_precision: str = option(
        "auto",
        "Precision to compute in while training. auto: bfloat16 if the GPU or, without one, the "
        "processor is fast at it.",
        choices=("auto", "float32", "bfloat16"),
        resumed=REPORTED,
    )
    release: bool = option(
        True,
        "Score the test split and export the model at the end. With --norelease, `evaluate` and "
        "`export` can do both later.",
    )
    export_formats: tuple[str, ...] = option(
        ("saved_model",),
        "Formats that --release exports, joined by commas.",
        choices=("saved_model", "onnx", "litert"),
        at_least=1,
    )
    report: bool = option(
        False,
        "Count the floating-point operations of the training, also estimate them from its time "
        "as the paper does, print both numbers, and write them to the run's cost.json.",
        on_tensorflow=True,
    )


class RunOptions(Options):
    """Run."""

    model_dir: str | None = option(
        None,
        "Folder of the run. Default for training a translator: runs/<corpus>_<source>_<target>; "
        "other tasks print theirs at the start.",
        path="folder",
        resumed=FREE,
    )
