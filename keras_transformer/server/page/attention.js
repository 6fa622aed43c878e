// What the heads attend to: a picture of the chosen head, and a thumbnail of each.
function showAttention(aligned) {
  get("attention").hidden = !aligned;
  if (!aligned) return;
  // "" pads the pieces of a batch; the sign for a space shows where a word begins.
  const words = (pieces) => pieces
    .filter((piece) => piece)
    .map((piece) => piece.replace(/^\u2581/, "") || "\u2423");
  const source = words(aligned.source_pieces);
  const target = words(aligned.target_pieces);
  const weights = aligned.attention;
  const layer = get("layer");
  const head = get("head");
  const choices = (count) => Array.from({ length: count }, (_, n) => new Option(n + 1, n));
  layer.replaceChildren(...choices(weights.length));
  head.replaceChildren(...choices(weights[0].length), new Option("mean", "mean"));
  layer.value = weights.length - 1;
  head.value = "mean";
  const grid = get("heads");
  const draw = () => {
    const heads = weights[layer.value];
    const chosen = head.value === "mean" ? mean(heads) : heads[head.value];
    get("picture").replaceChildren(picture(source, target, chosen));
    for (const button of grid.querySelectorAll("button")) {
      const { dataset } = button;
      const isChosen = dataset.layer === layer.value && dataset.head === head.value;
      button.setAttribute("aria-pressed", isChosen);
    }
  };
  const choose = (l, h) => {
    layer.value = l;
    head.value = h;
    draw();
  };
  grid.style.gridTemplateColumns = `auto repeat(${weights[0].length}, max-content)`;
  grid.replaceChildren(...weights.flatMap((heads, l) => {
    const label = element("span", { className: "soft", textContent: `layer ${l + 1}` });
    const thumbnails = heads.map((matrix, h) =>
      thumbnail(matrix, l, h, source.length, target.length, () => choose(l, h)));
    return [label, ...thumbnails];
  }));
  layer.onchange = draw;
  head.onchange = draw;
  draw();
}

function mean(heads) {
  const sum = (t, s) => heads.reduce((total, head) => total + head[t][s], 0);
  return heads[0].map((row, t) => row.map((_, s) => sum(t, s) / heads.length));
}

function picture(source, target, weights) {
  const cell = 26;
  const size = (words) => Math.max(...words.map(widthOf)) + 14;
  const left = size(target);
  const top = size(source);
  const width = source.length * cell;
  const height = target.length * cell;
  const image = svgElement("svg", {
    width: left + width + top / 2,
    height: top + height + 2,
    role: "img",
    "aria-label": "attention",
  });
  source.forEach((word, s) => {
    const place = `translate(${left + (s + .65) * cell} ${top - 6})`;
    image.append(svgElement("text", { transform: `${place} rotate(-60)` }, word));
  });
  target.forEach((word, t) => {
    const place = { x: left - 8, y: top + (t + .67) * cell, "text-anchor": "end" };
    image.append(svgElement("text", place, word));
    source.forEach((from, s) => {
      const square = svgElement("rect", {
        x: left + s * cell,
        y: top + t * cell,
        width: cell - 1,
        height: cell - 1,
        "fill-opacity": weights[t][s],
      });
      const title = `${word} \u2190 ${from}: ${weights[t][s].toFixed(2)}`;
      square.append(svgElement("title", {}, title));
      image.append(square);
    });
  });
  image.append(svgElement("rect", { class: "frame", x: left - .5, y: top - .5, width, height }));
  return image;
}

function thumbnail(weights, layer, head, columns, rows, onclick) {
  const canvas = element("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  for (let t = 0; t < rows; t++) {
    for (let s = 0; s < columns; s++) {
      pen.fillStyle = `rgb(${accent} / ${weights[t][s]})`;
      pen.fillRect(s, t, 1, 1);
    }
  }
  const title = `layer ${layer + 1}, head ${head + 1}`;
  const button = element("button", { type: "button", title, onclick }, canvas);
  Object.assign(button.dataset, { layer, head });
  return button;
}
