"""Files that are whole or not there, even if the machine stops; and words for those that are damaged all the same."""

import json
import os
import uuid

AGAIN = "Run pipelines.prepare again: it makes only what is missing."


def damaged(path, reason):
    """What is said of a file that cannot be read."""
    return f"{path} is damaged: {reason}. Delete it, and run pipelines.prepare again: it makes only what is missing."


def read_json(path):
    """The JSON object in a file, or None without such a file.

    Raises:
        ValueError: it is damaged.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(damaged(path, f"no JSON ({error})")) from error
    if not isinstance(value, dict):
        raise ValueError(damaged(path, "no JSON object"))
    return value


def write_whole(path, write):
    """Make a file that is whole or not there, even if the machine stops.

    Args:
        path: the file.
        write: writes the content to the path that it gets.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")  # A cluster may have two workers at one shard.
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path, value):
    """Write a JSON object, whole or not at all, one entry a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in value.items())
    write_whole(path, lambda temporary: temporary.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8"))
