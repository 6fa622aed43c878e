"""Flags of the options that dataclasses declare: see `pipelines.options`."""

from collections.abc import Iterable

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_folder, DEFINE_path
from pipelines.options import Declared, Options, settings

DEFINE = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
    list: flags.DEFINE_list,
}


def flag_values(*kinds: type[Options]) -> flags.FlagValues:
    """The flags of some sections. What two of them declare alike is one flag."""
    values = flags.FlagValues()
    for kind in kinds:
        define(settings(kind).values(), values)
    return values


def define(options: Iterable[Declared], values: flags.FlagValues) -> None:
    """Add the flags of some options, except those that are there."""
    for one in options:
        if one.name not in values:
            _define(one, values)


def _define(one, values):
    setting = one.setting
    default = None if setting.is_unset else one.default
    if one.type is list and default is not None:
        default = list(default)
    if setting.path:
        add = DEFINE_folder if setting.path == "folder" else DEFINE_path
        add(one.name, default, setting.help, values)
    elif setting.choices is not None:
        flags.DEFINE_enum(one.name, default, list(setting.choices), setting.help, values)
    elif one.type in (int, float):
        bounds = (setting.at_least, setting.at_most)
        DEFINE[one.type](one.name, default, setting.help, *bounds, flag_values=values)
    else:
        DEFINE[one.type](one.name, default, setting.help, flag_values=values)
