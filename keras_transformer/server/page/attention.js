// What the heads attend to: a picture of the chosen one, and a small one of each.
function showAttention(aligned) {
  get("attention").hidden = !aligned;
  if (!aligned) return;
  // "" pads the pieces of a batch; the sign for a space says where a word begins.
  const words = (pieces) => pieces.filter((piece) => piece).map((piece) => piece.replace(/^\u2581/, "") || "\u2423");
  const source = words(aligned.source_pieces), target = words(aligned.target_pieces), weights = aligned.attention;
  const layer = get("layer"), head = get("head");
  const choices = (count) => Array.from({ length: count }, (_, n) => new Option(n + 1, n));
  layer.replaceChildren(...choices(weights.length));
  head.replaceChildren(...choices(weights[0].length), new Option("mean", "mean"));
  layer.value = weights.length - 1;
  head.value = "mean";
  const grid = get("heads");
  const draw = () => {
    const chosen = weights[layer.value];
    get("picture").replaceChildren(picture(source, target, head.value === "mean" ? mean(chosen) : chosen[head.value]));
    for (const button of grid.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button.dataset.layer === layer.value && button.dataset.head === head.value);
  };
  grid.style.gridTemplateColumns = `auto repeat(${weights[0].length}, max-content)`;
  grid.replaceChildren(...weights.flatMap((heads, l) => [
    element("span", { className: "soft", textContent: `layer ${l + 1}` }),
    ...heads.map((one, h) => thumbnail(one, l, h, source.length, target.length, () => { layer.value = l; head.value = h; draw(); }))]));
  layer.onchange = head.onchange = draw;
  draw();
}

const mean = (heads) => heads[0].map((row, t) => row.map((_, s) => heads.reduce((sum, head) => sum + head[t][s], 0) / heads.length));

function picture(source, target, weights) {
  const cell = 26, size = (words) => Math.max(...words.map(widthOf)) + 14;
  const left = size(target), top = size(source), width = left + source.length * cell, height = top + target.length * cell;
  const image = drawn("svg", { width: width + top / 2, height: height + 2, role: "img", "aria-label": "attention" });
  source.forEach((word, s) => image.append(drawn("text",
    { transform: `translate(${left + (s + .65) * cell} ${top - 6}) rotate(-60)` }, word)));
  target.forEach((word, t) => {
    image.append(drawn("text", { x: left - 8, y: top + (t + .67) * cell, "text-anchor": "end" }, word));
    source.forEach((from, s) => {
      const square = drawn("rect", { x: left + s * cell, y: top + t * cell, width: cell - 1, height: cell - 1, "fill-opacity": weights[t][s] });
      square.append(drawn("title", {}, `${word} \u2190 ${from}: ${weights[t][s].toFixed(2)}`));
      image.append(square);
    });
  });
  image.append(drawn("rect", { class: "frame", x: left - .5, y: top - .5, width: source.length * cell, height: target.length * cell }));
  return image;
}

function thumbnail(weights, layer, head, columns, rows, onclick) {
  const canvas = element("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  for (let t = 0; t < rows; t++) for (let s = 0; s < columns; s++) {
    pen.fillStyle = `rgb(${accent} / ${weights[t][s]})`;
    pen.fillRect(s, t, 1, 1);
  }
  const button = element("button", { type: "button", title: `layer ${layer + 1}, head ${head + 1}`, onclick }, canvas);
  Object.assign(button.dataset, { layer, head });
  return button;
}
