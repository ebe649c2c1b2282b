/**
 * The memory of a run's values over its steps, with the step of the peak as a text. Null if it is unknown, or that of
 * most steps outside of blocks.
 */
function memoryFigure(profile, steps) {
  const outer = steps.filter(({ depth }) => !depth);
  const unknown = outer.filter(({ memory }) => memory === null).length;
  if (2 * unknown > outer.length) return null;
  const ran = steps.filter((step) => (isMeasured(profile) ? step.calls : true));
  const values = ran.map((step) => step.memory);
  const highest = Math.max(...values);
  if (!ran.length || !highest) return null;
  const at = (step) => `${shown(step.memory, bytes)} in ${placeOfStep(step)}`;
  const lacking = unknown ? ` The memory of ${counted(unknown, "step")} is unknown.` : "";
  const text = `The peak is ${at(ran[values.indexOf(highest)])}.${lacking}`;
  const what = isMeasured(profile) ? "Memory" : "Upper bound of the memory";
  const drawn = area(values, `${what} of a run over its ${counted(ran.length, "step")}. ${text}`);
  const said = html("span", {}, text);
  const plot = html("div", { class: "plot" }, labels("axis", bytes(highest), "0"), pointed(drawn, ran, said, at));
  const caption = html("figcaption", {}, html("b", {}, `${what} over the steps`), said);
  return html("figure", {}, caption, plot, labels("ends", "first step", "last"));
}

function placeOfStep({ number, op, layer }) {
  return `step ${number}, ${op}${layer ? ` of ${layer}` : ""}`;
}

/** A plot over steps. While the pointer is over it, a line marks the step, and the text says its memory. */
function pointed(drawn, steps, said, at) {
  const [line, text] = [html("span", { class: "cursor" }), said.textContent];
  const frame = html("div", { class: "frame" }, drawn, line);
  frame.addEventListener("pointermove", (event) => {
    const { left, width } = drawn.getBoundingClientRect();
    const index = Math.floor(((event.clientX - left) / width) * steps.length);
    const nearest = Math.min(Math.max(index, 0), steps.length - 1);
    line.style.left = `${(100 * (nearest + 0.5)) / steps.length}%`;
    said.textContent = `${at(steps[nearest])}. ${text}`;
  });
  frame.addEventListener("pointerleave", () => said.replaceChildren(text));
  return frame;
}

/** The labels of the ends of an axis, which the text of the figure repeats. */
function labels(kind, one, other) {
  return html("div", { class: kind, "aria-hidden": "true" }, html("span", {}, one), html("span", {}, other));
}
