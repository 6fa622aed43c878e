"use strict";
// A translator in the browser, and its page. SentencePiece cuts a line into pieces, ONNX Runtime
// runs the graphs, and search.js, which is loaded before, looks for the translation.

const LONGEST_SOURCE = 1024;

// sentencepiece.js is a module for Node, which exports its class and reads the vocabulary as a
// file: here, bytes.
var exports = {};
var require = () => ({ readFileSync: (bytes) => bytes });

// The graphs: see "The graphs, for other languages" in docs/anywhere.md.
class Graphs {
  static async load(folder) {
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = new URL("runtime/", location.href).href;
    const sessions = ["encoder", "decoder"].map((name) =>
      ort.InferenceSession.create(`${folder}${name}.onnx`));
    const [encoder, decoder] = await Promise.all(sessions);
    return Object.assign(new Graphs(), { encoder, decoder });
  }

  // The same for one source, ids with their end.
  async reading(ids) {
    const source = await this.encoder.run({ ids: integers(ids, [1, ids.length]) });
    return Object.assign(new Graphs(), { ...this, source });
  }

  start(rows) {
    const states = this.decoder.inputMetadata.filter(({ name }) => name.startsWith("state_"));
    // An axis that grows has a name for its size, and begins with none.
    const begin = (size) => typeof size === "number" ? Math.max(size, 0) : 0;
    return Object.fromEntries(states.map(({ name, shape }) => {
      const sizes = [rows, ...shape.slice(1).map(begin)];
      const product = sizes.reduce((one, other) => one * other);
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
    const wanted = this.decoder.inputNames.map((name) => [name, feeds[name]]);
    const { logs, tokens, ...next } = await this.decoder.run(Object.fromEntries(wanted));
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
    const answer = await fetched(`${folder}web.json`);
    const settings = await answer.json();
    const vocabularies = settings.vocabularies.map((name) => vocabulary(`${folder}${name}`));
    const [graphs, source, target] = await Promise.all([Graphs.load(folder), ...vocabularies]);
    return Object.assign(new Translator(), { settings, graphs, source, target });
  }

  // The translation of a line; options are beam_size, length_penalty, source_language and
  // target_language.
  async translate(line, options = {}) {
    const text = line.replace(/\p{Surrogate}/gu, "?");
    if (/^[ \t\n\r\v\f]*$/.test(text)) return "";
    const wanted = { ...this.settings, ...options };
    // The best has the most of the translations that are given for terms, and then the highest
    // score.
    const given = wanted.learned_terms ? [...text.matchAll(TERM)] : [];
    const missing = (one) => given.filter(([, , term]) => !one.includes(term)).length;
    const most = given.length ? wanted.beam_size : 1;
    const found = await this.found(text, { ...wanted, most });
    const ranked = found.sort((one, other) => missing(one) - missing(other));
    const best = ranked[0] ?? "";
    if (!wanted.puts_terms_in || !wanted.protect_all || !missing(best)) return best;
    // All terms are put in as protected spans.
    const withSpans = text.replace(TERM, "$1\u27e6$2\u27e7");
    const [all] = await this.found(withSpans, { ...wanted, most: 1 });
    return all ?? "";
  }

  // The translations that the search finds of a text, best first.
  async found(text, wanted) {
    const { marks } = wanted;
    const read = marks ? marked(text, marks.expression, marks.casing) : { shown: text, spans: [] };
    const ids = [...labelled(wanted, "source_language"), ...this.source.encodeIds(read.shown)];
    if (ids.length >= LONGEST_SOURCE) {
      throw new Error(`The line "${text.slice(0, 30)}..." has ${ids.length + 1} tokens, more ` +
        `than the ${LONGEST_SOURCE} allowed. Split it into sentences, a line each.`);
    }
    const model = await this.graphs.reading([...ids, EOS]);
    const found = await search(model, request(wanted, ids, read.spans));
    const texts = found.map((one) => this.target.decodeIds(one.filter(isToken)));
    return marks ? texts.map((one) => putBack(one, read)) : texts;
  }
}

async function fetched(path) {
  const response = await fetch(path);
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

// A language's name for the code of its label, such as de, zh_CN or deu_Latn.
function named(code) {
  try {
    const name = LANGUAGE_NAMES.of(code.replaceAll("_", "-"));
    return name ? `${name} (${code})` : code;
  } catch {
    return code;
  }
}

async function open() {
  if (location.protocol === "file:") {
    throw new Error("A browser lets no page of a file read the model. Serve this folder, such as " +
      "by\npython -m http.server 8000 --directory=FOLDER\nand open http://localhost:8000/");
  }
  translator = await Translator.load();
  const { settings } = translator;
  const codes = Object.keys(settings.labels ?? {});
  const languages = codes.map((code) => [named(code), code]).sort();
  get("languages").hidden = !languages.length;
  for (const name of LANGUAGES) {
    const choices = languages.map((one) => new Option(...one));
    get(name).append(...choices);
  }
  for (const name of [...NUMBERS, ...LANGUAGES]) get(name).value = settings[name];
  get("form").addEventListener("submit", (event) => {
    event.preventDefault();
    told(translateAll);
  });
  get("text").addEventListener("keydown", (event) => {
    const isAsked = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    // While it translates the button is locked, and this with it.
    if (isAsked && !get("go").disabled) get("form").requestSubmit();
  });
}

async function translateAll() {
  const names = translator.settings.labels ? [...NUMBERS, ...LANGUAGES] : NUMBERS;
  const entered = (name) => NUMBERS.includes(name) ? Number(get(name).value) : get(name).value;
  const options = Object.fromEntries(names.map((name) => [name, entered(name)]));
  const lines = get("text").value.split("\n");
  const found = [];
  const began = performance.now();
  for (const line of lines) {
    found.push(await translator.translate(line, options));
    get("best").textContent = found.join("\n");
    get("answer").hidden = false;
    // Lets the browser show it.
    await new Promise((done) => setTimeout(done));
  }
  return `${Math.round(performance.now() - began)} ms`;
}

// Does something, and tells how it went; the button is locked meanwhile, and while there is no
// model.
async function told(work) {
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

if (typeof document !== "undefined") addEventListener("DOMContentLoaded", () => told(open));
