"""Every language of the default corpus can be trained on, and its references score 100."""

import pytest
from home_assistant_wheel import cached_wheel, languages_of

from benchmarks.limits.every_language import row

# Trained as well: of few pairs, of many characters, and without spaces.
TRAINED = ("ar", "es-419", "ja", "zh-Hans")


@pytest.mark.slow
def test_every_language_holds_a_vocabulary_and_a_perfect_translation_scores_100():
    for language in languages_of(cached_wheel()):
        told, is_well = row(language, 20 if language in TRAINED else 0)
        assert is_well, told
