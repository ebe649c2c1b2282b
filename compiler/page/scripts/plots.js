/** The points of values as the coordinates of a path, in several parts if values are missing. */
function pathOf(points) {
  const isFirst = (index) => (points[index - 1]?.[1] ?? null) === null;
  const parts = points.map(([x, y], index) => (y === null ? "" : `${isFirst(index) ? "M" : "L"}${x} ${y}`));
  return parts.join("");
}

/** The largest and smallest value of an axis. It spans at least a tenth of the largest value, so that noise is flat. */
function rangeOf(values) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const lacking = Math.max(0.1 * Math.abs(high) - (high - low), 0);
  return [low - lacking / 2, high + lacking / 2 || 1];
}

/** A number's history in words: `1.2 MB to 1.3 MB in 5 runs`. */
function historyText(values, text) {
  const known = values.filter((value) => value !== null);
  return `${text(known[0])} to ${text(known.at(-1))} in ${counted(known.length, "run")}`;
}

/** A small line of a number's history, with a dot at its end. It has its values as a text. */
function sparkline(values, text, [width, height] = [44, 18]) {
  if (values.filter((value) => value !== null).length < 2) return null;
  const [low, high] = rangeOf(values);
  const place = (value) => (value === null ? null : 3 + ((high - value) / (high - low)) * (height - 6));
  const step = (width - 6) / (values.length - 1);
  const points = values.map((value, index) => [Math.round(10 * (3 + index * step)) / 10, place(value)]);
  const rounded = points.map(([x, y]) => [x, y === null ? null : Math.round(10 * y) / 10]);
  const [x, y] = rounded.findLast(([, each]) => each !== null);
  const attributes = { class: "sparkline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" };
  return svg(
    "svg",
    { ...attributes, "aria-label": historyText(values, text) },
    svg("path", { d: pathOf(rounded) }),
    svg("circle", { cx: x, cy: y, r: 2 }),
  );
}

/** A bar for a share of the longest one, with a tick at another share. The table has both as numbers. */
function bar(share, tick = null) {
  const part = (kind, x, width) => svg("rect", { class: kind, x, width, height: "100%" });
  const line = tick === null ? null : part("tick", `${100 * Math.min(tick, 1)}%`, 2);
  return svg("svg", { class: "bar", "aria-hidden": "true" }, part("fill", 0, `${100 * share}%`), line);
}

/** An area over the steps of a run: each value is as wide as a step. The figure has its text beside it. */
function area(values, label) {
  const [width, height] = [1000, 100];
  const top = Math.max(...values) || 1;
  const step = width / values.length;
  const corners = values.map((value, index) => {
    const y = (height - (value / top) * height).toFixed(2);
    return `V${y}H${((index + 1) * step).toFixed(2)}`;
  });
  const frame = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" };
  return svg(
    "svg",
    { class: "area", ...frame, role: "img", "aria-label": label },
    svg("path", { class: "fill", d: `M0 ${height}${corners.join("")}V${height}Z` }),
    svg("path", { class: "edge", d: `M0 ${height}${corners.join("")}V${height}` }),
  );
}
