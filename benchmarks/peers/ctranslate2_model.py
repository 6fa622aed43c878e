"""CTranslate2, translating in turns."""

import ctranslate2
import sentencepiece

from benchmarks.peers.translating import cores, serve
from benchmarks.peers.turns import Parent


def load(task):
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=task[f"{side}_vocabulary"])
        for side in ("source", "target")
    )
    at_once = cores() if task["spread"] else 1
    threads = {"inter_threads": at_once, "intra_threads": cores() // at_once}
    engine = ctranslate2.Translator(task["model"], compute_type=task["precision"], **threads)
    forced = task["forced_length"]
    search = {"max_decoding_length": 1024}
    if forced:
        # It counts a forced length in words, and ends there without EOS. PAD and BOS, which the
        # others forbid, come of random weights only.
        unwanted = [[target.id_to_piece(number)] for number in (target.pad_id(), target.bos_id())]
        search = {"min_decoding_length": forced, "max_decoding_length": forced}
        search["suppress_sequences"] = unwanted

    def translate(lines):
        sources = [source.encode(line, out_type=str) for line in lines]
        # Its penalty is another: |Y|^alpha.
        sizes = {"beam_size": task["beam_size"], "max_batch_size": task["batch_size"]}
        results = engine.translate_batch(sources, length_penalty=0.6, **sizes, **search)
        best = [result.hypotheses[0] for result in results]
        tokens = sum(len(words) + (forced is None) for words in best)
        return [target.decode(words) for words in best], tokens

    return translate


if __name__ == "__main__":
    serve(Parent(), load)
