"""A task's model as it is before training, what would be served of it, and how it is scored."""

# Evaluate's, where none is given.
NO_FLAGS = {"confidence": False, "split": "test"} | dict.fromkeys(
    ("metrics", "baseline_file", "source_file", "reference_file", "evalb_parameters")
)


def new_model(task):
    return task.module_class.build(task.description(), "float32")


def new_module(task, folder):
    """Of a task whose files lie in a run's folder."""
    folder.describe({**task.description(), "task": task.name})
    return task.module_class.of_model(new_model(task), folder, task.values)
