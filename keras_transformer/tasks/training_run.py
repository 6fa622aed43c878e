"""A run from its flags to its SavedModel, whatever its task is (Vaswani et al. 2017, sections 5 and
6.1).
"""

import contextlib
import math
from collections.abc import Mapping

import keras
import tensorflow as tf

from keras_transformer.runs.exclusive import exclusive
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.fine_tuning import start_from
from keras_transformer.tasks.release import choose_weights, export_dir_of, release
from keras_transformer.tasks.resumed_flags import describe
from keras_transformer.tasks.task import Task
from keras_transformer.tasks.watchers import Watchers, cross_entropy_of, measures, window_of
from keras_transformer.training import fit, replicas
from keras_transformer.training.checkpoint import step_of
from keras_transformer.training.cost import Cost, operations_of_an_update, sustained_rate
from keras_transformer.training.ending import Preempted
from keras_transformer.training.feeding import attach
from keras_transformer.training.mixed_precision import dtype_policy, in_words
from keras_transformer.training.optimizer import averaged_weights, optimizer
from keras_transformer.training.schedule import schedule
from pipelines.batches import batching, bucketing
from pipelines.whole_files import write_json


def train(task_class: type[Task], values: Mapping) -> None:
    """Train a task, or resume where it was interrupted; then choose weights, score and export them.

    Args:
        task_class: what is learned.
        values: of all flags of the command, by name.
    """
    strategy = replicas.make_strategy(values["distribution"], values["tpu"])
    with replicas.telling_of_lost_hosts(strategy):
        TrainingRun(task_class, values, strategy).go()


class TrainingRun:
    """A run of a task, on the replicas of a strategy.

    Args:
        task_class: what is learned.
        values: of all flags of the command, by name.
        strategy: from `replicas.make_strategy`.
    """

    def __init__(self, task_class: type[Task], values: Mapping, strategy: tf.distribute.Strategy):
        # Before anything is drawn.
        keras.utils.set_random_seed(values["seed"])
        if values["report"] and keras.backend.backend() != "tensorflow":
            raise ValueError(
                "--report counts the operations of TensorFlow's graph. Received: KERAS_BACKEND="
                f"{keras.backend.backend()}. Leave one of them out."
            )
        averages = not (values["keep_best"] or values["ema"])
        if averages and values["average_checkpoints"] > values["keep_checkpoints"]:
            raise ValueError(
                f"--average_checkpoints={values['average_checkpoints']} needs as many checkpoints. "
                f"Received: --keep_checkpoints={values['keep_checkpoints']}. Keep more, or average "
                "fewer."
            )
        if values["schedule"] == "cosine" and values["max_steps"] <= values["warmup_steps"]:
            raise ValueError(
                f"--schedule=cosine needs --max_steps above --warmup_steps={values['warmup_steps']}"
                f". Received: --max_steps={values['max_steps']}. Train longer, or warm up less."
            )
        self.values = values
        self.strategy = strategy
        self.is_chief = replicas.is_chief(strategy)
        self.folder = RunFolder(values["model_dir"] or task_class.default_model_dir(values))
        self.task = task_class(values)
        self.objective = self.task.objective()
        measured = self.task.higher_is_better
        if values["keep_best"] is not None and values["keep_best"] not in measured:
            raise ValueError(
                f"--keep_best must be one of {', '.join(measured)}. Received: "
                f"{values['keep_best']}. {self.task.unmeasured}"
            )

    def go(self) -> None:
        """Train, and release what was trained."""
        # One host writes: a second process of it would delete what the first is writing.
        with exclusive(self.folder.path) if self.is_chief else contextlib.nullcontext():
            self._prepare_folder()
            task = self.task
            task.introduce()
            inference = task.model("float32")
            measure = measures(task, inference, self._validation_batches)
            model = self._train(self._batches(), measure)
            if model is not None and self.is_chief:
                self._finish(model, inference)

    def _prepare_folder(self):
        """Write what the run is, or check that it is the one that lies there."""
        task = self.task
        folder = self.folder
        if self.is_chief:
            folder.refuse_finished()
        if self.is_chief and not folder.is_started:
            folder.path.mkdir(parents=True, exist_ok=True)
            task.write_files(folder)
        replicas.wait_for_all(self.strategy)
        task.read_files(folder)
        description = task.description()
        description["training"] = {
            "batch_tokens": self.values["batch_tokens"],
            **description.get("training", {}),
            "seed": self.values["seed"],
        }
        description["task"] = task.name
        if self.is_chief and (told := describe(folder, description, self.values, task.fixed)):
            print(f"not as before: {'; '.join(told)}")

    def _batches(self):
        static = self.values["static_shapes"]
        return batching.training_batches(
            self.task.examples(),
            self.values["batch_tokens"],
            self.values["seed"],
            self.task.example_weights(),
            parts=self.strategy.num_replicas_in_sync * self.values["accumulate"],
            most_padding=bucketing.MOST_PADDING_STATIC if static else bucketing.MOST_PADDING,
            alike=static,
        )

    def _validation_batches(self):
        longest = max(self.values["batch_tokens"], self.values["max_train_length"])
        return batching.evaluation_batches(self.task.validation_examples(), longest)

    def _train(self, batches, measure):
        """Train from the newest checkpoint, from --init_from or from nothing, to the first limit
        that is met.

        Returns:
            The model; None if the machine is about to be taken away.
        """
        values = self.values
        policy = dtype_policy(values["mixed_precision"])
        model = self._compiled(policy)
        start = fit.resume(model, self.folder.checkpoints)
        if not start.step and self.is_chief:
            self.folder.begin()
        if not start.step and values["init_from"]:
            start_from(values["init_from"], self.task, model)
        elif not start.step:
            self.task.start(model)
        steps_per_epoch = batches.updates_per_epoch
        last_step = min(values["max_steps"], (values["max_epochs"] or math.inf) * steps_per_epoch)
        on_gpu = bool(tf.config.list_logical_devices("GPU"))
        arithmetic = in_words(values["mixed_precision"], policy, on_gpu)
        print(f"{model.count_params():,} parameters, {arithmetic}")
        print(batches.describe())
        if batches.parts > 1:
            count = self.strategy.num_replicas_in_sync
            print(
                f"each update in {batches.parts} batches: {count} replicas, "
                f"{values['accumulate']} of each"
            )
        going_on = f"going on from step {start.step}" if start.step else "starting"
        print(f"{going_on} in {self.folder.path}", flush=True)

        feed = attach(
            model,
            self.strategy,
            batches,
            values["accumulate"],
            values["static_shapes"],
            values["jit_compile"],
            self.objective,
        )
        watchers = Watchers(self.task, values, self.folder, feed.ending, start, last_step, measure)
        if self.is_chief and not replicas.has_hosts(self.strategy):
            watchers.catch_up(model, steps_per_epoch)
        if self.is_chief:
            watchers.mend(model, steps_per_epoch)
        try:
            if not watchers.are_over:
                fit.fit(model, feed, steps_per_epoch, last_step, watchers.of_host(self.is_chief))
        except Preempted:
            if self.is_chief:
                watchers.require_saved(model)
            print(f"SIGTERM: {watchers.what_is_saved(self.is_chief)}")
            return None
        if self.is_chief:
            watchers.require_saved(model)
            watchers.saving.keep_epoch(step_of(model), steps_per_epoch)
            watchers.saving.keep_end(step_of(model))
        if values["report"] and self.is_chief:
            self._report(model, batches, start.stopwatch.seconds)
        return model

    def _report(self, model, batches, seconds):
        """Print and write what the training cost."""
        an_update = operations_of_an_update(model, batches.arrays(), batches.parts)
        cost = Cost(
            counted=an_update * self.objective.passes * step_of(model),
            seconds=seconds,
            devices=self.strategy.num_replicas_in_sync,
            sustained=sustained_rate(model.compute_dtype),
        )
        print(cost.describe(), flush=True)
        write_json(self.folder.cost, cost.as_dict())

    def _compiled(self, policy):
        values = self.values
        with self.strategy.scope():
            model = self.task.model(policy)
            rate = schedule(
                values["schedule"],
                self.task.width,
                values["warmup_steps"],
                values["learning_rate_scale"],
                values["learning_rate"],
                values["max_steps"],
            )
            updates = optimizer(
                rate,
                values["optimizer"],
                values["weight_decay"],
                values["clip_norm"],
                values["ema"],
            )
            fit.compile_model(model, updates, self.task.loss())
        return model

    def _finish(self, model, inference):
        values = self.values
        folder = self.folder
        chosen = choose_weights(
            folder,
            values["average_checkpoints"],
            best=values["keep_best"],
            averages=averaged_weights(model) if values["ema"] else None,
            measure=window_of(values) and cross_entropy_of(inference, self._validation_batches),
        )
        if keras.backend.backend() != "tensorflow":
            print(
                f"{chosen}: {folder.averaged}. Score and export it with TensorFlow: run the same "
                "command without KERAS_BACKEND."
            )
        elif values["release"]:
            export_dir = export_dir_of(folder, values["export_dir"])
            release(self.task, folder, inference, chosen, export_dir)
        else:
            print(f"{chosen}: {folder.averaged}")
