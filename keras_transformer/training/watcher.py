"""Callbacks, in the order that they need (they watch over section 5 of Vaswani et al. 2017)."""

from collections.abc import Sequence

import keras


class Watcher(keras.callbacks.Callback):
    """A callback that knows which others must be called before it.

    Attributes:
        BEHIND: classes of the callbacks that `in_order` puts before it.
    """

    BEHIND = ()


def in_order(watchers: Sequence[keras.callbacks.Callback]) -> list[keras.callbacks.Callback]:
    """Sort callbacks, so that each comes after those it names in `BEHIND`.

    Args:
        watchers: `Watcher`s, and Keras' own callbacks, which read what all others report and so
            come last.

    Returns:
        The same; those that nothing orders keep their places.
    """
    ours = [watcher for watcher in watchers if isinstance(watcher, Watcher)]
    theirs = [watcher for watcher in watchers if not isinstance(watcher, Watcher)]
    ordered = []
    while ours:
        ready = next(
            one for one in ours if not any(isinstance(other, one.BEHIND) for other in ours)
        )
        ours.remove(ready)
        ordered.append(ready)
    return [*ordered, *theirs]
