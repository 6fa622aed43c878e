// Models that read texts: guesses for hidden words, labels, tagged words, and a search for sentences of like meaning.

// Ours, and an imported BERT's: the metadata does not say which of them the model knows.
const MASKS = ["<mask>", "[MASK]"];
const SHOWN_LABELS = 10;
// What an encoder-only model gives, by the name of the output: a function of the text that shows the answer.
const READERS = { filled: showGuesses, label: showLabels, tags: showTags, vector: showVector };

async function showGuesses(text) {
  if (!MASKS.some((mask) => text.includes(mask)))
    throw new Error(`Write ${MASKS.join(" or ")} in place of a word to guess.`);
  const given = await predict("fill_mask", { text });
  // A model that finds no mask of its own gives a row of nothing.
  if (!given.pieces[0][0])
    throw new Error(`The model finds no mask of its own in the text. Its mask is ${MASKS.join(" or ")}: try the other.`);
  const tables = given.pieces.map((pieces, n) => shares(pieces.map(shown), given.probabilities[n]));
  showReading(given.filled, ...tables);
  get("curl").textContent = curlOf(request("fill_mask", { text }));
}

async function showLabels(text) {
  const given = await predict("classify", { text });
  const order = given.labels.map((_, n) => n).sort((a, b) => given.probabilities[b] - given.probabilities[a]);
  const first = order.slice(0, SHOWN_LABELS);
  showReading(given.label, shares(first.map((n) => given.labels[n]), first.map((n) => given.probabilities[n])));
  get("curl").textContent = curlOf(request("classify", { text }));
}

async function showTags(text) {
  const given = await predict("tag", { text });
  const spans = spansOf(given.words, given.tags);
  const named = spans.filter(([name]) => name).map(([name, words]) => `${name}: ${words.join(" ")}`);
  const pictured = spans.flatMap(([name, words], n) => [n ? " " : "", name
    ? element("mark", {}, words.join(" "), element("sub", { textContent: name }))
    : words.join(" ")]);
  const words = given.words.filter((word) => word).map((word, n) => `${word} ${given.tags[n]}`);
  showReading(named.join("; ") || "No span is found.", element("p", {}, ...pictured), shares(words, given.probabilities));
  get("curl").textContent = curlOf(request("tag", { text }));
}

// A text in order as pairs of a span's name, null outside of spans, and its words.
function spansOf(words, tags) {
  const found = [];
  words.forEach((word, n) => {
    if (!tags[n]) return;
    const name = tags[n] === "O" ? null : tags[n].replace(/^[BI]-/, ""), last = found[found.length - 1];
    if (last && last[0] === name && !tags[n].startsWith("B-")) last[1].push(word);
    else found.push([name, [word]]);
  });
  return found;
}

async function showVector(text) {
  const given = await predict("embed", { text });
  showReading(`${given.length} numbers: ${given.slice(0, 4).map((one) => one.toFixed(3)).join(", ")} ...`);
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
    const filling = element("div", { className: "filling" });
    filling.style.width = `${100 * probabilities[n]}%`;
    return element("tr", {},
      element("td", { className: "piece", textContent: text }),
      element("td", { className: "bar" }, element("div", { className: "track" }, filling)),
      element("td", { className: "score", textContent: `${(100 * probabilities[n]).toFixed(1)} %` }));
  });
  return element("table", { className: "bars" }, element("tbody", {}, ...rows));
}

// Numbers of vectors of length 1, those nearest to the query first, with their cosines.
function nearest(query, vectors) {
  const cosine = (vector) => vector.reduce((sum, number, n) => sum + number * query[n], 0);
  return vectors.map((vector, n) => [n, cosine(vector)]).sort(([, a], [, b]) => b - a);
}

async function searchSentences() {
  get("error").textContent = "";
  const texts = get("sentences").value.split("\n").map((line) => line.trim()).filter((line) => line);
  try {
    if (!texts.length) throw new Error("Write sentences to search in, one a line.");
    const body = { signature_name: "embed", instances: [translated, ...texts] };
    const [query, ...vectors] = (await ask(`${base}:predict`, body)).predictions;
    get("found").replaceChildren(...nearest(query, vectors).map(([n, cosine]) =>
      element("tr", {}, element("td", { textContent: texts[n] }), element("td", { className: "score", textContent: cosine.toFixed(3) }))));
  } catch (error) {
    get("error").textContent = error.message;
  }
}

get("look").addEventListener("click", searchSentences);
