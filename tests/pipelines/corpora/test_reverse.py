"""The toy corpus: reversed, deterministic, disjoint."""

from pipelines.corpora import Reverse, reverse


def test_sizes_reversal_disjointness_and_every_length_and_letter_in_training():
    for seed in range(3):
        corpus = Reverse(seed=seed).load()
        splits = (corpus.train, corpus.valid, corpus.test)
        assert [len(split) for split in splits] == [4000, 200, 200]
        sources = [source for split in splits for source in split.sources]
        assert len(set(sources)) == len(sources)
        for split in splits:
            for source, target in zip(split.sources, split.targets, strict=True):
                assert target.split() == source.split()[::-1]
        assert {len(source.split()) for source in corpus.train.sources} == set(range(3, 13))
        words = {word for source in corpus.train.sources for word in source.split()}
        assert words == set(reverse.WORDS)


def test_seed_decides_everything():
    assert Reverse(seed=1).load() == Reverse(seed=1).load()
    assert Reverse(seed=1).load() != Reverse(seed=2).load()
