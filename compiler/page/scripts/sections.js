/** The contents of folded elements that are not made yet. */
const UNMADE = new WeakMap();

/** A summary with content below it, which is made when it is first shown. */
function folded(summary, make, attributes = {}) {
  const details = html("details", attributes, html("summary", {}, summary));
  UNMADE.set(details, make);
  details.addEventListener("toggle", () => details.open && fill(details));
  return details;
}

/** A text or an element in its own column of a summary. */
function figure(content) {
  return html("span", { class: "figure" }, content);
}

/** Show the content of a folded element. */
function unfold(details) {
  fill(details);
  details.open = true;
}

function fill(details) {
  const make = UNMADE.get(details);
  UNMADE.delete(details);
  if (make) details.append(...[make()].flat().filter(Boolean));
}

/** Buttons that show and hide everything that is folded in a place. */
function foldButtons(place) {
  const button = (text, act) => {
    const made = html("button", { type: "button", class: "all" }, text);
    made.addEventListener("click", act);
    return made;
  };
  const openAll = () => {
    for (let closed; (closed = place.querySelector("details:not([open])")); ) unfold(closed);
  };
  const closeAll = () => place.querySelectorAll("details").forEach((details) => (details.open = false));
  return html("p", { class: "folds" }, button("Open all", openAll), button("Close all", closeAll));
}

/** Show the sections of a page below its heading, with a link to each. */
function showSections(sections) {
  const links = sections.map((made, index) => {
    made.id = `section-${index + 1}`;
    return html("li", {}, html("a", { href: `#${made.id}` }, made.querySelector("h2").textContent));
  });
  const contents = html("nav", { "aria-label": "Contents" }, html("ul", { class: "contents" }, links));
  document.getElementById("view").append(contents, ...sections);
}

/** The text of a part of an address. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
