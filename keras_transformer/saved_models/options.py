"""Options of exports."""

from pipelines.options import FREE, Options, again, option

# Precisions of SavedModels of text, and of models that run without TensorFlow.
PRECISIONS = ("float32", "bfloat16")
OF_PORTABLE = ("float32", "float16", "int8")


class ExportOptions(Options):
    """Export."""

    export_dir: str | None = option(
        None,
        "Folder of the exported versions. Default: saved_models/<name of --model_dir>.",
        path="folder",
        resumed=FREE,
    )


class Version(Options):
    """Version."""

    version: int | None = option(
        None,
        "Number of the exported version. Default: the next free one.",
        at_least=1,
        at_most=9223372036854775807,
    )


class Format(Options):
    """Format."""

    format: str = option(
        "saved_model",
        "Format of the export. onnx, litert: graphs that translate without TensorFlow, on ONNX "
        "Runtime or LiteRT. web: ONNX graphs with a page that translates in a browser. "
        "ctranslate2: for the engine of that name, which has its own search.",
        choices=("saved_model", "onnx", "litert", "web", "ctranslate2"),
    )


class Precision(Options):
    """Precision."""

    precision: str = option(
        "float32",
        "Precision of the weights. bfloat16 takes half the bytes, and is faster on processors that "
        "multiply it. float16 and int8, for export --format=onnx, web and litert, take half and a "
        "quarter of the bytes; int8 is faster.",
        choices=PRECISIONS,
    )


class ExportPrecision(Options):
    """Precision."""

    precision: str = again(
        Precision, "precision", choices=tuple(dict.fromkeys((*PRECISIONS, *OF_PORTABLE)))
    )
