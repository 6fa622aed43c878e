"""Flags of training. The defaults are the paper's (Vaswani et al. 2017, section 5)."""

from absl import flags

SEED = flags.FlagValues()
flags.DEFINE_integer(
    "seed",
    1,
    "Random seed for weights, dropout, batch order, sampling and synthetic text. Members of a "
    "mixture have seeds of their own.",
    0,
    2**32 - 1,
    flag_values=SEED,
)

BATCHES = flags.FlagValues()
flags.DEFINE_integer(
    "batch_tokens",
    25000,
    "Tokens in one update, over all replicas and accumulated batches, without padding: the mean of "
    "source and target tokens, so that 512 may be 468 source and 551 target tokens.",
    1,
    flag_values=BATCHES,
)
flags.DEFINE_integer(
    "max_train_length",
    256,
    "Number of pieces in the longest text to train on. Longer pairs are dropped; texts of one "
    "language are cut.",
    2,
    flag_values=BATCHES,
)
flags.DEFINE_integer(
    "accumulate",
    1,
    "Number of batches in which each replica computes its share of an update. More need less "
    "memory.",
    1,
    flag_values=BATCHES,
)
flags.DEFINE_bool(
    "static_shapes",
    False,
    "Pad batches to few shapes, and compile a graph for each, as TPUs and XLA need it.",
    BATCHES,
)
flags.DEFINE_bool(
    "jit_compile",
    False,
    "Compile the forward and the backward pass by XLA. This is slower on a CPU.",
    BATCHES,
)
flags.DEFINE_enum(
    "distribution",
    "one",
    ["one", "mirrored", "multi_worker", "tpu"],
    "Replicas to train on: one device, all GPUs of this machine, several machines, or a TPU.",
    BATCHES,
)
flags.DEFINE_string("tpu", "", "Name or address of the TPU, for --distribution=tpu.", BATCHES)

OBJECTIVE = flags.FlagValues()
flags.DEFINE_float(
    "r_drop",
    0.0,
    "Weight alpha of R-Drop, which computes each batch twice with different dropout and trains the "
    "results to agree; 0: once. Its authors take 5. A step takes twice the time.",
    0,
    flag_values=OBJECTIVE,
)

SAMPLING = flags.FlagValues()
flags.DEFINE_float(
    "bpe_dropout",
    0.0,
    "Probability that a merge of two pieces is left out when a sentence is trained on, so that it "
    "is cut into other pieces each time; 0: never. Its authors take 0.1.",
    0,
    0.99,
    flag_values=SAMPLING,
)
flags.DEFINE_float(
    "subword_regularization",
    0.0,
    "Power alpha of the probabilities by which a sentence's pieces are drawn each time it is "
    "trained on, with --vocabulary_model=unigram; 0: the likeliest pieces are always taken. Its "
    "author takes 0.1 to 0.5.",
    0,
    100,
    flag_values=SAMPLING,
)
flags.DEFINE_float(
    "scheduled_sampling",
    0.0,
    "Final probability that the decoder reads the model's own prediction in place of a target "
    "token; 0: never.",
    0,
    0.99,
    flag_values=SAMPLING,
)
flags.DEFINE_integer(
    "scheduled_sampling_steps",
    10000,
    "Steps in which the probability of --scheduled_sampling rises from 0.",
    1,
    flag_values=SAMPLING,
)

START = flags.FlagValues()
flags.DEFINE_enum(
    "embedding_initialization",
    "drawn",
    ["drawn", "cooccurrence"],
    "How the table of embeddings starts. drawn: at random. cooccurrence: pieces that occur in the "
    "same pairs get similar embeddings, which saves about an epoch of a short run.",
    START,
)

OPTIMIZER = flags.FlagValues()
flags.DEFINE_enum(
    "schedule",
    "transformer",
    ["transformer", "cosine", "constant"],
    "Learning rate after the warm-up. transformer: the paper's, section 5.3. constant: stays. "
    "cosine: falls to 0 at --max_steps.",
    OPTIMIZER,
)
flags.DEFINE_integer(
    "warmup_steps", 4000, "Steps until the learning rate peaks.", 1, flag_values=OPTIMIZER
)
flags.DEFINE_float(
    "learning_rate_scale",
    1.0,
    "Factor that multiplies the paper's learning rate; it has no effect if --learning_rate is "
    "given.",
    1e-9,
    flag_values=OPTIMIZER,
)
flags.DEFINE_float(
    "learning_rate",
    None,
    "Peak of the learning rate, for --schedule=cosine and constant. Default: the peak of the "
    "paper's schedule.",
    1e-9,
    flag_values=OPTIMIZER,
)
flags.DEFINE_enum(
    "optimizer",
    "adam",
    ["adam", "adamw", "muon", "adafactor"],
    "Optimizer. adam is the paper's; adamw is Adam with decoupled weight decay; muon makes the "
    "updates of matrices orthogonal; adafactor needs half of Adam's memory for its state.",
    OPTIMIZER,
)
flags.DEFINE_float(
    "weight_decay",
    0.0,
    "Weight decay of the matrices, for any --optimizer but adam. adamw needs it.",
    0,
    flag_values=OPTIMIZER,
)
flags.DEFINE_float(
    "clip_norm",
    None,
    "Largest global norm of the gradients. Default: no clipping.",
    1e-9,
    flag_values=OPTIMIZER,
)
flags.DEFINE_float(
    "ema",
    None,
    "Momentum of a moving average of the weights, which is scored and exported if this is given, "
    "such as 0.999.",
    1e-9,
    1 - 1e-9,
    flag_values=OPTIMIZER,
)

AVERAGING = flags.FlagValues()
flags.DEFINE_integer(
    "average_checkpoints",
    5,
    "Number of last checkpoints to average; with --max_minutes training averages at most as many. "
    "What is averaged is printed.",
    1,
    flag_values=AVERAGING,
)
