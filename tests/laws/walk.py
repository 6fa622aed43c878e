"""Follow a pair of sentences through the code: train toy.flags in a folder, to the first gradient,
and print each first call of one of our functions as JSON, [[file, function], ...].
"""

import json
import pathlib
import runpy
import sys
import threading

ROOT = pathlib.Path(__file__).parents[2]
OURS = tuple(f"{ROOT / package}/" for package in ("keras_transformer", "pipelines"))


class Arrived(Exception):
    """Raised at the first gradient."""


def main():
    calls = {}

    def follow(frame, event, argument):
        name = frame.f_code.co_filename
        function = frame.f_code.co_qualname.replace("<locals>.", "")
        # What classes and modules do when they are imported is no part of the walk.
        if event == "call" and name.startswith(OURS) and function != "<module>":
            calls.setdefault((name[len(str(ROOT)) + 1 :], function))

    def arrive(*arguments, **named):
        raise Arrived

    import tensorflow as tf

    tf.GradientTape.gradient = arrive
    further = ["--max_steps=2", f"--model_dir={sys.argv[1]}/run", "--mixed_precision=float32"]
    sys.argv = ["train", "--flagfile=toy.flags", *further, "--norelease"]
    threading.setprofile(follow)
    sys.setprofile(follow)
    try:
        runpy.run_module("keras_transformer.train", run_name="__main__")
    except Arrived:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print(json.dumps(list(calls)))


if __name__ == "__main__":
    main()
