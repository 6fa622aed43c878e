"""Law: a translated file has the translations in their places and is otherwise the same byte for
byte. The tools of each format write the files and read the results.
"""

import gettext
import gzip
import io
import json
import re
import shutil
import subprocess

import pytest
from command_flags import flags_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from token_lists import complaint

from keras_transformer import translate
from pipelines.documents import BILINGUAL, FORMATS, Document, xliff
from pipelines.documents.segments import CODES

PO = """# A header.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: a.py:3
msgid "Open the %(name)s file"
msgstr "«|OPEN THE %(name)s FILE»"

#, fuzzy, python-format
#| msgid "old"
msgctxt "menu"
msgid "Close"
msgstr "«Schliessen|CLOSE»"

msgid "Done"
msgstr "Fertig"

msgid "%d file\\n"
msgid_plural ""
"%d files\\n"
msgstr[0] "«|%d FILE\\n»"
msgstr[1] "%d Dateien\\n"

#~ msgid "gone"
#~ msgstr "weg"
"""
XLIFF = """<?xml version='1.0' encoding="UTF-8" ?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" \
source-language="en" target-language="de" datatype="plaintext"><body>
  <trans-unit id='1'>
    <source>Open <g id="1">the &amp; file</g><x id="2"/></source>«|
    <target>OPEN <g id="1">THE &amp; FILE</g><x id="2"/></target>»
  </trans-unit>
  <trans-unit id="2"><source>Close</source>\
<target state="needs-review-translation">«Zu|CLOSE»</target></trans-unit>
  <trans-unit id="3"><source>Done</source><target state="final">Fertig</target></trans-unit>
  <trans-unit id="4" translate="no"><source>Key</source><target/></trans-unit>
  <trans-unit id="5"><source>Red <ph id="1">&lt;b></ph> car</source>\
«<target  />|<target>RED <ph id="1">&lt;b></ph> CAR</target>»
    <alt-trans><source>Red</source><target>Rot</target></alt-trans></trans-unit>
</body></file></xliff>
"""
SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>«Good\r\nmorning»</i>\r\n\r\n2\r\n"
    "00:00:03,000 --> 00:00:04,000 X1:3\r\n- «Yes».\r\n"
)
JSON = (
    '{\n  "a": "«Hello» {name}",\n\t"b": [1.50, "«Tab»\\t«here»", '
    '{"c": "«\\u00fc|\\u00dc» \\"«x»\\""}], "d": "12"}'
)
HTML = """<!DOCTYPE html>
<html lang=en><head><title>«My page»</title><script>var a = "<p>text</p>";</script></head>
<body><!-- note --><p class='x'>«Click» <a href="a&b">«here &amp;
   now|HERE &amp; NOW»</a> «or» <code>stop it</code>.
<p>«Second»<br>«line &copy;|LINE &#169;» 2024 <img alt="x">
<div translate=no>keep <b>this</b></div><pre>«two
lines»</pre></body></html>
"""


def before_and_after(marked):
    """Replace each «text|translation» by either; of «text» the translation is in upper case."""
    *parts, end = re.split("«([^»]*)»", marked)
    pairs = [part.split("|") if "|" in part else (part, part.upper()) for part in parts[1::2]]
    return tuple(
        "".join(same + pair[side] for same, pair in zip(parts[::2], pairs, strict=True)) + end
        for side in (0, 1)
    )


MARKED = {"po": PO, "xliff": XLIFF, "json": JSON, "srt": SRT, "html": HTML}
EXAMPLES, EXPECTED = (
    {name: before_and_after(marked)[side] for name, marked in MARKED.items()} for side in (0, 1)
)


def unbracketed(text):
    return re.sub("⟦([^⟧]*)⟧", r"\1", text)


def bare(text):
    return re.sub("[⟦⟧]", "", text)


def upper(texts):
    """A model that protects: it returns upper case, except for the text between brackets."""
    return [
        "".join(p[1:-1] if p[:1] == "⟦" else p.upper() for p in re.split("(⟦[^⟧]*⟧)", text))
        for text in texts
    ]


def loud(texts):
    return [text.upper() for text in texts]


def same(texts):
    return [unbracketed(text) for text in texts]


def translated(text, file_format, translate=upper, protects=True, everything=False):
    document = Document.read(text.encode("utf-8"), file_format, everything)
    return document.translated(lambda texts, _: translate(texts), protects)


@pytest.mark.parametrize("protects", [True, False])
@pytest.mark.parametrize("file_format", FORMATS)
def test_translations_are_put_in_and_nothing_else_changes(file_format, protects):
    text = translated(EXAMPLES[file_format], file_format, protects=protects)
    assert text == EXPECTED[file_format]


@pytest.mark.parametrize("file_format", FORMATS)
def test_unchanged_translations_leave_the_file_byte_for_byte(file_format):
    text = "\ufeff" + EXAMPLES[file_format]
    if file_format in BILINGUAL:
        # The first pass adds the targets; a second one changes nothing.
        complete = translated(text, file_format, same)
        assert complete != text
        assert translated(complete, file_format, same) == complete
        complete = translated(text, file_format, same, everything=True)
        assert translated(complete, file_format, same, everything=True) == complete
    else:
        assert translated(text, file_format, same) == text
        assert translated(text, file_format, same, protects=False) == text


@pytest.mark.parametrize("file_format", BILINGUAL)
def test_existing_translations_are_replaced_only_on_request(file_format):
    assert "Fertig" in translated(EXAMPLES[file_format], file_format)
    again = translated(EXAMPLES[file_format], file_format, everything=True)
    assert "Fertig" not in again
    assert "DONE" in again


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: "",
        lambda text: unbracketed(text) * 2,
        lambda text: unbracketed(text).replace(">", ")"),
        lambda text: re.sub(r"(<(\w)[^>]*>)[^<]*(?=</\2>)|^[^<]*<ph.*", r"\1 ", unbracketed(text)),
    ],
)
def test_codes_that_a_model_loses_or_repeats_come_back(broken):
    """The texts between them are then translated one by one."""

    def lost(texts):
        return [broken(text) if "⟦" in text else text.upper() for text in texts]

    assert translated(EXAMPLES["xliff"], "xliff", lost) == EXPECTED["xliff"]
    page = "<p>a <b>c</b> d <i>e</i> f</p>"
    assert translated(page, "html", lost) == "<p>A <b>C</b> D <i>E</i> F</p>"


def test_tags_without_text_stay_empty():
    def moved(texts):
        return [unbracketed(text).replace("a <b></b> ", "<b></b> A ") for text in texts]

    assert translated("<p>a <b></b> c</p>", "html", moved) == "<p><b></b> A c</p>"


def test_characters_that_xml_forbids_are_left_out():
    text = "<xliff><segment><source>a</source></segment></xliff>"
    assert "<target>b&lt;c</target>" in translated(text, "xliff", lambda _: ["b<\x0bc\ufffe"])


def test_a_translation_with_crossed_tags_is_not_used():
    def crossed(texts):
        return [
            re.sub("⟦(</?.>)⟧", lambda m: {"</b>": "</i>", "</i>": "</b>"}.get(m[1], m[1]), text)
            if "⟦" in text
            else text.upper()
            for text in texts
        ]

    expected = "<p>A <b>C <i>E</i> F</b> G</p>"
    assert translated("<p>a <b>c <i>e</i> f</b> g</p>", "html", crossed) == expected


@pytest.mark.parametrize(
    ("file_format", "text", "message"),
    [
        ("po", 'msgid "a"\nmsgstr "b\n', "line 2: no line of a PO file"),
        ("po", 'msgid "a"\n', "the last message has no msgstr"),
        ("po", 'msgstr "a"\n', "line 1: msgstr in the wrong place"),
        ("xliff", "<xliff>\n<a></xliff>", "line 2: mismatched tag"),
        ("xliff", "<html/>", "its root is <html>"),
        ("json", '{"a":\n}', "line 2: Expecting value"),
        ("json", '[1,\n"a\\ud800b"]', "line 2: half of a surrogate pair"),
        ("json", "[" * 100_000, "too many levels|Expecting value"),
        ("srt", "hello\n", "line 1: not the number of a cue"),
        ("srt", "1\nhello\n", "line 2: not the times of a cue"),
        ("srt", EXAMPLES["srt"].replace("\r\n\r\n", "\r\n"), "line 6: times within a text"),
        ("html", "no page", "it has no tag"),
        ("html", "<p>\n<META content='text/html; charset=latin1'>a", "line 2: it declares latin1"),
        ("html", "<p>a<meta charset=latin1 />", "line 1: it declares latin1. Convert it"),
        ("html", "<?xml encoding='latin1'?><p>a", "line 1: it declares latin1. Convert it"),
        ("po", PO.replace("UTF-8", "ISO-8859-1"), "line 4: it declares ISO-8859-1. Convert it"),
        ("xliff", XLIFF.replace("UTF-8", "latin1"), "line 1: it declares latin1. Convert it"),
        *((file_format, " \n", "it is empty") for file_format in FORMATS),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(file_format, text, message):
    assert re.search(message, complaint(ValueError, translated, text, file_format))
    with pytest.raises(ValueError, match=r"^line 2: not UTF-8\. Save"):
        Document.read(b"a\n\xff", file_format)


HEADER = PO[: PO.index("#:")]
TYPE = "Content-Type: text/plain; charset=latin1"
META = "<meta charset=latin1>"
TIMES = "00:00:01,000 --> 00:00:02,000"
# Marked files, as above.
ODD_FILES = [
    ("po", 'msgid "a\u2028b"\nmsgstr "«|A\u2028B»"'),
    ("po", HEADER.replace("UTF-8", "CHARSET")),
    ("po", '#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\n\nmsgid "c"\nmsgstr "d"\n'),
    ("po", 'msgid "\\x4F\\303\\274"\nmsgstr "«|OÜ»"'),
    ("json", '["www.a.b/c", "1 https://a.b/%C3%A9, x@y.z."]'),
    ("json", '["5%% «a» %{b} %b.c% %zu %.*s"]'),
    ("json", '["%d«x»%d «in» %d«ms»", "5«%de», %date%%d%%"]'),
    ("html", "<META charset=utf-8>«&uuml;|Ü»"),
    # Other texts declare nothing.
    ("json", f'["{META}«a»"]'),
    # More digits than Python reads as an integer.
    ("json", f'[{"9" * 5000}, "«a»"]'),
    ("html", f"<script>'{META}'</script><!-- {META} -->«&uuml;|&#220;»"),
    ("html", "<meta name=a content='with encoding=latin1 and charset = latin1'><p>«&uuml;|&#220;»"),
    ("po", f'msgid ""\nmsgstr ""\n\nmsgid ""\n"{TYPE}"\nmsgstr "«|{TYPE.upper()}»"'),
    ("po", HEADER.replace("Plural", 'X-Encoding: encoding=latin1\\n"\n"Plural')),
    # No-break spaces between cues, behind a number, and alone in a text.
    ("srt", f"1\u00a0\n{TIMES}\n«a»\n\u00a0\n2\n{TIMES}\n«b»\n\u3000\n"),
    ("srt", f"1\n{TIMES}\n- «a»\n\u00a0\n- «b»\n\n"),
    ("html", '<?php $a->b;\n"c"?><p title="<?=e("f")?>">«g» <%=h->i%>«j»<? k ?>«l»<?php m'),
    ("html", "<a href=/<?= $b->c ?>>«d»</a><input <?php if ($e > 1)\n echo 'f' ?> class='>'>«g»"),
    ("html", "<p translate=no>a<b>c<hr>«d»</p>«e»"),
    ("html", "<p translate=no>a</i>b</div>«c»"),
    ("html", "<li translate=no>a<ul><li>b</ul><li>«c»"),
    ("html", "<li translate=no>a<div>b</div>c</li>«d»"),
    ("html", "<p translate=NO translate=yes>a"),
    ("html", "<p class='x notranslate'>a"),
    (
        "html",
        "<p>«a»</p><![b[c]]>«d»<!-- <![e] -->«f»<![ g>«h»<!--[if IE]>i<![endif]-->«j»<![if k]>«l»",
    ),
    ("html", "<p>«a»</pre>\n«b»</p><pre>«c»\n «d»</pre>"),
    ("html", "<p class=notranslated>«a»</p>"),
    (
        "xliff",
        "<xliff translate='no'><segment translate='yes'>\r\n <source>a</source>«|\r\n "
        "<target>A</target>»\r\n</segment><segment><source>b</source></segment></xliff>",
    ),
]
# Units of XLIFF.
UNITS = [
    "<source>https://a.b?c&amp;d</source>",
    "<source/>\n",
    "<source>a</source>«|<target>A</target>»",
    "<source>a</source><seg-source/>«|<target>A</target>»",
    "<source>a</source><target>«<mrk mid='0'/>|A»</target>",
    "<source>a. b</source><seg-source><mrk mid='0'>a.</mrk> <mrk mid='1'>b</mrk></seg-source>"
    "<target>«<mrk mid='0'/><mrk mid='1'/>|<mrk mid='0'>A.</mrk> <mrk mid='1'>B</mrk>»</target>",
    "<source>a<ph id='1'>%s</ph></source><target>« |A»<ph id='1'>%s</ph></target>",
    "<source>a <x/></source><target><mrk mtype='protected'>b</mrk></target>",
    "<source><![CDATA[a <b>c</b> & d]]></source>«|<target>A &lt;b&gt;C&lt;/b&gt; &amp; D</target>»",
]
ODD_FILES += [("xliff", f"<xliff><trans-unit>{unit}</trans-unit></xliff>") for unit in UNITS]


@pytest.mark.parametrize("protects", [True, False])
@pytest.mark.parametrize(("file_format", "marked"), ODD_FILES)
def test_odd_files_of_a_format_are_read(file_format, marked, protects):
    before, after = before_and_after(marked)
    assert translated(before, file_format, protects=protects) == after


@pytest.mark.parametrize("protects", [True, False])
@pytest.mark.parametrize("unit", ["segment", "trans-unit"])
@pytest.mark.parametrize("mark", ['id="1" translate="no"', "mtype='protected'"])
def test_marks_against_translation_are_kept(unit, mark, protects):
    body = f"<xliff><{unit}><source>a <mrk {mark}>b</mrk> c</source>"
    expected = f"{body}<target>A <mrk {mark}>b</mrk> C</target></{unit}></xliff>"
    assert translated(f"{body}</{unit}></xliff>", "xliff", protects=protects) == expected
    unprotected = body.replace(mark, 'mtype="term"')
    assert ">B</mrk>" in translated(f"{unprotected}</{unit}></xliff>", "xliff")


def test_a_catalogue_is_compiled_by_gettext(tmp_path):
    if shutil.which("msgfmt") is None:
        pytest.skip("msgfmt is not installed")
    path = tmp_path / "a.po"
    path.write_text(EXPECTED["po"], encoding="utf-8")
    command = ["msgfmt", "--check-format", "-o", tmp_path / "a.mo", path]
    subprocess.run(command, check=True, capture_output=True)
    catalogue = gettext.GNUTranslations(io.BytesIO((tmp_path / "a.mo").read_bytes()))
    assert catalogue.gettext("Open the %(name)s file") == "OPEN THE %(name)s FILE"
    assert catalogue.ngettext("%d file\n", "%d files\n", 1) == "%d FILE\n"
    assert catalogue.ngettext("%d file\n", "%d files\n", 2) == "%d Dateien\n"
    # A fuzzy message is not compiled.
    assert catalogue.pgettext("menu", "Close") == "Close"


class Searched(str):
    """Counts the characters that are searched from the end."""

    count = 0

    def rfind(self, part, start, end):
        place = super().rfind(part, start, end)
        Searched.count += end - max(place, start)
        return place


def test_what_stands_before_a_source_is_not_searched_to_the_beginning_of_its_line():
    units = "<trans-unit><source>a</source></trans-unit>" * 300
    text = f"<xliff><note>{'x' * 10_000}</note>{units}</xliff>"
    assert len(xliff._UnitFinder(Searched(text)).units) == 300
    assert 0 < Searched.count < len(text)


def test_the_translate_toolkit_reads_back_its_units():
    storage = pytest.importorskip("translate.storage.xliff")
    file = storage.xlifffile()
    for text in ("Hello & <you>", "Two\nlines\tand a tab", "12"):
        file.addsourceunit(text)
    file.units[0].addnote("A note: Hello", origin="developer")
    text = bytes(file).decode()
    written = translated(text, "xliff", protects=True)
    again = storage.xlifffile.parsestring(written.encode())
    assert [unit.target for unit in again.units] == ["HELLO & <you>", "TWO\nLINES\tAND A TAB", None]
    assert [unit.source for unit in again.units] == [unit.source for unit in file.units]
    assert re.sub(r"\s*<target>.*?</target>", "", written, flags=re.DOTALL) == text


@pytest.mark.parametrize("protects", [True, False])
def test_an_error_calls_a_text_by_its_line_in_the_file(protects):
    """The third text of a page may be in its fifth line."""
    page = "\ufeff<p>One</p>\r\n<p>Two <b>three</b>\r\nfour</p>\n\n<p>Six</p>"
    lines_of = {}

    def translate(texts, lines):
        lines_of.update(zip(texts, lines, strict=True))
        return texts

    Document.read(page.encode(), "html").translated(translate, protects)
    whole = {"Two ⟦<b>⟧three⟦</b>⟧⟦\r\n⟧four": 2}
    assert lines_of == {
        "One": 1,
        **(whole if protects else dict.fromkeys(["Two", "three", "four"], 2)),
        "Six": 5,
    }


# The command, with a model that translates into upper case.
class UpperCase:
    def __init__(self, protected):
        self.description = {"protected": {"protect": ["tags"]}} if protected else {}

    def translate(self, lines, prefixes, split_sentences, decode_tokens, at_once, report, numbers):
        return upper(lines)


@pytest.mark.parametrize("protected", [True, False])
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_command_writes_the_file(file_format, protected, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.startup.spread_over_cores", lambda: 1)
    monkeypatch.setattr(
        "keras_transformer.inference.translator.Translator.load",
        lambda *arguments, **options: UpperCase(protected),
    )
    source = tmp_path / "in"
    source.write_bytes(EXAMPLES[file_format].encode())
    flags = ["--model=x", f"--file_format={file_format}", f"--input={source}"]
    flags.append(f"--output={tmp_path}/out")
    translate.main(flags_of("translate", *flags))
    expected = EXPECTED[file_format]
    assert (tmp_path / "out").read_bytes() == expected.encode()
    # Without --file_format the ending of the file name decides.
    named = source.rename(tmp_path / f"in.{file_format.upper()}")
    packed = tmp_path / f"in.{file_format}.gz"
    packed.write_bytes(gzip.compress(named.read_bytes()))
    for path in (named, packed):
        (tmp_path / "out").unlink()
        translate.main(flags_of("translate", "--model=x", f"--input={path}", flags[-1]))
        assert (tmp_path / "out").read_bytes() == expected.encode()
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"^{packed} is no file of --file_format={file_format}: "):
        translate.main(flags_of("translate", "--model=x", f"--input={packed}", flags[-1]))
    # Nothing is written for a malformed file.
    source.write_bytes(b"\xff")
    (tmp_path / "out").unlink()
    message = rf"^{source} is no file of --file_format={file_format}: line 1: not UTF-8\."
    with pytest.raises(ValueError, match=message):
        translate.main(flags_of("translate", *flags))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--file_format=json", "--all"], "--all is for --file_format=po or xliff"),
        (["--all"], "--all is for --file_format=po or xliff. Received: --file_format=lines"),
        (["--file_format=po", "--json"], "--file_format=po is written as it was read: leave out"),
        (["--file_format=po", "--stream"], "--file_format=po is written as it was read: leave"),
        (["--input=a.SDLXLIFF.gz"], "files of .sdlxliff are not read. Received: a.SDLXLIFF.gz."),
        (["--input=strings.xml"], "files of .xml are not read. Received: strings.xml. Convert"),
        ([f"--input={__file__}", "--prefix_file=/dev/null"], "--prefix_file must have as many"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(more, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        translate.main(flags_of("translate", "--model=x", *more))


# Texts of unusual pieces.
ODD = "Open|ü|a\tb|{x}|%s|%(n)d|<b>|</b>|<br/>|\"|\\|&|&amp;|<|>|\n| |  |⟦|⟧|12|😀|{|'|<i>x</i>|]]>"
WORDS = st.lists(st.sampled_from([*ODD.split("|"), "[%k%]"]), min_size=1, max_size=8).map("".join)
TEXTS = st.lists(WORDS.filter(lambda text: text.strip() != ""), min_size=1, max_size=4)


def po_file(texts, polib):
    catalogue = polib.POFile(wrapwidth=30)
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for number, text in enumerate(texts):
        plural = {"msgid_plural": text + "s", "msgstr_plural": {0: "", 1: ""}}
        more = plural if number % 2 else {}
        catalogue.append(polib.POEntry(msgid=text, msgctxt=str(number), **more))
    return str(catalogue)


@settings(max_examples=100)
@given(TEXTS)
def test_odd_catalogues_are_read_by_polib(texts):
    polib = pytest.importorskip("polib")
    text = po_file(texts, polib)
    for protects in (True, False):
        written = translated(text, "po", same, protects)
        for entry in polib.pofile(written):
            forms = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
            translations = [*entry.msgstr_plural.values()] if entry.msgid_plural else [entry.msgstr]
            for source, target in zip(forms, translations, strict=True):
                expected = source if any(map(str.isalpha, CODES.sub("", source))) else ""
                assert bare(target) == bare(expected)
        assert [entry.msgctxt for entry in polib.pofile(written)] == [*map(str, range(len(texts)))]


@settings(max_examples=100)
@given(TEXTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_odd_strings_are_read_by_json(texts, indent, is_ascii):
    text = json.dumps({"a": texts, "b": {"c": texts[0]}}, indent=indent, ensure_ascii=is_ascii)
    assert translated(text, "json", list, protects=False) == text
    results = json.loads(translated(text, "json", loud, False))["a"]
    for text, result in zip(texts, results, strict=True):
        assert CODES.findall(text) == CODES.findall(result) or "ü" in text or text.upper() == result
        assert text.upper() == result.upper()


def unbracketed_parts(text):
    """Remove nested brackets too, in each part that a model gets alone."""
    parts = re.split(f"({CODES.pattern})", text)
    while (less := list(map(unbracketed, parts))) != parts:
        parts = less
    return "".join(parts)


@settings(max_examples=100)
@example(["Open⟦⟧⟦"], "xliff")
@example(["Open⟦⟦⟧⟧"], "xliff")
@example(["⟦a\tb⟦⟧"], "xliff")
@given(TEXTS, st.sampled_from(["xliff", "xliff2"]))
def test_odd_units_are_read_by_the_toolkit(texts, kind):
    lxml = pytest.importorskip("lxml.etree")
    name = {"xliff": "trans-unit", "xliff2": "segment"}[kind]
    root = lxml.Element("xliff")
    for text in texts:
        unit = lxml.SubElement(root, name)
        source = lxml.SubElement(unit, "source")
        source.text = text
        lxml.SubElement(source, "x", id="1").tail = text
    text = lxml.tostring(root, encoding="unicode", pretty_print=True)
    for protects in (True, False):
        written = translated(text, "xliff", lambda lines: list(map(unbracketed, lines)), protects)
        again = lxml.fromstring(written)
        assert len(again) == len(texts)
        for unit in again:
            source, *target = unit
            if target:
                [target] = target
                # Part by part, since brackets on two sides of a code do not pair.
                parts = (list(map(unbracketed_parts, side.itertext())) for side in (target, source))
                assert next(parts) == next(parts)
                assert len(target) == 1
        for unit in again:
            for target in unit.findall("target"):
                unit.remove(target)
        remaining, original = ("".join(tree.itertext()) for tree in (again, root))
        assert re.sub(r"\s+", "", remaining) == re.sub(r"\s+", "", original)


@settings(max_examples=100)
@given(TEXTS)
def test_odd_subtitles_are_read_by_pysubs2(texts):
    pysubs2 = pytest.importorskip("pysubs2")
    file = pysubs2.SSAFile()
    file.events = [
        pysubs2.SSAEvent(start=1000 * n, end=1000 * n + 500, text=line)
        for n, line in enumerate(re.sub(r"\s*\n\s*", r"\\N", text.strip()) for text in texts)
    ]
    text = file.to_string("srt")
    assert translated(text, "srt", list, protects=False) == text
    written = translated(text, "srt", loud, protects=False)
    after = pysubs2.SSAFile.from_string(written, format_="srt")
    before = pysubs2.SSAFile.from_string(text, format_="srt")
    assert [event.start for event in after] == [event.start for event in before]
    assert [event.text.upper() for event in after] == [event.text.upper() for event in before]


@settings(max_examples=100)
@given(
    TEXTS.map(lambda texts: [*map(bare, texts)]),
    st.sampled_from(["p", "li", "b", "pre", "script", "textarea", "title", "code"]),
)
def test_odd_pages_keep_their_tags(texts, tag):
    lxml = pytest.importorskip("lxml.html")
    page = "".join(f"<div>x</div><{tag} a='>'>{text}</{tag}>" for text in texts)
    assert translated(page, "html", list, protects=False) == page
    assert translated(page, "html", same) == page
    written = translated(page, "html", protects=False)
    elements, expected = (lxml.fromstring(html).iter() for html in (written, page))
    assert [element.tag for element in elements] == [element.tag for element in expected]
