// A constituency tree: from brackets to places, and from places to a drawing. Places are those of
// keras_transformer/visualization/tree_drawings.py.

// The label of an unknown part of speech.
const UNKNOWN_TAG = "XX";
const ESCAPES = {
  "-LRB-": "(",
  "-RRB-": ")",
  "-LCB-": "{",
  "-RCB-": "}",
  "-LSB-": "[",
  "-RSB-": "]",
};

// Parse "(S (NP (XX a)) (XX b))" to { label, children }; a word is a string.
function readTree(brackets) {
  const open = [{ label: "", children: [] }];
  // Other white space than ASCII's, such as a thin space, is part of a word.
  for (const token of brackets.match(/[()]|[^() \t\n\v\f\r]+/g) || []) {
    const inner = open.at(-1);
    if (token === "(") {
      const child = { label: null, children: [] };
      open.push(child);
      inner.children.push(child);
    } else if (token === ")") {
      open.pop();
    } else if (inner.label === null) {
      inner.label = token;
    } else {
      inner.children.push(unescaped(token));
    }
  }
  return open[0].children[0];
}

function unescaped(word) {
  for (const [escape, bracket] of Object.entries(ESCAPES)) {
    word = word.replaceAll(escape, bracket);
  }
  return word.replaceAll("\\/", "/").replaceAll("\\*", "*");
}

// The column of a label or a word and of all that is below it. A word replaces its label XX.
function column(tree, size, gap) {
  const isUnknown = tree.label === UNKNOWN_TAG && typeof tree.children[0] === "string";
  const text = isUnknown ? tree.children[0] : tree;
  if (typeof text === "string") {
    const width = size(text) + gap;
    return { text, width, middle: width / 2, inner: [] };
  }
  let total = 0;
  const inner = tree.children.map((child) => {
    const below = { left: total, ...column(child, size, gap) };
    total += below.width;
    return below;
  });
  const first = inner[0];
  const last = inner.at(-1);
  // Between the first and the last child. A wide label may stick out on either side.
  const middle = (first.left + first.middle + last.left + last.middle) / 2;
  const half = (size(tree.label) + gap) / 2;
  const left = Math.max(half - middle, 0);
  const right = Math.max(half - (total - middle), 0);
  for (const below of inner) below.left += left;
  return { text: tree.label, width: left + total + right, middle: left + middle, inner };
}

// The place of each label and word, a parent before its children:
// { text, isWord, x, level, parent }.
function places(tree, size, gap) {
  const root = column(tree, size, gap);
  const placed = [];
  const depth = (node) => Math.max(0, ...node.inner.map((below) => 1 + depth(below)));
  const deepest = depth(root);
  const place = (node, left, height, parent) => {
    const isWord = !node.inner.length;
    const level = isWord ? deepest : height;
    const here = { text: node.text, isWord, x: left + node.middle, level, parent };
    placed.push(here);
    for (const below of node.inner) place(below, left + below.left, height + 1, here);
  };
  place(root, 0, 0, null);
  return { width: root.width, deepest, places: placed };
}

function treePicture(brackets) {
  const level = 34;
  const half = 11;
  const gap = 14;
  const layout = places(readTree(brackets), widthOf, gap);
  const image = svgElement("svg", {
    width: layout.width,
    height: layout.deepest * level + 2 * half + 4,
    role: "img",
    "aria-label": brackets,
    class: "tree",
  });
  const y = (place) => half + place.level * level;
  for (const place of layout.places) {
    if (place.parent) {
      const above = y(place.parent);
      const start = `M${place.parent.x} ${above + half}`;
      const end = `H${place.x}V${y(place) - half}`;
      image.append(svgElement("path", { d: `${start}V${above + level / 2}${end}` }));
    }
    image.append(svgElement("text", {
      x: place.x,
      y: y(place) + 4,
      "text-anchor": "middle",
      class: place.isWord ? "word" : "label",
    }, place.text));
  }
  return image;
}
