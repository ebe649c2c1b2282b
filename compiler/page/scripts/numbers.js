/** The text for a number that the results do not have. */
const NONE = "–";

/** A number with three digits. */
function digits(number) {
  if (number === 0) return "0";
  if (Math.abs(number) < 1e-3) return number.toExponential(1).replace("e-", "e−");
  return number.toLocaleString("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
}

/** A whole number with all its digits. */
function whole(number) {
  return number.toLocaleString("en-US");
}

/** A number in the largest unit that does not exceed it, or in the last unit. `units` descend. */
function scaled(number, units) {
  const [unit, size] = units.find(([, each]) => Math.abs(number) >= each) ?? units.at(-1);
  const text = size === 1 && Number.isInteger(number) ? whole(number) : digits(number / size);
  return `${text} ${unit}`.trim();
}

/** A size, such as `1.25 MB`. */
function bytes(number) {
  return scaled(number, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
}

/** A number of operations, such as `51.4 M`. */
function amount(number) {
  return scaled(number, [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]]);
}

/** A time in milliseconds with the unit that fits, such as `340 µs`. */
function duration(milliseconds) {
  return scaled(1e3 * milliseconds, [["s", 1e6], ["ms", 1e3], ["µs", 1]]);
}

/** A time in seconds, such as `0.5 s`. */
function seconds(number) {
  return `${number.toFixed(1)} s`;
}

/** A share of one, such as `12 %`. */
function percentage(share) {
  return `${digits(100 * share)} %`;
}

/** The text of a number that may be null. */
function shown(number, text) {
  return number === null || number === undefined ? NONE : text(number);
}

/**
 * The numbers of a check, with the text of a value. `more` explains the heading.
 * A number that is steady has no line of its history in the grid.
 */
const NUMBERS = [
  { key: "share", label: "Difference", more: "of the tolerance", text: (share) => `${digits(share)} ×` },
  { key: "plan_bytes", label: "Plan", more: "size of the file", text: bytes },
  { key: "peak_bytes", label: "Peak memory", more: "of a run's values", text: bytes },
  { key: "operations", label: "Operations", more: "multiply and add", text: amount, isSteady: true },
  { key: "milliseconds", label: "Run", more: "sum of the steps", text: duration },
  { key: "percent", label: "Time", more: "of onnxruntime's", text: (percent) => `${percent} %` },
  { key: "seconds", label: "Check", more: "all variants", text: seconds },
];

/** The value of a number in the newest run of a check; null if there is none. */
function numberOf(check, key, run) {
  return check?.history[key]?.[run] ?? null;
}
