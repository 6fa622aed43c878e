"use strict";
// A translator in the browser, and its page. SentencePiece cuts a line into pieces, ONNX Runtime
// runs the graphs, and search.js, which is loaded first, searches for the translation.

const LONGEST_SOURCE = 1024;

// sentencepiece.js is a module for Node, which exports its class and reads the vocabulary from a
// file. Here `readFileSync` returns the bytes that it is called with.
var exports = {};
var require = () => ({ readFileSync: (bytes) => bytes });

// The graphs: see "The graphs, for other languages" in docs/anywhere.md.
class Graphs {
  static async load(addressOf) {
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = new URL("runtime/", location.href).href;
    const sessions = ["encoder", "decoder"].map((name) =>
      ort.InferenceSession.create(addressOf(`${name}.onnx`)));
    const [encoder, decoder] = await Promise.all(sessions);
    return Object.assign(new Graphs(), { encoder, decoder });
  }

  // The graphs with one encoded source, ids with EOS.
  async reading(ids) {
    const source = await this.encoder.run({ ids: integers(ids, [1, ids.length]) });
    return Object.assign(new Graphs(), { ...this, source });
  }

  start(rows) {
    const states = this.decoder.inputMetadata.filter(({ name }) => name.startsWith("state_"));
    // The size of an axis that grows is a name in the graph, and 0 at first.
    const begin = (size) => typeof size === "number" ? Math.max(size, 0) : 0;
    return Object.fromEntries(states.map(({ name, shape }) => {
      const sizes = [rows, ...shape.slice(1).map(begin)];
      const product = sizes.reduce((a, b) => a * b);
      return [name, floats(new Float32Array(product), sizes)];
    }));
  }

  async step(ids, position, rows, count, bias, factor, state) {
    const feeds = {
      ids: integers(ids, [1, ids.length]),
      position: integers([position], []),
      rows: integers(rows, [rows.length]),
      count: integers([count], []),
      bias: stacked(bias),
      factor: stacked(factor),
      ...this.source,
      ...state,
    };
    const inputs = this.decoder.inputNames.map((name) => [name, feeds[name]]);
    const { logs, tokens, ...next } = await this.decoder.run(Object.fromEntries(inputs));
    const renamed = Object.entries(next).map(([name, tensor]) =>
      [name.replace("next", "state"), tensor]);
    return { logs: logs.data, tokens: tokens.data, state: Object.fromEntries(renamed) };
  }
}

const integers = (numbers, shape) => new ort.Tensor("int32", Int32Array.from(numbers), shape);
const floats = (numbers, shape) => new ort.Tensor("float32", numbers, shape);

function stacked(rows) {
  const all = new Float32Array(rows.length * rows[0].length);
  rows.forEach((row, n) => all.set(row, n * row.length));
  return floats(all, [rows.length, rows[0].length]);
}

class Translator {
  static async load(folder = "") {
    // The browser may have kept files of another model that was at this address before.
    const answer = await fetched(`${folder}web.json`, { cache: "no-store" });
    const settings = await answer.json();
    const addressOf = (name) => `${folder}${name}?${settings.exported}`;
    const vocabularies = settings.vocabularies.map((name) => vocabulary(addressOf(name)));
    const [graphs, source, target] = await Promise.all([Graphs.load(addressOf), ...vocabularies]);
    return Object.assign(new Translator(), { settings, graphs, source, target });
  }

  // The translation of a line; options are beam_size, length_penalty, source_language and
  // target_language.
  async translate(line, options = {}) {
    const text = line.replace(/\p{Surrogate}/gu, "?");
    if (/^[\p{Z}\p{Cc}\p{Cf}]*$/u.test(text)) return "";
    const settings = { ...this.settings, ...options };
    // The best translation has the most of the given terms, and then the highest score.
    const terms = settings.learned_terms ? [...text.matchAll(TERM)] : [];
    const missing = (output) => terms.filter(([, , term]) => !output.includes(term)).length;
    const most = terms.length ? settings.beam_size : 1;
    const nbest = await this.nbest(text, { ...settings, most });
    const ranked = nbest.sort((a, b) => missing(a) - missing(b));
    const best = ranked[0] ?? "";
    if (!settings.puts_terms_in || !settings.protect_all || !missing(best)) return best;
    // Translate again with all terms put in as protected spans.
    const withSpans = text.replace(TERM, "$1\u27e6$2\u27e7");
    const [again] = await this.nbest(withSpans, { ...settings, most: 1 });
    return again ?? "";
  }

  // The `most` best translations of a text, best first.
  async nbest(text, settings) {
    const { marks } = settings;
    const read = marks ? marked(text, marks.expression, marks.casing) : { shown: text, spans: [] };
    const ids = [...labelled(settings, "source_language"), ...this.source.encodeIds(read.shown)];
    if (ids.length >= LONGEST_SOURCE) {
      throw new Error(`The line "${text.slice(0, 30)}..." has ${ids.length + 1} tokens, more ` +
        `than the ${LONGEST_SOURCE} allowed. Split it into sentences, a line each.`);
    }
    const model = await this.graphs.reading([...ids, EOS]);
    const outputs = await search(model, request(settings, ids, read.spans));
    const texts = outputs.map((tokens) => this.target.decodeIds(tokens.filter(isToken)));
    return marks ? texts.map((output) => putBack(output, read)) : texts;
  }
}

async function fetched(path, options = {}) {
  const response = await fetch(path, options);
  if (!response.ok) {
    throw new Error(`${path} is not there (HTTP ${response.status}). Export the folder again.`);
  }
  return response;
}

async function vocabulary(path) {
  const pieces = new exports.SentencePieceProcessor();
  const answer = await fetched(path);
  await pieces.load(new Uint8Array(await answer.arrayBuffer()));
  return pieces;
}

// The page.
const get = (id) => document.getElementById(id);
const NUMBERS = ["beam_size", "length_penalty"];
const LANGUAGES = ["source_language", "target_language"];
const LANGUAGE_NAMES = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
let translator = null;

// The name of the language that a label's code such as de, zh_CN or deu_Latn stands for.
function languageName(code) {
  try {
    const name = LANGUAGE_NAMES.of(code.replaceAll("_", "-"));
    return name ? `${name} (${code})` : code;
  } catch {
    return code;
  }
}

async function open() {
  if (location.protocol === "file:") {
    throw new Error("A page opened from a file cannot read the model. Serve its folder, for " +
      "example by\npython -m http.server 8000 --directory=FOLDER\nand open http://localhost:8000/");
  }
  translator = await Translator.load();
  const { settings } = translator;
  document.title = settings.title;
  document.querySelector("h1").textContent = settings.title;
  const codes = Object.keys(settings.labels ?? {});
  const languages = codes.map((code) => [languageName(code), code]).sort();
  get("languages").hidden = !languages.length;
  for (const name of LANGUAGES) {
    const choices = languages.map(([label, code]) => new Option(label, code));
    get(name).append(...choices);
  }
  for (const name of [...NUMBERS, ...LANGUAGES]) get(name).value = settings[name];
  get("form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(translateAll);
  });
  get("text").addEventListener("keydown", (event) => {
    const submits = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    // Not while a translation runs, which locks the button.
    if (submits && !get("go").disabled) get("form").requestSubmit();
  });
}

async function translateAll() {
  const names = translator.settings.labels ? [...NUMBERS, ...LANGUAGES] : NUMBERS;
  const entered = (name) => NUMBERS.includes(name) ? Number(get(name).value) : get(name).value;
  const options = Object.fromEntries(names.map((name) => [name, entered(name)]));
  const lines = get("text").value.split("\n");
  const translations = [];
  // It has those of the text before.
  get("answer").hidden = true;
  const began = performance.now();
  for (const line of lines) {
    translations.push(await translator.translate(line, options));
    get("best").textContent = translations.join("\n");
    get("answer").hidden = false;
    // Let the browser show it.
    await new Promise((resolve) => setTimeout(resolve));
  }
  return `${Math.round(performance.now() - began)} ms`;
}

// Do some work, and show its result or its error. The button is locked during it, and until there
// is a model.
async function attempt(work) {
  get("error").textContent = "";
  get("go").disabled = true;
  try {
    get("took").textContent = await work() ?? "";
  } catch (error) {
    get("took").textContent = "";
    get("error").textContent = error.message;
  }
  get("go").disabled = !translator;
}

if (typeof document !== "undefined") addEventListener("DOMContentLoaded", () => attempt(open));
