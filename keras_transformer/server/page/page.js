// Questions to the server, and their answers.
const model = get("model").textContent;
const base = `v1/models/${encodeURIComponent(model)}`;
// Labels of the input, the button and the answer, by the name of the model's output.
const KINDS = {
  translation: ["Text to translate, a sentence", "Translate", "Translation"],
  tree: ["Sentence to parse: words and punctuation, with spaces between them", "Parse", "Tree"],
  generated: ["Beginning of a text", "Continue", "Text"],
  filled: ["Text with <mask> in place of a word", "Guess", "The likeliest words"],
  label: ["Text to classify", "Classify", "Label"],
  tags: ["Text whose words to tag", "Tag", "Spans"],
  vector: ["Text to make a vector of", "Read", "Vector"],
};
// The model's signatures, the name of its output, and the text that was sent last.
let signatures = null;
let kind = "translation";
let translated = "";

// Parse TF Serving's JSON, in which numbers that are not finite are bare words.
function parse(text) {
  const stringOrBare = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;
  return JSON.parse(text.replace(stringOrBare, (word) => word[0] === '"' ? word : "null"));
}

async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    });
  } catch (error) {
    throw new Error("The server does not answer.");
  }
  // A proxy before the server may answer with a page of its own.
  const answer = await response.text().then(parse).catch(() => null);
  if (response.ok && answer) return answer;
  throw new Error(answer?.error ?? `The server does not answer: HTTP ${response.status}.`);
}

async function describe() {
  const { model_spec, metadata } = await ask(`${base}/metadata`);
  const definitions = metadata.signature_def.signature_def;
  signatures = new Set(Object.keys(definitions));
  const outputs = (definitions.serving_default || {}).outputs || {};
  kind = Object.keys(KINDS).find((name) => name in outputs) || "translation";
  const [label, button, heading] = KINDS[kind];
  get("label").textContent = label;
  get("go").textContent = button;
  get("what").textContent = heading;
  get("version").textContent = `version ${model_spec.version}`;
  offerPictures(definitions);
}

async function predict(signature, instance) {
  const answer = await ask(`${base}:predict`, request(signature, instance));
  return answer.predictions[0];
}

function request(signature, instance) {
  const choice = signature === "serving_default" ? {} : { signature_name: signature };
  return { ...choice, instances: [instance] };
}

async function translate(event) {
  event.preventDefault();
  get("took").textContent = "";
  get("error").textContent = "";
  get("go").disabled = true;
  let isTranslated = false;
  const began = performance.now();
  const text = get("text").value;
  translated = text;
  try {
    await describe();
    if (kind in READERS) {
      await READERS[kind](text);
      get("took").textContent = `${Math.round(performance.now() - began)} ms`;
      return;
    }
    const nbest = ["nbest", "translate"].find((name) => signatures.has(name));
    const signature = nbest || "serving_default";
    const instance = signature === "translate" ? { text } : text;
    const hypotheses = hypothesesOf(await predict(signature, instance));
    get("took").textContent = `${Math.round(performance.now() - began)} ms`;
    showTranslations(hypotheses);
    get("curl").textContent = curlOf(request(signature, instance));
    showLacking(signature);
    // The server may refuse what follows for a long text, which is translated all the same.
    for (const id of ["attention", "next"]) get(id).hidden = true;
    get("answer").hidden = false;
    isTranslated = true;
    const best = hypotheses[0][0];
    const canAlign = signatures.has("align") && best;
    showAttention(canAlign ? await predict("align", { text, reference: best }) : null);
    await showNextPieces();
  } catch (error) {
    get("error").textContent = error.message;
    get("answer").hidden = !isTranslated;
  } finally {
    get("go").disabled = false;
  }
}

// Pairs of a text and its score, which is null if the prediction is a bare text.
function hypothesesOf(prediction) {
  if (typeof prediction === "string") return [[prediction, null]];
  const texts = prediction[`${kind}s`] || prediction[kind];
  return texts.map((text, n) => [text, prediction.scores[n]]);
}

function showTranslations(hypotheses) {
  const [[best]] = hypotheses;
  get("best").textContent = best;
  get("best").hidden = kind === "tree";
  const trees = kind === "tree" && best ? [treePicture(best)] : [];
  get("tree").replaceChildren(...trees);
  // If the search finds fewer hypotheses, the rest score minus infinity or the lowest float32.
  const ranked = hypotheses.filter(([, score]) => score !== null && score > -3e38);
  get("nbest").hidden = !ranked.length;
  const rows = ranked.map(([text, score]) => scoreRow(text, score.toFixed(3)));
  get("hypotheses").replaceChildren(...rows);
}

// Name what the page cannot show of this model, which answered by this signature.
function showLacking(signature) {
  const parts = [
    ["n-best", signature !== "serving_default"],
    ["attention", signatures.has("align") || kind === "generated"],
    ["next pieces", signatures.has("next_pieces")],
  ];
  const lacking = parts.filter(([, has]) => !has).map(([name]) => name);
  const remark = `This model has no signature for: ${lacking.join(", ")}.`;
  get("lacking").textContent = lacking.length ? remark : "";
}

function curlOf(body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const { href } = new URL(`${base}:predict`, location.href);
  return `curl -d ${quoted(JSON.stringify(body))} ${quoted(href)}`;
}

get("form").addEventListener("submit", translate);
get("text").addEventListener("keydown", (event) => {
  const isSubmit = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  // The button is disabled until the answer comes, and so is this.
  if (isSubmit && !get("go").disabled) get("form").requestSubmit();
});
describe().catch((error) => {
  get("error").textContent = error.message;
});
