// What comes next: bars of the likeliest pieces, which a click appends to those that have come.

const END = "</s>";
const OPTIONS = ["temperature", "top_k", "top_p"];
let came = [];
let asked = 0;

// The sign for a space says where a word begins.
const shown = (piece) => piece.replaceAll("\u2581", "\u2423");

function showNextPieces() {
  get("next").hidden = !signatures.has("next_pieces");
  came = [];
  return followPieces();
}

async function followPieces() {
  if (get("next").hidden) return;
  const buttons = came.map((piece, place) => element("button", {
    type: "button",
    textContent: shown(piece),
    title: "Go back to before this piece",
    onclick: () => {
      came.length = place;
      followAgain();
    },
  }));
  get("came").replaceChildren(...buttons);
  for (const name of OPTIONS) get(`${name}_value`).textContent = get(name).value;
  asked += 1;
  const number = asked;
  if (came.at(-1) === END) return showBars(null);
  const given = await predict("next_pieces", {
    text: translated,
    prefix: came.join(" "),
    temperature: Number(get("temperature").value),
    top_k: Math.round(Number(get("top_k").value)),
    top_p: Number(get("top_p").value),
  });
  // An answer that was overtaken by a later question is not shown.
  if (number === asked) showBars(given);
}

const followAgain = () => followPieces().catch((error) => {
  get("error").textContent = error.message;
});

function showBars(given) {
  get("ended").hidden = given !== null;
  const barOf = (piece, n) => bar(piece, given.probabilities[n], given.model_probabilities[n]);
  const rows = given === null ? [] : given.pieces.map(barOf);
  get("bars").replaceChildren(...rows);
}

// The model's probability as a frame, the one that is drawn by as the filling.
function bar(piece, probability, ofModel) {
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
  const frame = element("div", { className: "frame" });
  const filling = element("div", { className: "filling" });
  frame.style.width = `${100 * ofModel}%`;
  filling.style.width = `${100 * probability}%`;
  const button = element("button", {
    type: "button",
    textContent: shown(piece),
    disabled: !probability,
    onclick: () => {
      came.push(piece);
      followAgain();
    },
  });
  const track = element("div", { className: "track" }, frame, filling);
  return element("tr", { title: `P of the model: ${percent(ofModel)}` },
    element("td", { className: "piece" }, button),
    element("td", { className: "bar" }, track),
    element("td", { className: "score", textContent: percent(probability) }));
}

for (const name of OPTIONS) get(name).addEventListener("input", followAgain);
