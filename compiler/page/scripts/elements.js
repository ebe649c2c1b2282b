/** An HTML element. A child is a node or a text; null is left out. A text is never parsed as HTML. */
function html(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for an element of SVG. */
function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** A name from a model, which may break behind its punctuation. It keeps its direction of writing to itself. */
function named(text, kind = null) {
  const parts = text.split(/(?<=[_/.,:+-])/);
  return html("bdi", { class: kind }, parts.flatMap((part, index) => (index ? [html("wbr"), part] : [part])));
}

/** A text that only screen readers show. */
function spoken(text) {
  return html("span", { class: "spoken" }, text);
}

/** A section with a heading of a level; null without content. */
function section(level, title, ...content) {
  const shown = content.flat().filter((each) => each !== null);
  return shown.length ? html("section", {}, html(`h${level}`, {}, title), ...shown) : null;
}

/** An option of a select. */
function option(value, text) {
  return html("option", { value }, text);
}

/** `1 model`, `2 models`. */
function counted(number, what, several = `${what}s`) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? what : several}`;
}

/** A text with code between backticks. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? html("code", {}, part) : part));
}
