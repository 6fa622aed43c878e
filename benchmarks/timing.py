"""Times of functions that are compared in one process."""

import statistics
import time
from collections.abc import Callable, Mapping

import tensorflow as tf


def medians(functions: Mapping[str, Callable], rounds: int, least: float = 0.0) -> dict[str, float]:
    """Median seconds of a call. The functions take turns, and each is called once before.

    Args:
        functions: without arguments, by name; each gives a tensor or several.
        rounds: how often each has its turn.
        least: seconds that a turn lasts at least; its calls are averaged.
    """
    for function in functions.values():
        _fetch(function)
    seconds = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            seconds[name].append(_mean_of_a_turn(function, least))
    return {name: statistics.median(times) for name, times in seconds.items()}


def _mean_of_a_turn(function, least):
    calls = 0
    began = time.perf_counter()
    while not calls or time.perf_counter() - began < least:
        _fetch(function)
        calls += 1
    return (time.perf_counter() - began) / calls


def _fetch(function):
    """One result is fetched, so that a device has finished."""
    tf.nest.flatten(function())[0].numpy()
