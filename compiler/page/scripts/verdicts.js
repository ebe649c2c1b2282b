const CIRCLE = "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11";

/** The paths of the marks, in a square of 16 by 16. */
const MARKS = {
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "m4 4 8 8m0-8-8 8",
  near: "M2.5 7q2.75-3 5.5-1t5.5-1m-11 6.5q2.75-3 5.5-1t5.5-1",
  unequal: "M3 6h10M3 10h10M11 2.5l-6 11",
  refused: `${CIRCLE}M4.2 4.2l7.6 7.6`,
  random: "M3 3h10v10H3zM6 6v.01M10 10v.01M8 8v.01",
  failed: "M8 2.5V9m0 4v.01",
  clock: `${CIRCLE}M8 4.5V8l2.5 1.5`,
  memory: "M3 2.5h10v11H3zM3 6h10M3 9.5h10",
  crash: "M9.5 1.5 4 9h4l-1.5 5.5L12 7H8z",
  none: "M5 8h6",
};

/** The verdicts from the best to the worst, each with its mark, its tone and its meaning. */
const VERDICTS = {
  missing: { mark: "none", tone: "quiet", meaning: "only in an older file of results" },
  equal: { mark: "check", tone: "good", meaning: "equal to onnxruntime’s except for rounding" },
  random: { mark: "random", tone: "good", meaning: "random numbers: only dtype and shape are compared" },
  uncertain: { mark: "near", tone: "fair", meaning: "differs by at most the reference noise plus the tolerance" },
  different: { mark: "unequal", tone: "bad", meaning: "differs from onnxruntime" },
  refused: { mark: "refused", tone: "fair", meaning: "the compiler refuses the model" },
  failed: { mark: "failed", tone: "bad", meaning: "cannot be checked" },
  "timed out": { mark: "clock", tone: "bad", meaning: "reached the limit of time" },
  "out of memory": { mark: "memory", tone: "bad", meaning: "reached the limit of memory" },
  crashed: { mark: "crash", tone: "bad", meaning: "its process crashed" },
};

/** The place of a verdict in the order from the best to the worst. */
function badness(verdict) {
  return Object.keys(VERDICTS).indexOf(verdict);
}

/** A drawn mark, which screen readers do not see. */
function drawnMark(name, tone) {
  const size = { viewBox: "0 0 16 16", width: 16, height: 16 };
  return svg("svg", { class: `mark ${tone}`, ...size, "aria-hidden": "true" }, svg("path", { d: MARKS[name] }));
}

/** The mark of a verdict, with the verdict as its text. */
function verdictMark(verdict, text = spoken(verdict)) {
  const { mark, tone } = VERDICTS[verdict] ?? VERDICTS.failed;
  return html("span", { class: "marked" }, drawnMark(mark, tone), text);
}

/** The result of a check or a model: a tick or a cross for acceptable or not, and the result in words. */
function statusMark({ ok, result }) {
  if (ok === null) return html("span", { class: "marked" }, drawnMark("none", "quiet"), result);
  const [name, tone, text] = ok ? ["check", "good", "acceptable: "] : ["cross", "bad", "not acceptable: "];
  return html("span", { class: "marked" }, drawnMark(name, tone), spoken(text), result);
}

/** The state of a model: the worst of its checks, and whether all of its results are acceptable. */
function stateOf(model) {
  const checks = Object.values(model.checks);
  const worst = checks.reduce((one, other) => (badness(other.verdict) > badness(one.verdict) ? other : one));
  const isWrong = model.problems.length > 0 || checks.some((check) => check.ok === false);
  return { verdict: worst.verdict, result: worst.result, ok: isWrong ? false : worst.ok };
}

/** An explanation of the marks of these verdicts. */
function legendOf(verdicts) {
  const known = Object.keys(VERDICTS).filter((verdict) => verdicts.has(verdict));
  return known.map((verdict) => html("li", {}, verdictMark(verdict, verdict), ` ${VERDICTS[verdict].meaning}`));
}
