/** The profile with the module and the origin of each step, which the page of results has too. */
function withPlaces({ profile, places }) {
  const found = (profile.steps.place ?? []).map((index) => places[index]);
  const layer = found.map(({ module }) => module);
  const textOf = ({ nodes, module, source }) => [nodes.join(" + "), module, source].filter(Boolean).join(", ");
  const origin = found.map(textOf);
  return { ...profile, steps: { ...profile.steps, layer, origin } };
}

/** The comparison with onnxruntime; null if nobody asked for it. */
function verifiedSection({ verified, given }) {
  if (!verified) return null;
  const [check, { meaning }] = [{ outcomes: [verified] }, VERDICTS[verified.verdict]];
  const result = html("p", { class: "state" }, statusMark({ ok: verified.verdict !== "different", result: meaning }));
  return section(2, "Verification", result, html("p", {}, `With ${given}`), remarksOf(check), outputsTable(check));
}

function warningsSection({ passes }) {
  const items = passes.flatMap(({ warnings }) => warnings).map((text) => html("li", {}, text));
  return section(2, "Warnings", items.length ? html("ul", { class: "remarks" }, items) : null);
}

/** Show the step or the module that the address names. */
function showTarget(tree, steps) {
  const [, number] = /^#step-(\d+)$/.exec(location.hash) ?? [];
  const [, path] = /^#module=(.*)$/.exec(location.hash) ?? [];
  const step = steps[number - 1];
  if (step) revealItem(tree, step);
  const found = step ? document.getElementById(`step-${number}`) : path ? revealModule(tree, decoded(path)) : null;
  found?.scrollIntoView({ block: "center" });
  found?.focus({ preventScroll: true });
}

function startReport() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const profile = withPlaces(data);
  const steps = profile.steps.op ? stepsOf(profile).map((step) => ({ ...step, module: step.layer })) : [];
  const graph = graphOf({ ...data, profile }, steps);
  const [level] = Object.keys(data.facts.levels);
  const plan = section(2, level ? `Plan at the level ${level}` : "Plan", factsList(data), stepsTable(data.facts));
  const cost = profileSection({ profile }, { name: "plan", level: 2 });
  const parts = [warningsSection(data), plan, verifiedSection(data), cost, graph.section, passesSection(data)];
  showSections(parts.filter(Boolean));
  addEventListener("hashchange", () => showTarget(graph.tree, steps));
  showTarget(graph.tree, steps);
}

startReport();
