// Questions to the server, and their answers.
const model = get("model").textContent, base = `v1/models/${encodeURIComponent(model)}`;
// What models of strings give, by the name of the output: what the page calls what goes in, the button, and what comes out.
const KINDS = {
  translation: ["Text to translate, a sentence", "Translate", "Translation"],
  tree: ["Sentence to parse: words and punctuation, with spaces between them", "Parse", "Tree"],
  generated: ["Beginning of a text", "Continue", "Text"],
  filled: ["Text with <mask> in place of a word", "Guess", "The likeliest words"],
  label: ["Text to classify", "Classify", "Label"],
  tags: ["Text whose words to tag", "Tag", "Spans"],
  vector: ["Text to make a vector of", "Read", "Vector"],
};
// What the model has, what it gives, and the text that was sent last.
let signatures = null, kind = "translation", translated = "";

// Numbers that are not finite are bare words, as TF Serving writes them.
const parse = (text) => JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (word) => word[0] === '"' ? word : "null"));

async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  } catch (error) {
    throw new Error("The server does not answer.");
  }
  const answer = parse(await response.text());
  if (!response.ok) throw new Error(answer.error || `HTTP ${response.status}`);
  return answer;
}

async function describe() {
  const { model_spec, metadata } = await ask(`${base}/metadata`);
  const definitions = metadata.signature_def.signature_def;
  signatures = new Set(Object.keys(definitions));
  const outputs = (definitions.serving_default || {}).outputs || {};
  kind = Object.keys(KINDS).find((name) => name in outputs) || "translation";
  [get("label").textContent, get("go").textContent, get("what").textContent] = KINDS[kind];
  get("version").textContent = `version ${model_spec.version}`;
  offerPictures(definitions);
}

const predict = async (signature, instance) => (await ask(`${base}:predict`, request(signature, instance))).predictions[0];
const request = (signature, instance) =>
  ({ ...(signature === "serving_default" ? {} : { signature_name: signature }), instances: [instance] });

async function translate(event) {
  event.preventDefault();
  get("error").textContent = get("took").textContent = "";
  get("go").disabled = true;
  const began = performance.now(), text = translated = get("text").value;
  try {
    await describe();
    if (kind in READERS) {
      await READERS[kind](text);
      get("took").textContent = `${Math.round(performance.now() - began)} ms`;
      return;
    }
    const signature = ["nbest", "translate"].find((name) => signatures.has(name)) || "serving_default";
    const instance = signature === "translate" ? { text } : text;
    const given = await predict(signature, instance);
    const hypotheses = typeof given === "string" ? [[given, null]] : (given[`${kind}s`] || given[kind]).map((one, n) => [one, given.scores[n]]);
    get("took").textContent = `${Math.round(performance.now() - began)} ms`;
    showTranslations(hypotheses);
    get("curl").textContent = curlOf(request(signature, instance));
    const aligned = signatures.has("align") && hypotheses[0][0] ? await predict("align", { text, reference: hypotheses[0][0] }) : null;
    showAttention(aligned);
    await showNextPieces();
    const parts = [["n-best", signature !== "serving_default"], ["attention", signatures.has("align") || kind === "generated"], ["next pieces", signatures.has("next_pieces")]];
    const lacking = parts.filter(([, has]) => !has);
    get("lacking").textContent = lacking.length ? `This model has no signature for: ${lacking.map(([name]) => name).join(", ")}.` : "";
    get("answer").hidden = false;
  } catch (error) {
    get("error").textContent = error.message;
    get("answer").hidden = true;
  } finally {
    get("go").disabled = false;
  }
}

function showTranslations(hypotheses) {
  const [[best]] = hypotheses;
  get("best").textContent = best;
  get("best").hidden = kind === "tree";
  get("tree").replaceChildren(...(kind === "tree" && best ? [treePicture(best)] : []));
  // Where there are fewer hypotheses than asked for, the rest have minus infinity or the lowest float32.
  const ranked = hypotheses.filter(([, score]) => score !== null && score > -3e38);
  get("nbest").hidden = !ranked.length;
  get("hypotheses").replaceChildren(...ranked.map(([text, score]) =>
    element("tr", {}, element("td", { textContent: text }), element("td", { className: "score", textContent: score.toFixed(3) }))));
}

function curlOf(body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -d '${quoted}' ${new URL(`${base}:predict`, location.href)}`;
}

get("form").addEventListener("submit", translate);
get("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) get("form").requestSubmit();
});
describe().catch((error) => { get("error").textContent = error.message; });
