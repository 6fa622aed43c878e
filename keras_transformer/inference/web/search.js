"use strict";
// Section 6.1's beam search (Vaswani et al. 2017) for the translation Y of X with the highest
//     log P(Y | X) / ((5 + |Y|) / 6)^alpha        (Wu et al. 2016, equation 14 without coverage)
// by a model that gives log P of the next piece. It finds what
// keras_transformer/decoding/numpy_search.py and numpy_rules.py find for one sentence.

const PAD = 0;
const BOS = 2;
const EOS = 3;
const MOST_MARKS = 32;
const f32 = Math.fround;

// A length such as 1.5x or +50, as numerator, denominator and how many more, for a source of so
// many tokens.
function inTokens([numerator, denominator, more], tokens) {
  const share = Math.floor((numerator * tokens + denominator - 1) / denominator);
  return Math.max(share + more, 1);
}

// How often an id is among others.
const times = (id, ids) => ids.filter((one) => one === id).length;

// Protected spans: keras_transformer's pipelines/vocabularies/protected_spans.py.
const TERM = /\u27ea( ?)[^\u27ea\u27f9]*\u27f9 ([^\u27eb]+)\u27eb/g;
const mark = (number) => `\u27e6${number % MOST_MARKS + 1}\u27e7`;

// A text with marks in the place of its spans, these, and whether it was all in capitals.
function marked(text, expression, casing) {
  const spans = [];
  const shown = text.replace(new RegExp(expression, "g"), (span) => {
    spans.push(span);
    return mark(spans.length - 1);
  });
  return casing ? { spans, ...cased(shown, casing) } : { spans, shown, isCapital: false };
}

// A text without one of both cases as the training text would write it:
// pipelines/vocabularies/casing.py.
function cased(text, { word, opening, start, least, tag, words }) {
  const lower = text.toLowerCase();
  const upper = text.toUpperCase();
  const begins = new RegExp(`^${opening}$`);
  const parts = (start + lower).split(new RegExp(`(${word})`));
  const letters = parts.reduce((sum, part, n) => sum + (n % 2 ? [...part].length : 0), 0);
  const hasBoth = lower === upper || ![lower, upper].includes(text);
  if (hasBoth || text.includes(tag) || letters < least) return { shown: text, isCapital: false };
  const forms = new Map(words.map((form) => [form.toLowerCase(), form]));
  const written = parts.map((part, n) => {
    if (n % 2 === 0) return part;
    const [first, ...rest] = forms.get(part) ?? part;
    const letter = begins.test(parts[n - 1]) ? first.toUpperCase() : first;
    return letter + rest.join("");
  });
  return { shown: written.join("").slice(start.length), isCapital: text === upper };
}

// A translation with the spans of its source in the places of its marks.
function putBack(text, { spans, isCapital }) {
  const rounds = {};
  const written = isCapital ? text.toUpperCase() : text;
  return written.replace(/\u27e6([1-9]|[12][0-9]|3[0-2])\u27e7/g, (_, number) => {
    rounds[number] = (rounds[number] ?? -1) + 1;
    const place = number - 1 + MOST_MARKS * rounds[number];
    return place < spans.length ? spans[place].replace(/^\u27e6([^\u27e7]*)\u27e7$/, "$1") : "";
  });
}

// For each mark the number of the mark whose tag it closes; -1 if it closes none.
function openings(spans) {
  const found = Array(MOST_MARKS).fill(-1);
  const opened = new Map();
  if (spans.length > MOST_MARKS) return found;
  spans.forEach((span, place) => {
    const [, closes, name, rest] = span.match(/^<(\/?)([A-Za-z][\w:.-]*)([^<>]*)>$/) ?? [];
    if (name === undefined) return;
    if (!opened.has(name)) opened.set(name, []);
    if (closes) found[place] = opened.get(name).pop() ?? -1;
    else if (!rest.endsWith("/")) opened.get(name).push(place);
  });
  return found;
}

// The label of a language, as the ids that texts in it begin with: none of a model without labels.
function labelled({ labels, ...wanted }, name) {
  const language = wanted[name];
  if (language == null && !labels) return [];
  if (Object.hasOwn(labels ?? {}, language)) return [labels[language]];
  const has = labels
    ? `${Object.keys(labels).sort().join(", ")}. Name one of these.`
    : "no labels of languages. Leave it out.";
  throw new Error(`${name}=${language}: the model has ${has}`);
}

// What is asked of one translation: what is wanted of all, the ids of the source without its end,
// and the spans.
function request(wanted, source, spans) {
  const tokens = source.length + 1;
  const begin = labelled(wanted, "target_language");
  const limit = Math.max(inTokens(wanted.max_length, tokens), begin.length + 1);
  const minimum = Math.min(inTokens(wanted.min_length, tokens), limit);
  const asked = { ...wanted, begin, limit, minimum, barred: [...wanted.barred], count: null };
  if (!wanted.marks || !wanted.protect_all) return asked;
  const count = wanted.marks.source.map((id) => times(id, source));
  const all = count.reduce((sum, one) => sum + one, 0);
  // Without spans in the sentence no mark comes.
  if (!all) return { ...asked, barred: [...asked.barred, ...wanted.marks.target] };
  const longest = Math.max(limit, begin.length + all + 1);
  return { ...asked, limit: longest, count, openedBy: openings(spans), ids: wanted.marks.target };
}

// What a step adds to log P of hypotheses, one row for all or one for each.
function bias(asked, hypotheses, position) {
  const one = new Float32Array(asked.pieces);
  for (const id of asked.barred) one[id] = -Infinity;
  const forced = asked.begin[position] ?? (position + 1 === asked.limit ? EOS : null);
  if (forced !== null) {
    one.fill(-Infinity);
    one[forced] = 0;
    return [one];
  }
  if (position + 1 < asked.minimum) one[EOS] = -Infinity;
  const n = asked.no_repeat_ngram_size;
  if (!asked.count && !asked.forbidden && !n) return [one];
  return hypotheses.map(({ ids }) => {
    const row = asked.forbidden ? forbid(one.slice(), ids, asked.forbidden) : one.slice();
    const repeated = n ? repeating(ids, n) : [];
    for (const id of repeated) row[id] = -Infinity;
    return asked.count ? keepSpans(row, ids, position, asked) : row;
  });
}

// The tokens that came after an earlier occurrence of the last n - 1.
function repeating(ids, n) {
  const context = ids.slice(ids.length - n + 1).join();
  return ids.filter((_, end) => end >= n - 1 && ids.slice(end - n + 1, end).join() === context);
}

// What positive logits are divided and others multiplied by: of what has come the penalty.
function factor({ pieces, repetition_penalty: penalty }, hypotheses) {
  if (penalty === 1) return [new Float32Array([1])];
  return hypotheses.map(({ ids }) => {
    const row = new Float32Array(pieces).fill(1);
    for (const id of ids) row.fill(penalty, id, id + 1);
    return row;
  });
}

// No piece comes that would complete a forbidden word: keras_transformer's
// decoding/forbidden_words.py.
function forbid(row, came, { first, changed }) {
  const after = (state, id) => changed[state][id] ?? first[id];
  const state = came.reduce((one, id) => Math.max(after(one, id), 0), 0);
  return row.map((value, id) => after(state, id) < 0 ? -Infinity : value);
}

// A translation ends when each mark has come as often as in the source, a closing tag after the
// innermost open one.
function keepSpans(row, came, position, { count, openedBy, ids, limit }) {
  const when = ids.map((id) => came.lastIndexOf(id));
  const missing = ids.map((id, m) => count[m] - times(id, came));
  const left = missing.reduce((sum, one) => sum + Math.max(one, 0), 0);
  // Where the tag was opened that a mark would close now.
  const open = openedBy.map((opener, m) => opener >= 0 && when[m] < 0 ? when[opener] : -1);
  const innermost = Math.max(...open);
  const closesInnermost = (m) => open[m] >= 0 && open[m] === innermost;
  const mayCome = (m) => missing[m] > 0 && (openedBy[m] < 0 || closesInnermost(m));
  const ofMarks = ids.map((id, m) => mayCome(m) ? row[id] : -Infinity);
  if (left && limit - position <= left + 1) row.fill(-Infinity);
  if (left) row[EOS] = -Infinity;
  ids.forEach((id, m) => {
    row[id] = ofMarks[m];
  });
  return row;
}

// A beam of hypotheses {ids, score}, and `found`: those that ended, {ids, score}, best first, the
// end left out. One that ends leaves the beam: with its place in Marian's, which is "shrinking";
// Hugging Face's last "until_full" or "until_worse" (keras_transformer/decoding/other_beams.py).
class Beam {
  constructor({ beam_size: size, beam_form, length_penalty, length_penalty_form, limit, most }) {
    const alpha = f32(size > 1 ? length_penalty : 0);
    const base = length_penalty_form === "length" ? (n) => n : (n) => f32((5 + n) / 6);
    this.size = size;
    this.limit = limit;
    this.most = Math.min(most, size);
    this.hypotheses = [{ ids: [], score: 0 }];
    this.places = size;
    this.found = [];
    this.form = size > 1 ? beam_form : "leaving";
    this.fills = this.form.startsWith("until_");
    this.penalty = (length) => f32(base(length) ** alpha);
  }

  static of(asked) {
    const stays = asked.beam_size > 1 && asked.beam_form === "staying";
    return stays ? new StayingBeam(asked) : new Beam(asked);
  }

  // One turn. Of each hypothesis come as many candidates {parent, id, score}, the likeliest first.
  // Gives the parents of the hypotheses that go on.
  extend(candidates) {
    const shrinks = this.form === "shrinking";
    const inBeam = this.places;
    const before = this.hypotheses;
    const best = candidates.sort(byScore).slice(0, 2 * this.size);
    best.forEach((one, place) => {
      if (place >= inBeam && shrinks) one.score = -Infinity;
      if (one.id !== EOS || place >= inBeam || one.score === -Infinity) return;
      const { ids } = before[one.parent];
      if (shrinks) this.places--;
      this.found.push({ ids, score: f32(one.score / this.penalty(ids.length + 1)) });
    });
    this.found = this.found.sort(byScore).slice(0, this.size);
    const going = best.filter(({ id, score }) => id !== EOS && this.mayWin(score));
    const alive = going.slice(0, this.size);
    this.hypotheses = alive.map(({ parent, id, score }, place) => ({
      ids: [...before[parent].ids, id],
      score: place < this.places ? score : -Infinity,
    }));
    return alive.map(({ parent }) => parent);
  }

  // Whether a hypothesis may still lead to one of the best: it gets no likelier, and its penalty at
  // most that of the limit. The paper's beam finds nothing else without the others, and is settled
  // without any.
  mayWin(score) {
    const last = this.found[this.most - 1];
    return this.form !== "leaving" || !last || f32(score / this.penalty(this.limit)) > last.score;
  }

  get isSettled() {
    const [likeliest] = this.hypotheses;
    if (!likeliest || likeliest.score === -Infinity) return true;
    const last = this.found[this.size - 1];
    if (!last || !this.fills) return false;
    const bound = f32(likeliest.score / this.penalty(likeliest.ids.length));
    return this.form === "until_full" || last.score >= bound;
  }
}

// OpenNMT-tf's: a hypothesis that ends stays, and competes with those that go on. See
// `StayingBeamSearch`.
class StayingBeam extends Beam {
  extend(candidates, atLimit) {
    const before = this.hypotheses;
    const count = candidates.length / before.length;
    const isFirst = (n) => n % count === 0;
    const extensions = candidates.map(({ parent, id, score: longer }, n) => {
      const { ids, score } = before[parent];
      const ended = hasEnded(ids);
      // What has ended, and at the limit all, has one extension: itself.
      const itself = isFirst(n) ? score : -Infinity;
      const sum = ended || atLimit ? itself : longer;
      const rank = f32(sum / this.penalty(ids.filter(isToken).length + 1));
      return { parent, ended, ids: [...ids, ended ? PAD : id], sum, score: rank };
    });
    const own = extensions.filter((_, n) => isFirst(n));
    const best = extensions.sort(byScore).slice(0, this.size);
    const chosen = atLimit ? own : best;
    // As in OpenNMT-tf, one that ended before has the sum of its new place.
    this.hypotheses = chosen.map(({ ids, ended, sum }, place) => ({
      ids,
      score: ended ? before[place].score : sum,
    }));
    const done = this.hypotheses.filter(({ ids, score }) => hasEnded(ids) && score > -Infinity);
    const isOfText = (id) => isToken(id) && id !== EOS;
    this.found = done.map(({ ids, score }) => ({ ids: ids.filter(isOfText), score }));
    return chosen.map(({ parent }) => parent);
  }

  get isSettled() {
    return this.hypotheses.every(({ ids, score }) => hasEnded(ids) || score === -Infinity);
  }
}

const byScore = (one, other) => one.score === other.score ? 0 : other.score - one.score;
const isToken = (id) => id !== PAD;
const hasEnded = (ids) => [EOS, PAD].includes(ids.at(-1));

// The ids of the `most` best translations, their label and their end left out. A model has
// `start(rows)`, the state before the first token, and `step(ids, position, rows, count, bias,
// factor, state)`: log P of the `count` likeliest of each row, their tokens, and the state.
async function search(model, asked) {
  const beam = Beam.of(asked);
  const count = Math.min(2 * asked.beam_size, asked.pieces);
  let state = model.start(1);
  let rows = [0];
  for (let position = 0; position < asked.limit && !beam.isSettled; position++) {
    const { hypotheses } = beam;
    const atLimit = position + 1 === asked.limit;
    const newest = hypotheses.map(({ ids }) => ids.at(-1) ?? BOS);
    const rules = [bias(asked, hypotheses, position), factor(asked, hypotheses)];
    const given = await model.step(newest, position, rows, count, ...rules, state);
    state = given.state;
    // A label costs nothing, nor does the end at the limit of a beam that is to fill.
    const isFree = position < asked.begin.length || (beam.fills && atLimit);
    const candidates = Array.from(given.logs, (log, n) => {
      const parent = Math.floor(n / count);
      const cost = isFree && n % count === 0 ? 0 : log;
      return { parent, id: Number(given.tokens[n]), score: f32(hypotheses[parent].score + cost) };
    });
    rows = beam.extend(candidates, atLimit);
  }
  return beam.found.slice(0, asked.most).map(({ ids }) => ids.slice(asked.begin.length));
}
