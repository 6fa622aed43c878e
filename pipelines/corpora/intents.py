"""Sentences that people say to their home, and what each of them asks for: templates of the PyPI
package `home-assistant-intents` (Apache-2.0), read by `hassil`, expanded at random.

The corpus is pairs: a sentence, and as the target the name of its intent, or its slots: a tag for
each word, "B-area" where the name of an area begins, "I-area" where it continues, else "O" (Ramshaw
and Marcus 1995, "Text Chunking using Transformation-Based Learning"). No template has sentences in
two splits, so that a model is measured on ways to ask that it never saw.
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
# Around what stands for a list, while a template is expanded: begin, end of the name, end.
MARKS = ("\ue000", "\ue001", "\ue002")
# Sentences of a template, and how often one more is tried for.
SENTENCES = 12
ATTEMPTS = 40
# What a home has, for templates that leave it open: rooms, devices, things to say and to buy.
ROOMS = (
    *("attic", "balcony", "basement", "bathroom", "bedroom", "cellar", "dining room", "driveway"),
    *("garage", "garden", "guest room", "hallway", "kids room", "kitchen", "laundry room"),
    *("library", "living room", "lobby", "nursery", "office", "pantry", "porch", "studio"),
    *("terrace", "workshop"),
)
FLOORS = ("first", "second", "third", "ground", "upper", "lower", "top", "main")
# By the domain of a device, as Home Assistant calls it.
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
# What a person says freely, by the name of the slot.
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
    """A way to ask for something: the intent, the text as its authors wrote it and as hassil parsed
    it, hassil's sentences and lists of values by name, and what `{name}` may be.
    """

    intent: str
    text: str
    expression: Any
    rules: Mapping[str, Any]
    lists: Mapping[str, Any]
    devices: tuple[str, ...]


class Intents(Target, name="intents"):
    """Sentences to a home, always the same.

    A sentence that two intents may mean, or two rows of tags, is dropped, and so is one of a
    held-out template that training has too. All intents are in the training split; those with a
    single template are in no other. The target language "slots" asks for tags, any other for the
    names of intents.
    """

    @classmethod
    def languages(cls, source, target):
        return source, SLOTS if target == SLOTS else INTENT

    def load(self):
        # The rooms and devices that we put in are English.
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
    """The sentences of each split that have one meaning, each in the first of its splits."""
    meant = collections.defaultdict(set)
    for sentence, meaning in itertools.chain(*by_split.values()):
        meant[sentence].add(meaning)
    texts = {}
    seen: set[str] = set()
    for split, pairs in by_split.items():
        kept = []
        for sentence, meaning in pairs:
            if len(meant[sentence]) > 1:
                dropped["ambiguous"] += 1
            elif sentence in seen:
                dropped["duplicate"] += 1
            else:
                seen.add(sentence)
                kept.append((sentence, meaning))
        texts[split] = ParallelText.from_pairs(kept)
    return texts


def templates() -> list[Template]:
    """All templates of the package, in its order."""
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
    """What may be named where a template is for some domains."""
    required = (data.requires_context or {}).get("domain") or data.slots.get("domain") or ()
    domains = [required] if isinstance(required, str) else list(required)
    named = [device for domain in domains for device in DEVICES.get(domain, ())]
    return tuple(named) or ANY_DEVICE


def split_templates(every: list[Template]) -> Iterator[tuple[str, Template]]:
    """Assign each template to a split: of an intent's, in an order that follows from their texts,
    60 % train, 20 % validate and 20 % test. The first always trains, the second always tests.
    """
    by_intent = collections.defaultdict(dict)
    for template in every:
        by_intent[template.intent].setdefault(template.text, template)
    for of_intent in by_intent.values():
        by_digest = sorted(of_intent, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
        for number, text in enumerate(by_digest):
            # The places 1, 6, 11 ... of ten test and 2, 7, 12 ... validate.
            yield {1: "test", 2: "valid"}.get(number % 5, "train"), of_intent[text]


def sentences(template: Template, most: int = SENTENCES) -> list[tuple[str, str]]:
    """At most so many sentences of a template with their tags, each once, drawn by it alone."""
    draw = random.Random(f"{template.intent} {template.text}")
    found: dict[str, str] = {}
    for _ in range(ATTEMPTS):
        words = " ".join(_expanded(template.expression, template, draw).split())
        # An optional word leaves a space before what follows it.
        sentence, tags = _tagged(re.sub(r" (?=[?,%])", "", words))
        found.setdefault(sentence, tags)
        if len(found) == most:
            break
    return [(sentence, tags) for sentence, tags in found.items() if sentence]


def _tagged(marked):
    """A sentence without its marks, and the tags of its words, by the slot that begins first."""
    begin, named, end = MARKS
    slot = re.compile(f"{begin}([^{named}]*){named}")
    words = []
    tags = []
    inside = None
    for word in marked.split():
        begun = slot.search(word)
        name = inside or (begun and begun[1])
        words.append(slot.sub("", word).replace(end, ""))
        tags.append(f"{'I' if inside else 'B'}-{name}" if name else "O")
        opened = slot.findall(word)
        if opened or end in word:
            inside = opened[-1] if opened and word.rfind(begin) > word.rfind(end) else None
    return " ".join(words), " ".join(tags)


def _expanded(expression, template, draw):
    """One of the texts that an expression stands for."""
    from hassil import expression as kinds

    if isinstance(expression, kinds.TextChunk):
        return expression.original_text
    if isinstance(expression, kinds.RuleReference):
        return _expanded(template.rules[expression.rule_name].expression, template, draw)
    if isinstance(expression, kinds.ListReference):
        begin, named, end = MARKS
        value = _value(expression.list_name, template, draw).strip()
        return f"{begin}{expression.slot_name}{named}{value}{end}"
    if isinstance(expression, kinds.Alternative):
        return _expanded(draw.choice(expression.items), template, draw)
    items = list(expression.items)
    if isinstance(expression, kinds.Permutation):
        draw.shuffle(items)
    return "".join(_expanded(item, template, draw) for item in items)


def _value(name, template, draw):
    """What stands for a list: ours, of Home Assistant's own, or a number of its range."""
    ours = {"area": ROOMS, "floor": FLOORS, "name": template.devices, **WILDCARDS}
    if name in ours:
        return draw.choice(ours[name])
    values = template.lists[name]
    from hassil.intents import TextSlotList

    if isinstance(values, TextSlotList):
        return _expanded(draw.choice(values.values).text_in, template, draw)
    return str(draw.choice(list(values.get_numbers())))
