"""CTranslate2, translating in turns."""

import os
import pathlib

import ctranslate2
import sentencepiece

from benchmarks.turns import Clock, Parent


def main():
    parent = Parent()
    task = parent.task
    lines = pathlib.Path(task["lines"]).read_text(encoding="utf-8").splitlines()
    pieces = sentencepiece.SentencePieceProcessor(model_file=task["vocabulary"])
    cores = len(os.sched_getaffinity(0))
    at_once = cores if task["spread"] else 1
    began = Clock()
    engine = ctranslate2.Translator(task["model"], compute_type=task["precision"], inter_threads=at_once, intra_threads=cores // at_once)

    def translate(lines):
        sources = [pieces.encode(line, out_type=str) for line in lines]
        # Its penalty is another: |Y|^alpha.
        results = engine.translate_batch(
            sources, beam_size=task["beam_size"], length_penalty=0.6, max_batch_size=task["batch_size"], max_decoding_length=1024
        )
        best = [result.hypotheses[0] for result in results]
        return [pieces.decode(words) for words in best], sum(len(words) + 1 for words in best)

    translate(lines[:1])
    first = began.read()["seconds"]
    parent.say(ready=True)
    for _ in parent.orders():
        clock = Clock()
        translations, tokens = translate(lines)
        parent.say(**clock.read(), tokens=tokens, first=first, translations=translations)


if __name__ == "__main__":
    main()
