// What comes next: bars of the likeliest pieces. A click on one appends it to the prefix.

const END = "</s>";
const OPTIONS = ["temperature", "top_k", "top_p"];
// The pieces so far, and the number of the latest question.
let prefix = [];
let latest = 0;

// The sign for a space shows where a word begins.
const pieceText = (piece) => piece.replaceAll("\u2581", "\u2423");

function showNextPieces() {
  get("next").hidden = !signatures.has("next_pieces");
  prefix = [];
  return updateNextPieces();
}

async function updateNextPieces() {
  if (get("next").hidden) return;
  const buttons = prefix.map((piece, place) => element("button", {
    type: "button",
    textContent: pieceText(piece),
    title: "Go back to before this piece",
    onclick: () => {
      prefix.length = place;
      refreshNextPieces();
    },
  }));
  get("came").replaceChildren(...buttons);
  for (const name of OPTIONS) get(`${name}_value`).textContent = get(name).value;
  latest += 1;
  const number = latest;
  if (prefix.at(-1) === END) return showBars(null);
  const next = await predict("next_pieces", {
    text: translated,
    prefix: prefix.join(" "),
    temperature: Number(get("temperature").value),
    top_k: Math.round(Number(get("top_k").value)),
    top_p: Number(get("top_p").value),
  });
  // Ignore an answer to a question that is not the latest.
  if (number === latest) showBars(next);
}

function refreshNextPieces() {
  get("error").textContent = "";
  const number = latest + 1;
  return updateNextPieces().catch((error) => {
    if (number === latest) get("error").textContent = error.message;
  });
}

// Show the next pieces as bars; null: the text has ended.
function showBars(next) {
  get("ended").hidden = next !== null;
  const barOf = (piece, n) => bar(piece, next.probabilities[n], next.model_probabilities[n]);
  const rows = next === null ? [] : next.pieces.map(barOf);
  get("bars").replaceChildren(...rows);
}

// Make a row whose frame is the model's probability, and whose filling that of sampling.
function bar(piece, probability, ofModel) {
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
  const frame = element("div", { className: "frame" });
  const filling = element("div", { className: "filling" });
  frame.style.width = `${100 * ofModel}%`;
  filling.style.width = `${100 * probability}%`;
  const button = element("button", {
    type: "button",
    textContent: pieceText(piece),
    disabled: !probability,
    onclick: () => {
      prefix.push(piece);
      refreshNextPieces();
    },
  });
  const track = element("div", { className: "track" }, frame, filling);
  return element("tr", { title: `P of the model: ${percent(ofModel)}` },
    element("td", { className: "piece" }, button),
    element("td", { className: "bar" }, track),
    element("td", { className: "score", textContent: percent(probability) }));
}

for (const name of OPTIONS) get(name).addEventListener("input", refreshNextPieces);
