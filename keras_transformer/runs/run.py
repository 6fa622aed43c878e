"""A run of a task, from options to an export (Vaswani et al. 2017, sections 5 and 6.1)."""

import contextlib
import functools
import math
import pathlib
import shlex
from collections.abc import Mapping, Sequence

import keras

from keras_transformer.models.learned_part import choose_learned, parameters_in_words
from keras_transformer.runs.folder import RunFolder, exclusive
from keras_transformer.runs.initialization import start_from
from keras_transformer.training import fit, replicas
from keras_transformer.training.averaging import choose_weights, cross_entropy_of
from keras_transformer.training.checkpoint import LOW_RANK, merged, step_of
from keras_transformer.training.ending import Preempted, Stopwatch
from keras_transformer.training.optimizer import averaged_weights, optimizer, schedule
from keras_transformer.training.watchers import Watchers, window_of
from pipelines.batches import batching, bucketing
from pipelines.options import FIXED, REPORTED, Sections, active, places, recipe
from pipelines.whole_files import as_read, write_json, write_text

# Fixed options that 0.6 had and did not write: their values in such a run are unknown.
OF_0_6 = ("optimizer", "ema", "static_shapes", "vocabulary_model")


class Run:
    """A run of a `Task`, on the replicas of a strategy. `values` are those of all flags of the
    command, by name; `sections` are the options of any task's training.
    """

    def __init__(self, task_class, values: Mapping, sections: Sections):
        self.sections = (*task_class.options, *sections)
        _refuse_together(values, self.sections)
        self.strategy = replicas.make_strategy(values["distribution"], values["tpu"])
        self.is_chief = replicas.is_chief(self.strategy)
        # Before any weight is drawn.
        keras.utils.set_random_seed(values["seed"])
        self.values = values
        self.folder = RunFolder(values["model_dir"] or task_class.default_model_dir(values))
        self.task = task_class(values)
        self.objective = self.task.objective()
        # Here, where wrong flags are refused before any text is read.
        peak = (values["warmup_steps"], values["learning_rate_scale"], values["learning_rate"])
        rate = schedule(values["schedule"], self.task.width, *peak, values["max_steps"])
        further = (values["weight_decay"], values["clip_norm"], values["ema"])
        with self.strategy.scope():
            self._optimizer = optimizer(rate, values["optimizer"], *further)
        compiled = keras.backend.backend() != "tensorflow"
        self._padding = bucketing.MOST_PADDING_COMPILED if compiled else bucketing.MOST_PADDING
        measured = self.task.higher_is_better
        if values["keep_best"] is not None and values["keep_best"] not in measured:
            raise ValueError(
                f"--keep_best must be one of {', '.join(measured)}. Received: "
                f"{values['keep_best']}. {self.task.unmeasured}"
            )

    def train(self) -> None:
        """Train, or resume where it was interrupted; then choose weights, score and export them."""
        # Only the host that writes locks the folder, against a second process that writes there.
        lock = exclusive(self.folder.path) if self.is_chief else contextlib.nullcontext()
        with replicas.telling_of_lost_hosts(self.strategy), lock:
            self._prepare_folder()
            inference = self._new_model("float32")
            for form in self.task.portable:
                self.task.refuse_format(form, inference, self.folder)
            model = self._compiled()  # It refuses names that are no layers: before tokenizing.
            self.task.introduce()
            batches = self._batches()
            epochs = self.values["max_epochs"] or math.inf
            last_step = min(self.values["max_steps"], epochs * batches.updates_per_epoch)
            if self._train(model, batches, last_step, inference) and self.is_chief:
                self._finish(model, inference, is_cut=step_of(model) < last_step)

    def _prepare_folder(self):
        """Write the description of the run, or check that the folder has the same run."""
        folder = self.folder
        if self.is_chief:
            folder.refuse_finished()
        if self.is_chief and not folder.is_started:
            self.task.write_files(folder)
        replicas.wait_for_all(self.strategy)
        self.task.read_files(folder)
        if self.is_chief and (changes := describe(folder, self.task, self.values, self.sections)):
            anew = "" if folder.is_started else ". No checkpoint was written: training begins anew"
            print(f"changed: {'; '.join(changes)}{anew}")

    def _batches(self):
        static = self.values["static_shapes"]
        return batching.training_batches(
            self.task.examples("train"),
            self.values["batch_tokens"],
            self.values["seed"],
            self.task.example_weights(),
            parts=self.strategy.num_replicas_in_sync * self.values["accumulate"],
            most_padding=max(self._padding, bucketing.MOST_PADDING_STATIC * static),
            alike=static,
        )

    @functools.cached_property
    def _validation_batches(self):
        longest = max(self.values["batch_tokens"], self.values.get("max_train_length", 0))
        return batching.evaluation_batches(self.task.examples("valid"), longest, self._padding)

    def _train(self, model, batches, last_step, inference):
        """Train from the newest checkpoint, from --init_from or from random weights, to the first
        limit that is met. Return False if the machine is about to be taken away.
        """
        values = self.values
        validate = self.task.validation(inference, lambda: self._validation_batches)

        def measure(model):
            inference.set_weights([*merged(averaged_weights(model)).values()])
            return validate()

        step, seconds = fit.resume(model, self.folder.checkpoints)
        replicas.wait_for_all(self.strategy, step)
        stopwatch = Stopwatch(seconds)
        if not step and self.is_chief:
            self.folder.begin()
        if not step and values["init_from"]:
            start_from(values["init_from"], self.task, model, values["adapter"])
        elif not step:
            self.task.start(model)
        steps_per_epoch = batches.updates_per_epoch
        self._introduce(model, batches, step)
        feeding = {name: values[name] for name in ("accumulate", "static_shapes", "jit_compile")}
        feed = fit.attach(model, self.strategy, batches, **feeding, objective=self.objective)
        of_run = (self.task, values, self.folder, self.is_chief)
        watchers = Watchers(*of_run, feed.ending, step, stopwatch, last_step, measure)
        if self.is_chief and not replicas.has_hosts(self.strategy):
            watchers.catch_up(model, steps_per_epoch)
        if self.is_chief and step:
            watchers.mend(model, steps_per_epoch)
        if watchers.are_over or step >= last_step:
            print("nothing is left to train. Raise --max_steps or other limits to train longer")
        try:
            if not watchers.are_over:
                fit.fit(model, feed, steps_per_epoch, last_step, watchers.callbacks)
        except Preempted:
            if self.is_chief:
                watchers.require_saved(model)
            print(f"SIGTERM: {watchers.what_is_saved()}")
            return False
        if self.is_chief:
            watchers.require_saved(model)
            watchers.saving.keep_epoch(step_of(model), steps_per_epoch)
            watchers.saving.keep_end(step_of(model))
        if values["report"] and self.is_chief:
            self._report(model, batches, stopwatch.seconds)
        return True

    def _new_model(self, dtype):
        return self.task.module_class.build(self.task.description(), dtype)

    def _compiled(self):
        with self.strategy.scope():
            model = self._new_model(fit.dtype_policy(self.values["mixed_precision"]))
            choose_learned(model, self.values, LOW_RANK, self.task.carried_over)
            fit.compile_model(model, self._optimizer, self.task.loss())
        return model

    def _introduce(self, model, batches, step):
        policy = fit.dtype_policy(self.values["mixed_precision"])
        sizes = (self.values["batch_tokens"], batches.parts, model.outputs[0].shape[-1])
        arithmetic = fit.in_words(self.values["mixed_precision"], policy, *sizes)
        print(f"{parameters_in_words(model)}, {arithmetic}")
        print(batches.describe())
        if batches.parts > 1:
            count = self.strategy.num_replicas_in_sync
            print(
                f"each update in {batches.parts} batches: {count} replicas, "
                f"{self.values['accumulate']} of each"
            )
        begins = f"going on from step {step}" if step else "starting"
        print(f"{begins} in {self.folder.path}", flush=True)

    def _report(self, model, batches, seconds):
        from keras_transformer.training.cost import Cost, operations_of_an_update, sustained_rate

        an_update = operations_of_an_update(model, batches.arrays(), batches.parts)
        cost = Cost(
            counted=an_update * self.objective.passes * step_of(model),
            seconds=seconds,
            devices=self.strategy.num_replicas_in_sync,
            sustained=sustained_rate(model.compute_dtype),
        )
        print(cost.describe(), flush=True)
        write_json(self.folder.cost, cost.as_dict())

    def _finish(self, model, inference, is_cut):
        values = self.values
        # How far a run of minutes comes depends on the machine, and so does what its mean covers.
        depends = window_of(values) or (values["max_minutes"] and is_cut)
        chosen = choose_weights(
            self.folder,
            values["average_checkpoints"],
            best=values["keep_best"],
            averages=averaged_weights(model) if values["ema"] else None,
            measure=depends and cross_entropy_of(inference, lambda: self._validation_batches),
        )
        if keras.backend.backend() != "tensorflow":
            print(
                f"{chosen}: {self.folder.averaged}. Score and export it with TensorFlow: run the "
                "same command without KERAS_BACKEND."
            )
        elif values["release"]:
            self._release(inference, chosen)
        else:
            print(f"{chosen}: {self.folder.averaged}")

    def _release(self, model, chosen):
        folder = self.folder
        folder.load_weights(model, folder.averaged)
        module = self.task.module_class.of_model(model, folder, self.values)
        score = self.task.score(module)
        write_json(folder.evaluation, {"split": "test", **score.numbers, "weights": chosen})
        print("\n".join([f"{chosen}, {score.report[0]}", *score.report[1:]]))
        write_json(folder.examples, score.samples)
        whole = {**folder.read_description(), **folder.read_scores()}
        path = str(folder.export_dir(self.values["export_dir"]))
        for kind in self.values["export_formats"]:
            place = path if kind == "saved_model" else f"{path}_{kind}"
            version = self.task.write(kind, module, place, whole, folder.read_examples())
            print(f"\n{exported(self.task.trial, score.samples, version)}")


def exported(trial: str, samples: Sequence, version: pathlib.Path) -> str:
    """Return the message for an exported version, with a command to try it on a sample."""
    quoted = str(samples[0]).replace("'", "'\\''") if samples else ""
    path, folder = (shlex.quote(str(place)) for place in (version, version.parent))
    line = trial.format(sample=f"'{quoted}'", version=path, versions=folder)
    return f"exported to {version}." + (f" Try it:\n  {line}" if trial and samples else "")


def _refuse_together(values, sections):
    if (backend := keras.backend.backend()) != "tensorflow":
        for name, option in active(sections, values).items():
            if option.setting.on_tensorflow and values[name] not in (option.default, []):
                received = f"Received: KERAS_BACKEND={backend}"
                raise ValueError(f"--{name} is for TensorFlow. {received}. Leave one of them out.")
    if values["adapter"] and not values["init_from"]:
        raise ValueError("--adapter needs the model that it is added to. Pass it by --init_from.")
    if values["lora_rank"] and (values["freeze"] or not values["init_from"]):
        raise ValueError("--lora_rank adapts the model of --init_from. Pass it, and no --freeze.")
    if values["distribution"] == "tpu" and not values["static_shapes"]:
        raise ValueError("--distribution=tpu needs batches of few shapes. Pass --static_shapes.")
    count, most = (values[name] for name in ("average_checkpoints", "keep_checkpoints"))
    if count > most and not (values["keep_best"] or values["ema"]):
        raise ValueError(
            f"--average_checkpoints={count} needs as many checkpoints. Received: "
            f"--keep_checkpoints={most}. Keep more, or average fewer."
        )


def describe(folder, task, values: Mapping, sections: Sections) -> list[str]:
    """Write the description of a run, and its options of some sections, in its `RunFolder`. Return
    the changes since it was last written, in words. With checkpoints, the `resumed` of each option
    says whether a change is refused, returned or ignored; without any, none is refused.
    """
    declared = {place.option.name: place.option for place in places(sections)}
    resumed = {name: option.setting.resumed for name, option in declared.items()}
    description = task.description()
    training = {"batch_tokens": values["batch_tokens"], **description.get("training", {})}
    description["training"] = {**training, "seed": values["seed"]}
    description["task"] = task.name
    settings = {name: value for name, value in values.items() if resumed.get(name) == REPORTED}
    if values["schedule"] == "cosine":
        # The cosine ends there.
        settings["max_steps"] = values["max_steps"]
    settings |= task.reported()
    fixed_values = {name: value for name, value in values.items() if resumed.get(name) == FIXED}
    if origin := fixed_values.get("vocabulary_from"):
        fixed_values["vocabulary_from"] = str(pathlib.Path(origin).resolve())
    # An option that an earlier version did not write had its default.
    defaults = {name: declared[name].default for name in fixed_values if name not in OF_0_6}
    unwritten = as_read({**fixed_values, **defaults})
    now = as_read({**description, "asked": fixed_values, "settings": settings})
    was = folder.read_description().get("settings", {}) if folder.description.exists() else {}

    def fixed(whole):
        parts = {name: part for name, part in task.fixed(whole).items() if name != "settings"}
        return {**parts, "asked": {**unwritten, **whole.get("asked", {})}}

    changes = folder.describe(now, fixed)
    write_text(folder.path / "recipe.flags", f"--task={task.name}\n{recipe(sections, values)}")
    return changes + [
        f"{name} was {_in_words(was[name])}, now {_in_words(value)}"
        for name, value in now["settings"].items()
        if name in was and was[name] != value
    ]


def _in_words(value):
    return "not given" if value is None else value
