// Models that read texts: guesses for hidden words, labels, tagged words, and a search for
// sentences of like meaning.

// Ours, and an imported BERT's: the metadata does not say which of them the model knows.
const MASKS = ["<mask>", "[MASK]"];
const SHOWN_LABELS = 10;
// What an encoder-only model gives, by the name of the output: a function of the text that shows
// the answer.
const READERS = { filled: showGuesses, label: showLabels, tags: showTags, vector: showVector };

async function showGuesses(text) {
  const masks = MASKS.join(" or ");
  if (!MASKS.some((mask) => text.includes(mask))) {
    throw new Error(`Write ${masks} in place of a word to guess.`);
  }
  const given = await predict("fill_mask", { text });
  // A model that finds no mask of its own gives a row of nothing.
  if (!given.pieces[0][0]) {
    throw new Error("The model finds no mask of its own in the text. " +
      `Its mask is ${masks}: try the other.`);
  }
  const tables = given.pieces.map((pieces, n) => shares(pieces.map(shown), given.probabilities[n]));
  showReading(given.filled, ...tables);
  get("curl").textContent = curlOf(request("fill_mask", { text }));
}

async function showLabels(text) {
  const { label, labels, probabilities } = await predict("classify", { text });
  const numbers = labels.map((_, n) => n);
  const ranking = numbers.sort((a, b) => probabilities[b] - probabilities[a]);
  const first = ranking.slice(0, SHOWN_LABELS);
  const table = shares(first.map((n) => labels[n]), first.map((n) => probabilities[n]));
  showReading(label, table);
  get("curl").textContent = curlOf(request("classify", { text }));
}

async function showTags(text) {
  const given = await predict("tag", { text });
  const spans = spansOf(given.words, given.tags);
  const named = spans
    .filter(([name]) => name)
    .map(([name, words]) => `${name}: ${words.join(" ")}`);
  const pictured = spans.flatMap(([name, words], n) => {
    const span = words.join(" ");
    const tagged = name ? element("mark", {}, span, element("sub", { textContent: name })) : span;
    return [n ? " " : "", tagged];
  });
  const tags = given.words
    .filter((word) => word)
    .map((word, n) => `${word} ${given.tags[n]}`);
  const sentence = element("p", {}, ...pictured);
  const table = shares(tags, given.probabilities);
  showReading(named.join("; ") || "No span is found.", sentence, table);
  get("curl").textContent = curlOf(request("tag", { text }));
}

// A text in order as pairs of a span's name, null outside of spans, and its words.
function spansOf(words, tags) {
  const found = [];
  words.forEach((word, n) => {
    if (!tags[n]) return;
    const name = tags[n] === "O" ? null : tags[n].replace(/^[BI]-/, "");
    const last = found[found.length - 1];
    if (last && last[0] === name && !tags[n].startsWith("B-")) last[1].push(word);
    else found.push([name, [word]]);
  });
  return found;
}

async function showVector(text) {
  const given = await predict("embed", { text });
  const first = given.slice(0, 4).map((one) => one.toFixed(3));
  showReading(`${given.length} numbers: ${first.join(", ")} ...`);
  get("curl").textContent = curlOf(request("embed", { text }));
}

// The answer in words, and tables.
function showReading(words, ...tables) {
  get("best").textContent = words;
  get("best").hidden = false;
  get("readings").replaceChildren(...tables);
  for (const id of ["nbest", "attention", "next"]) get(id).hidden = true;
  get("search").hidden = !signatures.has("embed");
  get("lacking").textContent = "";
  get("answer").hidden = false;
}

// Texts and their probabilities as bars.
function shares(texts, probabilities) {
  const rows = texts.map((text, n) => {
    const percent = 100 * probabilities[n];
    const filling = element("div", { className: "filling" });
    filling.style.width = `${percent}%`;
    const track = element("div", { className: "track" }, filling);
    return element("tr", {},
      element("td", { className: "piece", textContent: text }),
      element("td", { className: "bar" }, track),
      element("td", { className: "score", textContent: `${percent.toFixed(1)} %` }));
  });
  return element("table", { className: "bars" }, element("tbody", {}, ...rows));
}

// Numbers of vectors of length 1, those nearest to the query first, with their cosines.
function nearest(query, vectors) {
  const cosine = (vector) => vector.reduce((sum, number, n) => sum + number * query[n], 0);
  const pairs = vectors.map((vector, n) => [n, cosine(vector)]);
  return pairs.sort(([, a], [, b]) => b - a);
}

async function searchSentences() {
  get("error").textContent = "";
  const lines = get("sentences").value.split("\n");
  const texts = lines.map((line) => line.trim()).filter((line) => line);
  try {
    if (!texts.length) throw new Error("Write sentences to search in, one a line.");
    const body = { signature_name: "embed", instances: [translated, ...texts] };
    const answer = await ask(`${base}:predict`, body);
    const [query, ...vectors] = answer.predictions;
    const rows = nearest(query, vectors).map(([n, cosine]) => scored(texts[n], cosine.toFixed(3)));
    get("found").replaceChildren(...rows);
  } catch (error) {
    get("error").textContent = error.message;
  }
}

get("look").addEventListener("click", searchSentences);
