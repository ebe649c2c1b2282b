/** The results of each variant of a model. */
function variantsTable(check) {
  return table("Variants", [
    { label: "Variant", cell: (outcome) => outcome.variant },
    { label: "Result", cell: (outcome) => verdictMark(outcome.verdict, resultOf(outcome)) },
    { label: "Difference", more: "of the tolerance", number: true, cell: shareOf, value: (outcome) => outcome.share },
    { label: "Time", number: true, cell: (outcome) => seconds(outcome.seconds), value: (outcome) => outcome.seconds },
  ], check.outcomes);
}

function resultOf({ verdict, codes }) {
  return codes.length ? `${verdict} (${codes.join(", ")})` : verdict;
}

/** The share of the tolerance of an outcome or output; a difference that is not finite has no number. */
function shareOf({ share, verdict }) {
  if (share !== null) return `${digits(share)} ×`;
  return verdict === "different" ? "∞" : NONE;
}

/** The remarks on a check, each with the variants that have it and the compiler's advice. */
function remarksOf(check) {
  const remarks = [...new Set(check.outcomes.flatMap((outcome) => outcome.remarks))];
  const items = remarks.map((remark) => {
    const having = check.outcomes.filter((outcome) => outcome.remarks.includes(remark));
    const advice = having.map((outcome) => outcome.advice?.[remark]).find(Boolean);
    const help = advice ? html("p", {}, `Help: ${advice}`) : null;
    return html("li", {}, html("p", {}, remark), help, whereText(check, having));
  });
  const notes = [...new Set(check.outcomes.map((outcome) => outcome.note).filter(Boolean))];
  items.push(...notes.map((note) => html("li", {}, html("p", {}, note))));
  return items.length ? html("ul", { class: "remarks" }, items) : null;
}

/** The variants that have a remark; null if there is only one. */
function whereText({ outcomes }, having) {
  if (outcomes.length === 1) return null;
  const variants = having.map((outcome) => outcome.variant).join("; ");
  return html("small", {}, having.length === outcomes.length ? "all variants" : variants);
}

/** The difference of each output in its worst variant and case, and its share of the tolerance in each variant. */
function outputsTable(check) {
  const names = [...new Set(check.outcomes.flatMap((outcome) => (outcome.outputs ?? []).map((output) => output.name)))];
  const rows = names.map((name) => {
    const found = check.outcomes.map((outcome) => outcome.outputs?.find((output) => output.name === name) ?? null);
    return { found, worst: found.filter(Boolean).reduce((one, other) => (isWorse(other, one) ? other : one)) };
  });
  const isOnly = check.outcomes.length === 1;
  const variants = check.outcomes.map(({ variant }, index) => ({
    label: isOnly ? "Share" : variant.split(", ")[0],
    more: isOnly ? "of the tolerance" : variant.split(", ")[1],
    number: true,
    value: ({ found }) => found[index]?.share,
    cell: ({ found }) => (found[index] ? shareOf(found[index]) : NONE),
  }));
  return rows.length ? table("Outputs and their worst differences", [...outputColumns(rows), ...variants], rows) : null;
}

/** The name, type and numbers of an output in its worst variant. The errors are those in double precision. */
function outputColumns(rows) {
  const number = (key, label, more) => ({
    label,
    more,
    number: true,
    value: ({ worst }) => worst[key],
    cell: ({ worst }) => shown(worst[key], digits),
  });
  const columns = [
    { label: "Output", value: ({ worst }) => worst.name, cell: ({ worst }) => named(worst.name) },
    { label: "Result", cell: ({ worst }) => verdictMark(worst.verdict, worst.verdict) },
    { label: "Type", kind: "type", cell: ({ worst }) => `${worst.dtype} [${worst.shape.join(", ")}]` },
    number("difference", "Difference"),
    number("allowed", "Tolerance"),
  ];
  if (rows.every(({ worst }) => worst.error === null)) return columns;
  const more = "in double precision";
  return [...columns, number("error", "Error", more), number("reference_error", "onnxruntime’s", more)];
}

function isWorse(one, other) {
  if (one.verdict !== other.verdict) return badness(one.verdict) > badness(other.verdict);
  return (one.share ?? Infinity) > (other.share ?? Infinity);
}
