"use strict";
const get = (id) => document.getElementById(id);
// As page.css has it for text in drawings.
const FONT = "13px system-ui, sans-serif";

// An element of the page.
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A row of a table: a text and its score.
function scored(text, score) {
  return element("tr", {},
    element("td", { textContent: text }),
    element("td", { className: "score", textContent: score }));
}

// An element of a drawing (SVG).
function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// How wide text in a drawing is.
function widthOf(text) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  return pen.measureText(text).width;
}
