// Models that read texts: guesses for hidden words, labels, tagged words, and a search for similar
// sentences.

// Our mask and an imported BERT's: metadata do not tell which of them the model knows.
const MASKS = ["<mask>", "[MASK]"];
const SHOWN_LABELS = 10;
// Functions of a text that show the answer of an encoder-only model, by the name of its output.
const READERS = { filled: showGuesses, label: showLabels, tags: showTags, vector: showVector };

async function showGuesses(text) {
  const masks = MASKS.join(" or ");
  if (!MASKS.some((mask) => text.includes(mask))) {
    throw new Error(`Write ${masks} in place of a word to guess.`);
  }
  const { filled, pieces, probabilities } = await predict("fill_mask", { text });
  // A model that finds no mask of its own answers a row of empty pieces.
  if (!pieces[0][0]) {
    throw new Error("The model finds no mask of its own in the text. " +
      `Its mask is ${masks}: try the other.`);
  }
  const tables = pieces.map((row, n) => shares(row.map(pieceText), probabilities[n]));
  showReading(filled, ...tables);
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
  const { words, tags, probabilities } = await predict("tag", { text });
  const spans = spansOf(words, tags);
  const names = spans
    .filter(([name]) => name)
    .map(([name, span]) => `${name}: ${span.join(" ")}`);
  const parts = spans.flatMap(([name, span], n) => {
    const phrase = span.join(" ");
    const label = element("sub", { textContent: name });
    return [n ? " " : "", name ? element("mark", {}, phrase, label) : phrase];
  });
  const pairs = words
    .filter((word) => word)
    .map((word, n) => `${word} ${tags[n]}`);
  const sentence = element("p", {}, ...parts);
  const table = shares(pairs, probabilities);
  showReading(names.join("; ") || "No span is found.", sentence, table);
  get("curl").textContent = curlOf(request("tag", { text }));
}

// The text as pairs of a span's name, null outside of spans, and its words, in order.
function spansOf(words, tags) {
  const spans = [];
  words.forEach((word, n) => {
    if (!tags[n]) return;
    const name = tags[n] === "O" ? null : tags[n].replace(/^[BI]-/, "");
    const last = spans[spans.length - 1];
    if (last && last[0] === name && !tags[n].startsWith("B-")) last[1].push(word);
    else spans.push([name, [word]]);
  });
  return spans;
}

async function showVector(text) {
  const vector = await predict("embed", { text });
  const first = vector.slice(0, 4).map((number) => number.toFixed(3));
  showReading(`${vector.length} numbers: ${first.join(", ")} ...`);
  get("curl").textContent = curlOf(request("embed", { text }));
}

// Show an answer: a text, and tables.
function showReading(text, ...tables) {
  get("best").textContent = text;
  get("best").hidden = false;
  get("readings").replaceChildren(...tables);
  // These are nearest to the text before.
  get("found").replaceChildren();
  for (const id of ["nbest", "attention", "next"]) get(id).hidden = true;
  get("search").hidden = !signatures.has("embed");
  get("lacking").textContent = "";
  get("answer").hidden = false;
}

// Make a table of texts with their probabilities as bars.
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

// The numbers of vectors, nearest to the query first, with their cosines. All have length 1.
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
    const text = translated;
    const body = { signature_name: "embed", instances: [text, ...texts] };
    const answer = await ask(`${base}:predict`, body);
    if (text !== translated) return;
    const [query, ...vectors] = answer.predictions;
    const rows = nearest(query, vectors).map(([n, cosine]) =>
      scoreRow(texts[n], cosine.toFixed(3)));
    get("found").replaceChildren(...rows);
  } catch (error) {
    get("error").textContent = error.message;
  }
}

get("look").addEventListener("click", searchSentences);
