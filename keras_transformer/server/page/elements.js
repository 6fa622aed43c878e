"use strict";
const get = (id) => document.getElementById(id);
// The font that page.css sets for text in drawings.
const FONT = "13px system-ui, sans-serif";

// Make an element of the page.
function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

// Make a row of a table: a text and its score.
function scoreRow(text, score) {
  return element("tr", {},
    element("td", { textContent: text }),
    element("td", { className: "score", textContent: score }));
}

// Make an element of a drawing (SVG).
function svgElement(name, attributes, text) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  if (text !== undefined) created.textContent = text;
  return created;
}

// The width of text in a drawing, in pixels.
function widthOf(text) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  return pen.measureText(text).width;
}
