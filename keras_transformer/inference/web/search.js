"use strict";
// The beam search of section 6.1 (Vaswani et al. 2017) for the translation Y of X with the highest
//     log P(Y | X) / ((5 + |Y|) / 6)^alpha        (Wu et al. 2016, equation 14 without coverage)
// by a model of log P of the next piece. For one sentence it finds the translations of
// keras_transformer/decoding/numpy_search.py and numpy_rules.py.

const PAD = 0;
const BOS = 2;
const EOS = 3;
const MOST_MARKS = 32;
const f32 = Math.fround;

// The tokens of a length such as 1.5x or +50, given as numerator, denominator and summand, for a
// source of `tokens`.
function inTokens([numerator, denominator, more], tokens) {
  const share = Math.floor((numerator * tokens + denominator - 1) / denominator);
  return Math.max(share + more, 1);
}

// How often an id occurs in a list.
const times = (id, ids) => ids.filter((token) => token === id).length;

// Protected spans: keras_transformer's pipelines/vocabularies/protected_spans.py.
const TERM = /\u27ea( ?)[^\u27ea\u27f9]*\u27f9 ([^\u27eb]+)\u27eb/g;
const mark = (number) => `\u27e6${number % MOST_MARKS + 1}\u27e7`;

// A text with marks in place of its protected spans, the spans, and whether it was all capitals.
function marked(text, expression, casing) {
  const spans = [];
  const shown = text.replace(new RegExp(expression, "g"), (span) => {
    spans.push(span);
    return mark(spans.length - 1);
  });
  return casing ? { spans, ...cased(shown, casing) } : { spans, shown, isCapital: false };
}

// A text that is all upper or all lower case, in the case of the training text: see
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

// A translation with the spans of its source in place of its marks.
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
  const openers = Array(MOST_MARKS).fill(-1);
  const opened = new Map();
  if (spans.length > MOST_MARKS) return openers;
  spans.forEach((span, place) => {
    const [, closes, name, rest] = span.match(/^<(\/?)([A-Za-z][\w:.-]*)([^<>]*)>$/) ?? [];
    if (name === undefined) return;
    if (!opened.has(name)) opened.set(name, []);
    if (closes) openers[place] = opened.get(name).pop() ?? -1;
    else if (!rest.endsWith("/")) opened.get(name).push(place);
  });
  return openers;
}

// The ids that texts in a language begin with: its label, or none if the model has no labels.
function labelled({ labels, ...settings }, name) {
  const language = settings[name];
  if (language == null && !labels) return [];
  if (Object.hasOwn(labels ?? {}, language)) return [labels[language]];
  const has = labels
    ? `${Object.keys(labels).sort().join(", ")}. Name one of these.`
    : "no labels of languages. Leave it out.";
  throw new Error(`${name}=${language}: the model has ${has}`);
}

// The options of the search for one translation, from the settings, the ids of the source without
// EOS, and its spans.
function request(settings, source, spans) {
  const { barred, marks } = settings;
  const tokens = source.length + 1;
  const begin = labelled(settings, "target_language");
  const limit = Math.max(inTokens(settings.max_length, tokens), begin.length + 1);
  const minimum = Math.min(inTokens(settings.min_length, tokens), limit);
  const options = { ...settings, begin, limit, minimum, count: null };
  if (!marks || !settings.protect_all) return options;
  const count = marks.source.map((id) => times(id, source));
  const total = count.reduce((sum, number) => sum + number, 0);
  // Without spans in the source, bar all marks.
  if (!total) return { ...options, barred: [...barred, ...marks.target] };
  const longest = Math.max(limit, begin.length + total + 1);
  return { ...options, limit: longest, count, openedBy: openings(spans), ids: marks.target };
}

// What a step adds to log P of hypotheses: one row for all, or a row for each.
function bias(options, hypotheses, position) {
  const shared = new Float32Array(options.pieces);
  for (const id of options.barred) shared[id] = -Infinity;
  const forced = options.begin[position] ?? (position + 1 === options.limit ? EOS : null);
  if (forced !== null) {
    shared.fill(-Infinity);
    shared[forced] = 0;
    return [shared];
  }
  if (position + 1 < options.minimum) shared[EOS] = -Infinity;
  const n = options.no_repeat_ngram_size;
  if (!options.count && !options.forbidden && !n) return [shared];
  return hypotheses.map(({ ids }) => {
    const row = options.forbidden ? forbid(shared, ids, options.forbidden) : shared.slice();
    const repeated = n ? repeating(ids, n) : [];
    for (const id of repeated) row[id] = -Infinity;
    return options.count ? keepSpans(row, ids, position, options) : row;
  });
}

// The tokens that follow earlier occurrences of the last n - 1 tokens.
function repeating(ids, n) {
  const context = ids.slice(ids.length - n + 1).join();
  return ids.filter((_, end) => end >= n - 1 && ids.slice(end - n + 1, end).join() === context);
}

// What positive logits are divided by, and others multiplied by: for earlier tokens the penalty.
function factor({ pieces, repetition_penalty: penalty }, hypotheses) {
  if (penalty === 1) return [new Float32Array([1])];
  return hypotheses.map(({ ids }) => {
    const row = new Float32Array(pieces).fill(1);
    for (const id of ids) row.fill(penalty, id, id + 1);
    return row;
  });
}

// Bar the pieces that would complete a forbidden word: keras_transformer's
// decoding/forbidden_words.py.
function forbid(row, tokens, { first, changed }) {
  const after = (state, id) => changed[state][id] ?? first[id];
  const state = tokens.reduce((earlier, id) => Math.max(after(earlier, id), 0), 0);
  return row.map((value, id) => after(state, id) < 0 ? -Infinity : value);
}

// A translation may end once each mark has come as often as in the source. A closing tag must close
// the innermost open one.
function keepSpans(row, tokens, position, { count, openedBy, ids, limit }) {
  const last = ids.map((id) => tokens.lastIndexOf(id));
  const missing = ids.map((id, m) => count[m] - times(id, tokens));
  const left = missing.reduce((sum, number) => sum + Math.max(number, 0), 0);
  // The position of the open tag that a mark would close now.
  const open = openedBy.map((opener, m) => opener >= 0 && last[m] < 0 ? last[opener] : -1);
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

// A beam of hypotheses {ids, score}, and those that are `finished`, {ids, score}, best first and
// without EOS. One that ends leaves the beam; in Marian's ("shrinking") its place goes too. Hugging
// Face's stop "until_full" or "until_worse" (keras_transformer/decoding/other_beams.py).
class Beam {
  constructor({ beam_size: size, beam_form, length_penalty, length_penalty_form, limit, most }) {
    const alpha = f32(size > 1 ? length_penalty : 0);
    const base = length_penalty_form === "length" ? (n) => n : (n) => f32((5 + n) / 6);
    this.size = size;
    this.limit = limit;
    this.most = Math.min(most, size);
    this.hypotheses = [{ ids: [], score: 0 }];
    this.places = size;
    this.finished = [];
    this.form = size > 1 ? beam_form : "leaving";
    this.fills = this.form.startsWith("until_");
    this.penalty = (length) => f32(base(length) ** alpha);
  }

  static of(options) {
    const stays = options.beam_size > 1 && options.beam_form === "staying";
    return stays ? new StayingBeam(options) : new Beam(options);
  }

  // Take one step. `candidates` {parent, id, score} are as many for each hypothesis, the likeliest
  // first. Returns the parents of the hypotheses that continue.
  extend(candidates) {
    const shrinks = this.form === "shrinking";
    const inBeam = this.places;
    const before = this.hypotheses;
    const best = candidates.sort(byScore).slice(0, 2 * this.size);
    best.forEach((candidate, place) => {
      if (place >= inBeam && shrinks) candidate.score = -Infinity;
      const { parent, id, score } = candidate;
      if (id !== EOS || place >= inBeam || score === -Infinity) return;
      const { ids } = before[parent];
      if (shrinks) this.places--;
      this.finished.push({ ids, score: f32(score / this.penalty(ids.length + 1)) });
    });
    this.finished = this.finished.sort(byScore).slice(0, this.size);
    const ongoing = best.filter(({ id, score }) => id !== EOS && this.mayWin(score));
    const alive = ongoing.slice(0, this.size);
    this.hypotheses = alive.map(({ parent, id, score }, place) => ({
      ids: [...before[parent].ids, id],
      score: place < this.places ? score : -Infinity,
    }));
    return alive.map(({ parent }) => parent);
  }

  // Whether a hypothesis may still become one of the best: its log P cannot rise, and its penalty
  // is at most that of the limit. The paper's beam drops the others, and is settled without any.
  mayWin(score) {
    const last = this.finished[this.most - 1];
    return this.form !== "leaving" || !last || f32(score / this.penalty(this.limit)) > last.score;
  }

  get isSettled() {
    const [likeliest] = this.hypotheses;
    if (!likeliest || likeliest.score === -Infinity) return true;
    const last = this.finished[this.size - 1];
    if (!last || !this.fills) return false;
    const bound = f32(likeliest.score / this.penalty(likeliest.ids.length));
    return this.form === "until_full" || last.score >= bound;
  }
}

// OpenNMT-tf's beam: a hypothesis that ends stays, and competes with those that continue. See
// `StayingBeamSearch`.
class StayingBeam extends Beam {
  extend(candidates, atLimit) {
    const before = this.hypotheses;
    const count = candidates.length / before.length;
    const isFirst = (n) => n % count === 0;
    const extensions = candidates.map(({ parent, id, score: longer }, n) => {
      const { ids, score } = before[parent];
      const ended = hasEnded(ids);
      // A hypothesis that has ended, and at the limit any, has one extension: itself.
      const itself = isFirst(n) ? score : -Infinity;
      const sum = ended || atLimit ? itself : longer;
      const rank = f32(sum / this.penalty(ids.filter(isToken).length + 1));
      return { parent, ended, ids: [...ids, ended ? PAD : id], sum, score: rank };
    });
    const own = extensions.filter((_, n) => isFirst(n));
    const best = extensions.sort(byScore).slice(0, this.size);
    const chosen = atLimit ? own : best;
    // As in OpenNMT-tf, one that ended earlier gets the score of the place it moves to.
    this.hypotheses = chosen.map(({ ids, ended, sum }, place) => ({
      ids,
      score: ended ? before[place].score : sum,
    }));
    const complete = this.hypotheses.filter(({ ids, score }) => hasEnded(ids) && score > -Infinity);
    const isOfText = (id) => isToken(id) && id !== EOS;
    this.finished = complete.map(({ ids, score }) => ({ ids: ids.filter(isOfText), score }));
    return chosen.map(({ parent }) => parent);
  }

  get isSettled() {
    return this.hypotheses.every(({ ids, score }) => hasEnded(ids) || score === -Infinity);
  }
}

const byScore = (a, b) => a.score === b.score ? 0 : b.score - a.score;
const isToken = (id) => id !== PAD;
const hasEnded = (ids) => [EOS, PAD].includes(ids.at(-1));

// The ids of the `most` best translations, without label and EOS. A model has `start(rows)`, the
// state before the first token, and `step(ids, position, rows, count, bias, factor, state)`: log P
// of the `count` likeliest tokens of each row, the tokens, and the new state.
async function search(model, options) {
  const beam = Beam.of(options);
  const count = Math.min(2 * options.beam_size, options.pieces);
  let state = model.start(1);
  let rows = [0];
  for (let position = 0; position < options.limit && !beam.isSettled; position++) {
    const { hypotheses } = beam;
    const atLimit = position + 1 === options.limit;
    const newest = hypotheses.map(({ ids }) => ids.at(-1) ?? BOS);
    const rules = [bias(options, hypotheses, position), factor(options, hypotheses)];
    const next = await model.step(newest, position, rows, count, ...rules, state);
    state = next.state;
    // A label costs nothing, nor does EOS at the limit of a beam that is to be filled.
    const isFree = position < options.begin.length || (beam.fills && atLimit);
    const candidates = Array.from(next.logs, (log, n) => {
      const parent = Math.floor(n / count);
      const cost = isFree && n % count === 0 ? 0 : log;
      return { parent, id: Number(next.tokens[n]), score: f32(hypotheses[parent].score + cost) };
    });
    rows = beam.extend(candidates, atLimit);
  }
  return beam.finished.slice(0, options.most).map(({ ids }) => ids.slice(options.begin.length));
}
