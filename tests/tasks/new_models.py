"""A task's model as it is before training, and what would be served of it."""


def new_model(task):
    return task.module_class.build(task.description(), "float32")


def new_module(task, folder):
    """Of a task whose files lie in a run's folder."""
    folder.describe({**task.description(), "task": task.name})
    return task.module_class.of_model(new_model(task), folder, task.values)
