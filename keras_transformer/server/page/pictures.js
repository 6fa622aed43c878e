// A picture that is dropped on the page: its class, and what the model looked at.
let pictureSize = null;

// Show the form for pictures if the model takes them.
function offerPictures(definitions) {
  const isOffered = "classify_png" in definitions && "attend_png" in definitions;
  get("form").hidden = isOffered;
  get("pictures").hidden = !isOffered;
  if (!isOffered) return;
  const { dim } = definitions.attend_png.outputs.seen.tensor_shape;
  const [, height, width] = dim.map((one) => Number(one.size));
  pictureSize = { height, width };
  get("size").textContent = `It is drawn with ${width} x ${height} pixels.`;
}

// Where a picture of one size goes inside another: as large as fits, in the middle.
function fitted(width, height, room) {
  const scale = Math.min(room.width / width, room.height / height);
  const size = [width * scale, height * scale];
  return [(room.width - size[0]) / 2, (room.height - size[1]) / 2, ...size];
}

// A picture's bytes in base64, as PNG of the model's size; what is left free is black.
async function pngOf(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch (error) {
    throw new Error(`${file.name} is no picture that the browser can read.`);
  }
  const canvas = element("canvas", pictureSize);
  const pen = canvas.getContext("2d");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(bitmap, ...fitted(bitmap.width, bitmap.height, pictureSize));
  return canvas.toDataURL("image/png").replace(/^.*,/, "");
}

async function classify(file) {
  get("error").textContent = "";
  try {
    const png = { b64: await pngOf(file) };
    const found = await predict("classify_png", { png });
    const { seen, attention } = await predict("attend_png", { png });
    showClasses(found);
    showLooks(seen, attention);
    get("picture_curl").textContent = curlOf(request("classify_png", { png }));
    get("looked").hidden = false;
  } catch (error) {
    get("error").textContent = error.message;
    get("looked").hidden = true;
  }
}

// Classes and their probabilities, the likeliest first.
const ranked = (found, most) => found.classes
  .map((name, n) => [name, found.probabilities[n]])
  .sort(([, one], [, other]) => other - one)
  .slice(0, most);

function showClasses(found) {
  get("class").textContent = found.class;
  const rows = ranked(found, 10).map(([name, probability]) =>
    scored(name, `${(100 * probability).toFixed(1)} %`));
  get("classes").replaceChildren(...rows);
}

// The opacity of each pixel under the mean of a layer's heads, (H, W), from 0 to 1.
function opacities(heads, height, width) {
  const sum = (r, c) => heads.reduce((total, head) => total + head[r][c], 0);
  const whole = heads[0].map((row, r) => row.map((_, c) => sum(r, c)));
  const most = Math.max(...whole.flat()) || 1;
  const down = height / whole.length;
  const across = width / whole[0].length;
  const opacity = (y, x) => whole[Math.floor(y / down)][Math.floor(x / across)] / most;
  const line = (y) => Array.from({ length: width }, (_, x) => opacity(y, x));
  return Array.from({ length: height }, (_, y) => line(y));
}

function showLooks(seen, attention) {
  const height = seen.length;
  const width = seen[0].length;
  const none = seen.map((row) => row.map(() => 0));
  const ofLayers = attention.map((heads, layer) =>
    lookedAt(seen, `layer ${layer + 1}`, opacities(heads, height, width)));
  get("looks").replaceChildren(lookedAt(seen, "what it sees", none), ...ofLayers);
}

// What the model sees, under the page's accent with the opacity of each pixel.
function lookedAt(seen, title, opacity) {
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  const height = seen.length;
  const width = seen[0].length;
  const canvas = element("canvas", { width, height, title });
  const pen = canvas.getContext("2d");
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [red, green = red, blue = red] = seen[y][x].map((value) => 255 * value);
      pen.fillStyle = `rgb(${red} ${green} ${blue})`;
      pen.fillRect(x, y, 1, 1);
      pen.fillStyle = `rgb(${accent} / ${.8 * opacity[y][x]})`;
      pen.fillRect(x, y, 1, 1);
    }
  }
  const caption = element("figcaption", { className: "soft", textContent: title });
  return element("figure", {}, canvas, caption);
}

get("file").addEventListener("change", () => {
  const file = get("file").files[0];
  if (file) classify(file);
});
for (const name of ["dragover", "drop"]) {
  get("pictures").addEventListener(name, (event) => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file) classify(file);
  });
}
