// A picture that is dropped on the page: its class, and where the model looked.
let pictureSize = null;
// The file that came last. Answers about earlier ones are ignored.
let newestPicture = null;

// Show the form for pictures if the model classifies pictures.
function offerPictures(definitions) {
  const isOffered = "classify_png" in definitions && "attend_png" in definitions;
  get("form").hidden = isOffered;
  get("pictures").hidden = !isOffered;
  if (!isOffered) return;
  const { dim } = definitions.attend_png.outputs.seen.tensor_shape;
  const [, height, width] = dim.map((axis) => Number(axis.size));
  pictureSize = { height, width };
  get("size").textContent = `The model sees ${width} x ${height} pixels.`;
}

// Left, top, width and height of a picture inside a room: as large as fits, in the middle.
function fitted(width, height, room) {
  const scale = Math.min(room.width / width, room.height / height);
  const size = [width * scale, height * scale];
  return [(room.width - size[0]) / 2, (room.height - size[1]) / 2, ...size];
}

// The picture as a PNG of the model's size, in base64; margins are black. A transparent picture is
// laid over white, as in training.
async function pngOf(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch (error) {
    throw new Error(`${file.name} is no picture that the browser can read.`);
  }
  const canvas = element("canvas", pictureSize);
  const pen = canvas.getContext("2d");
  const place = fitted(bitmap.width, bitmap.height, pictureSize);
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "white";
  pen.fillRect(...place);
  pen.drawImage(bitmap, ...place);
  return canvas.toDataURL("image/png").replace(/^.*,/, "");
}

async function classify(file) {
  newestPicture = file;
  get("error").textContent = "";
  try {
    const png = { b64: await pngOf(file) };
    const prediction = await predict("classify_png", { png });
    const { seen, attention } = await predict("attend_png", { png });
    if (file !== newestPicture) return;
    showClasses(prediction);
    showLooks(seen, attention);
    get("picture_curl").textContent = curlOf(request("classify_png", { png }));
    get("looked").hidden = false;
  } catch (error) {
    if (file !== newestPicture) return;
    get("error").textContent = error.message;
    get("looked").hidden = true;
  }
}

// Classes and their probabilities, the likeliest first, at most so many.
const ranked = (prediction, most) => prediction.classes
  .map((name, n) => [name, prediction.probabilities[n]])
  .sort(([, a], [, b]) => b - a)
  .slice(0, most);

function showClasses(prediction) {
  get("class").textContent = prediction.class;
  const rows = ranked(prediction, 10).map(([name, probability]) =>
    scoreRow(name, `${(100 * probability).toFixed(1)} %`));
  get("classes").replaceChildren(...rows);
}

// The opacity of each pixel, from 0 to 1 in (H, W), by the mean of a layer's heads.
function opacities(heads, height, width) {
  const sum = (r, c) => heads.reduce((total, head) => total + head[r][c], 0);
  const sums = heads[0].map((row, r) => row.map((_, c) => sum(r, c)));
  const most = Math.max(...sums.flat()) || 1;
  const patchHeight = height / sums.length;
  const patchWidth = width / sums[0].length;
  const opacity = (y, x) => sums[Math.floor(y / patchHeight)][Math.floor(x / patchWidth)] / most;
  const line = (y) => Array.from({ length: width }, (_, x) => opacity(y, x));
  return Array.from({ length: height }, (_, y) => line(y));
}

function showLooks(seen, attention) {
  const height = seen.length;
  const width = seen[0].length;
  const transparent = seen.map((row) => row.map(() => 0));
  const ofLayers = attention.map((heads, layer) =>
    lookFigure(seen, `layer ${layer + 1}`, opacities(heads, height, width)));
  get("looks").replaceChildren(lookFigure(seen, "what it sees", transparent), ...ofLayers);
}

// Draw the pixels that the model sees, each under the page's accent with its opacity.
function lookFigure(seen, title, opacity) {
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
