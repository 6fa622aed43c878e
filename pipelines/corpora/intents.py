"""Commands that people give their home, and their intents: templates of the PyPI package
`home-assistant-intents` (Apache-2.0), read by `hassil` and expanded at random.

The source of a pair is a sentence. Its target is the name of the intent, or one slot tag a word:
"B-area" where the name of an area begins, "I-area" where it continues, else "O" (Ramshaw and Marcus
1995, "Text Chunking using Transformation-Based Learning"). Each template is in a single split, so
that a model is measured on ways to ask that it never saw.
"""

import collections
import dataclasses
import hashlib
import itertools
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines import needing
from pipelines.corpora.options import Target
from pipelines.corpora.parallel_text import Corpus, ParallelText

LANGUAGE = "en"
INTENT = "intent"
SLOTS = "slots"
# Marks of a slot in an expanded template: before its name, before its value, after its value.
MARKS = ("\ue000", "\ue001", "\ue002")
# Most sentences of a template, and the number of attempts to draw them.
SENTENCES = 12
ATTEMPTS = 40
# Values for the slots that templates leave open: rooms, devices, messages, shopping.
ROOMS = (
    *("attic", "balcony", "basement", "bathroom", "bedroom", "cellar", "dining room", "driveway"),
    *("garage", "garden", "guest room", "hallway", "kids room", "kitchen", "laundry room"),
    *("library", "living room", "lobby", "nursery", "office", "pantry", "porch", "studio"),
    *("terrace", "workshop"),
)
FLOORS = ("first", "second", "third", "ground", "upper", "lower", "top", "main")
# Devices by Home Assistant's domains.
DEVICES = {
    "light": ("desk lamp", "ceiling light", "bedside lamp", "chandelier", "fairy lights"),
    "cover": ("garage door", "roller shutter", "left curtain", "awning", "bay window blind"),
    "fan": ("ceiling fan", "tower fan", "extractor fan"),
    "lock": ("front door", "back gate", "patio lock"),
    "media_player": ("soundbar", "kitchen speaker", "television", "record player"),
    "climate": ("thermostat", "heat pump", "air conditioner"),
    "vacuum": ("robot vacuum", "dusty", "hall cleaner"),
    "lawn_mower": ("lawn mower", "grass cutter"),
    "todo": ("weekend list", "chores", "packing list", "project list"),
    "person": ("Anna", "Peter", "Maria", "Tom"),
    "scene": ("movie night", "romantic dinner", "wake up"),
    "script": ("party time", "good night routine", "leave home"),
    "weather": ("weather station", "Berlin", "home forecast"),
    "valve": ("sprinkler", "water main"),
    "sensor": ("outdoor temperature", "rain gauge", "battery level", "power meter"),
    "binary_sensor": ("motion detector", "smoke alarm", "phone charger", "water leak sensor"),
}
ANY_DEVICE = ("coffee machine", "heater", "pump", "aquarium", "humidifier", "Christmas tree")
# Examples of free text, by the name of the slot.
WILDCARDS = {
    "message": (
        *("dinner is ready", "we leave in ten minutes", "the parcel has come", "bedtime"),
        *("someone is at the door", "please come downstairs"),
    ),
    "search_query": (
        *("the planets", "some smooth jazz", "abbey road", "bohemian rhapsody", "piano music"),
        *("morning news", "nina simone"),
    ),
    "zone": ("home", "work", "school", "the gym", "the office", "grandma's house"),
    "timer_name": ("pizza", "laundry", "tea", "homework", "bread", "egg", "workout"),
    "timer_command": (
        *("turn off the lights", "open the blinds", "lock the front door", "stop the music"),
        *("switch on the heater", "start the vacuum"),
    ),
    "shopping_list_item": ("milk", "eggs", "two lemons", "olive oil", "flour", "paper towels"),
    "todo_list_item": ("call the plumber", "water the plants", "pay the rent", "buy tickets"),
}


@dataclasses.dataclass(frozen=True)
class Template:
    """A template of sentences for an intent: its text, the text parsed by hassil, hassil's rules
    and lists of values by name, and the devices that `{name}` may stand for.
    """

    intent: str
    text: str
    expression: Any
    rules: Mapping[str, Any]
    lists: Mapping[str, Any]
    devices: tuple[str, ...]


class Intents(Target, name="intents"):
    """Commands to a home, the same on each load.

    A sentence with two meanings (intents or rows of tags) is dropped, and so is a held-out one that
    is in the training split too. All intents are in the training split; those with a single
    template are in no other. The target language "slots" gives tags, any other the names of
    intents.
    """

    @classmethod
    def languages(cls, source, target):
        return source, SLOTS if target == SLOTS else INTENT

    def load(self):
        # Our rooms and devices are English.
        if self.source_language != LANGUAGE:
            raise ValueError(
                f"Corpus intents is in English. Received: source_language={self.source_language!r}."
                " Pass --source_language=en, or your own sentences by --corpus=text_files."
            )
        languages = self.languages(LANGUAGE, self.target_language)
        by_split: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
        for split, template in split_templates(templates()):
            by_split[split] += [
                (sentence, tags if languages[1] == SLOTS else template.intent)
                for sentence, tags in sentences(template)
            ]
        dropped: collections.Counter[str] = collections.Counter()
        return Corpus("intents", *languages, **_unambiguous(by_split, dropped), dropped=dropped)


def _unambiguous(by_split, dropped):
    """Return the sentences with one meaning by split, each in the first of its splits only."""
    meanings = collections.defaultdict(set)
    for sentence, meaning in itertools.chain(*by_split.values()):
        meanings[sentence].add(meaning)
    texts = {}
    sentences_so_far: set[str] = set()
    for split, pairs in by_split.items():
        usable = []
        for sentence, meaning in pairs:
            if len(meanings[sentence]) > 1:
                dropped["ambiguous"] += 1
            elif sentence in sentences_so_far:
                dropped["duplicate"] += 1
            else:
                sentences_so_far.add(sentence)
                usable.append((sentence, meaning))
        texts[split] = ParallelText.from_pairs(usable)
    return texts


def templates() -> list[Template]:
    """Load all templates of the package, in its order."""
    with needing("intents", "--corpus=intents"):
        import home_assistant_intents
        from hassil.intents import Intents
    parsed = Intents.from_dict(home_assistant_intents.get_intents(LANGUAGE))
    return [
        Template(
            name,
            sentence.text,
            sentence.expression,
            {**parsed.expansion_rules, **(data.expansion_rules or {})},
            {**parsed.slot_lists, **(data.slot_lists or {})},
            _devices(data),
        )
        for name, intent in parsed.intents.items()
        for data in intent.data
        for sentence in data.sentences
    ]


def _devices(data):
    """Return the devices that a template may name, by the domains that it is for."""
    required = (data.requires_context or {}).get("domain") or data.slots.get("domain") or ()
    domains = [required] if isinstance(required, str) else list(required)
    return tuple(itertools.chain(*(DEVICES.get(domain, ()) for domain in domains))) or ANY_DEVICE


def split_templates(all_templates: list[Template]) -> Iterator[tuple[str, Template]]:
    """Assign the templates of each intent, in the order of their texts' digests, to splits: 60 %
    train, 20 % valid and 20 % test. The first is always for training, the second for the test.
    """
    by_intent = collections.defaultdict(dict)
    for template in all_templates:
        by_intent[template.intent].setdefault(template.text, template)
    for of_intent in by_intent.values():
        by_digest = sorted(of_intent, key=lambda text: hashlib.sha256(text.encode()).hexdigest())
        for number, text in enumerate(by_digest):
            yield {1: "test", 2: "valid"}.get(number % 5, "train"), of_intent[text]


def sentences(template: Template, most: int = SENTENCES) -> list[tuple[str, str]]:
    """Draw at most so many distinct sentences of a template, with their tags; always the same."""
    draw = random.Random(f"{template.intent} {template.text}")
    tags_of: dict[str, str] = {}
    for _ in range(ATTEMPTS):
        words = " ".join(_expanded(template.expression, template, draw).split())
        # An absent optional word leaves a space before the punctuation that follows.
        sentence, tags = _tagged(re.sub(r" (?=[?,%])", "", words))
        tags_of.setdefault(sentence, tags)
        if len(tags_of) == most:
            break
    return [(sentence, tags) for sentence, tags in tags_of.items() if sentence]


def _tagged(marked):
    """Return a sentence without its marks, and the tag of each word by its first slot."""
    begin, separator, end = MARKS
    slot = re.compile(f"{begin}([^{separator}]*){separator}")
    words = []
    tags = []
    inside = None
    for word in marked.split():
        names = slot.findall(word)
        name = inside or (names and names[0])
        words.append(slot.sub("", word).replace(end, ""))
        tags.append(f"{'I' if inside else 'B'}-{name}" if name else "O")
        if names or end in word:
            inside = names[-1] if names and word.rfind(begin) > word.rfind(end) else None
    return " ".join(words), " ".join(tags)


def _expanded(expression, template, draw):
    """Draw one of the texts that an expression stands for."""
    from hassil import expression as kinds

    if isinstance(expression, kinds.TextChunk):
        return expression.original_text
    if isinstance(expression, kinds.RuleReference):
        return _expanded(template.rules[expression.rule_name].expression, template, draw)
    if isinstance(expression, kinds.ListReference):
        begin, separator, end = MARKS
        value = _value(expression.list_name, template, draw).strip()
        return f"{begin}{expression.slot_name}{separator}{value}{end}"
    if isinstance(expression, kinds.Alternative):
        return _expanded(draw.choice(expression.items), template, draw)
    items = list(expression.items)
    if isinstance(expression, kinds.Permutation):
        draw.shuffle(items)
    return "".join(_expanded(item, template, draw) for item in items)


def _value(name, template, draw):
    """Draw a value of a list: one of ours, one of Home Assistant's, or a number of its range."""
    ours = {"area": ROOMS, "floor": FLOORS, "name": template.devices, **WILDCARDS}
    if name in ours:
        return draw.choice(ours[name])
    values = template.lists[name]
    from hassil.intents import TextSlotList

    if isinstance(values, TextSlotList):
        return _expanded(draw.choice(values.values).text_in, template, draw)
    return str(draw.choice(list(values.get_numbers())))
