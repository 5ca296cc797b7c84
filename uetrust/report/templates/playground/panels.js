// The panels: what a state of the sliders gives, says and looks like. PANELS (panels.json and the code of
// each panel) and the arithmetic (math.js) stand above this file in the module that Python assembles.

// Small makers of elements; data enter as text, never as markup
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const digits = (value, places = 3) => {
  if (value === undefined || Number.isNaN(value)) return "not defined";
  if (Number.isInteger(value)) return String(value);
  return value.toFixed(places).replace("-", "\u2212");
};

// Figures: 360 units wide, the plot between the margins
const BOX = { left: 38, right: 352, top: 20, bottom: 184 };

function scale([from, to], a, b) {
  return (v) => a + (b - a) * (v - from) / (to - from || 1);
}

function ticks([from, to], count = 5) {
  const raw = (to - from) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((s) => s * power >= raw) * power, found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++) found.push(k * step);
  return found;
}

const label = (x, y, text, options = {}) => element("svg:text", { x, y, ...options }, text);

function axes(xRange, yRange, xLabel, yLabel, { xTicks, yTicks } = {}) {
  const x = scale(xRange, BOX.left, BOX.right), y = scale(yRange, BOX.bottom, BOX.top);
  const plot = element("svg:g");
  const tidy = (v) => String(Number(v.toPrecision(6))).replace("-", "\u2212");
  for (const v of yTicks ?? ticks(yRange)) {
    plot.append(element("svg:line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: y(v), y2: y(v) }));
    plot.append(label(BOX.left - 5, y(v) + 3.5, tidy(v), { "text-anchor": "end" }));
  }
  for (const v of xTicks ?? ticks(xRange)) plot.append(label(x(v), BOX.bottom + 14, tidy(v), { "text-anchor": "middle" }));
  plot.append(label((BOX.left + BOX.right) / 2, BOX.bottom + 29, xLabel, { "text-anchor": "middle" }));
  plot.append(label(2, 8, yLabel, { class: "axis" }));
  return { plot, x, y };
}

function line({ x, y }, xs, ys, name) {
  const points = ys.map((v, i) => `${x(xs[i]).toFixed(2)},${y(v).toFixed(2)}`);
  return element("svg:polyline", { class: `line ${name}`, points: points.join(" ") });
}

function legend(names) { // [class, text]
  const found = element("svg:g");
  let at = BOX.left;
  for (const [name, text] of names) {
    found.append(element("svg:rect", { class: `fill ${name}`, x: at, y: 222, width: 10, height: 10 }), label(at + 14, 231, text));
    at += 24 + text.length * 5.6;
  }
  return found;
}

function figure(says, ...children) {
  return picture(says, 238, children);
}

function picture(says, height, children) {
  return element("svg:svg", { viewBox: `0 0 360 ${height}`, role: "img", "aria-label": says }, ...children);
}

function bars(says, rows, { limits, band, unit = "PRR" }) { // rows: [label, value, class]
  const height = Math.min(24, 176 / rows.length), from = 152, x = scale(limits, from, 320);
  const found = element("svg:g");
  if (band) found.append(element("svg:rect", { class: "band", x: x(-band), width: x(band) - x(-band), y: 6, height: rows.length * height }));
  rows.forEach(([name, value, kind], i) => {
    const top = 8 + i * height, end = x(Math.min(limits[1], Math.max(limits[0], value)));
    found.append(label(from - 4, top + height * 0.6, name, { "text-anchor": "end" }));
    if (Number.isNaN(value)) return found.append(label(x(0) + 4, top + height * 0.6, "not defined"));
    found.append(element("svg:rect", { class: `fill ${kind}`, x: Math.min(end, x(0)), width: Math.abs(end - x(0)), y: top, height: height * 0.7 }));
    found.append(label(value < 0 ? Math.min(end, x(0)) - 3 : end + 3, top + height * 0.6, digits(value, 2), { "text-anchor": value < 0 ? "end" : "start" }));
  });
  const bottom = 8 + rows.length * height;
  found.append(element("svg:line", { class: "zero", x1: x(0), x2: x(0), y1: 6, y2: bottom }));
  found.append(label(352, bottom + 14, unit, { "text-anchor": "end" }));
  return picture(says, bottom + 20, [found]);
}

function shares(values, [from, to], of = values.length, count = 40) { // In each bin; the last ones hold what lies outside
  const heights = new Array(count).fill(0);
  for (const v of values) heights[Math.max(0, Math.min(count - 1, Math.floor((v - from) / (to - from) * count)))] += 1 / of;
  return heights;
}

function histogram(plot, heights, limits, kind) {
  const width = (limits[1] - limits[0]) / heights.length;
  return heights.map((h, i) => {
    const left = plot.x(limits[0] + i * width), right = plot.x(limits[0] + (i + 1) * width);
    return element("svg:rect", { class: `fill ${kind}`, x: left, width: right - left, y: plot.y(h), height: BOX.bottom - plot.y(h) });
  });
}

// 1 One text
function drag(state, { change }) {
  const { n, position, others, area } = state;
  let good = new RandomState(1).rand(n - 1).map((v) => 0.4 + 0.6 * v);
  if (others === "in the right order") good = [...good].sort((a, b) => b - a);
  const quality = [...good.slice(0, position - 1), 0, ...good.slice(position - 1)], uncertainty = quality.map((_, i) => i);
  const curve = rejectionCurve(quality, uncertainty), kept = quality.map((_, i) => (area === "sum" ? i + 1 : 1));
  const random = kept.map((k) => curve.random * k), risk = curve.risk.map((v, i) => v * kept[i]);
  const oracle = curve.oracle.map((v, i) => v * kept[i]);
  const numbers = {
    PRR: prr(quality, uncertainty, { area }).value, "area of the method": mean(risk),
    "area of a random order": mean(random), "area of the perfect order": mean(oracle),
  };
  const says = `With the worst of ${n} texts at position ${position}, PRR is ${digits(numbers.PRR)}.`;
  const top = Math.max(...risk, ...random), k = quality.map((_, i) => i + 1);
  const plot = axes([1, n], [0, top * 1.05], "texts kept, most certain first", `${area} of their risk`, { xTicks: ticks([1, n]).filter(Number.isInteger) });
  const handle = element("svg:circle", { class: "handle", r: 9, cx: plot.x(position), cy: plot.y(risk[position - 1]) });
  handle.append(element("svg:title", {}, "the worst text: drag it"));
  const shown = figure(says, plot.plot, line(plot, k, random, "random"), line(plot, k, oracle, "oracle"), line(plot, k, risk, "method"), handle,
    legend([["method", "method"], ["oracle", "perfect order"], ["random", "random order"], ["bad", "worst text"]]));
  shown.addEventListener("pointerdown", (event) => follow(event, shown, (x) => {
    const at = Math.round(1 + (n - 1) * (x - BOX.left) / (BOX.right - BOX.left));
    change({ position: Math.min(n, Math.max(1, at)) });
  }));
  shown.classList.add("drag");
  return { numbers, says, shown };
}

function follow(event, shown, move) { // Until the pointer is lifted; the figure is drawn anew while it moves
  const { left, width } = shown.getBoundingClientRect(), one = (e) => move((e.clientX - left) / width * 360);
  event.preventDefault();
  one(event);
  const stop = new AbortController(), options = { signal: stop.signal };
  window.addEventListener("pointermove", one, options);
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => stop.abort(), options);
}

// 2 Definitions
function definitions({ n, labels, strength, area, max_rejection, draw }) {
  const rng = new RandomState(draw), latent = rng.randn(n), doubt = rng.randn(n);
  const quality = latent.map((v) => (labels === "labels 0 and 1" ? Number(v > -0.7) : 1 / (1 + Math.exp(-v))));
  const uncertainty = doubt.map((v, i) => Math.sqrt(1 - strength ** 2) * v - strength * latent[i]);
  const share = area === "sum" ? 1 : max_rejection;
  const atlas = prrAtlas(quality, uncertainty), numbers = { PRR: prr(quality, uncertainty, { area, max_rejection: share }).value, ...atlas };
  const ratio = (name) => (["structured_uncertainty", "prior_networks"].includes(name) ? 0.01 : 1);
  const rows = Object.entries(atlas).map(([name, value]) => [name, value * ratio(name), name === "uetrust" ? "method" : "oracle"]);
  const found = rows.map(([, value]) => value).filter((v) => !Number.isNaN(v));
  const says = `The cumulative ${area} with at most ${Math.round(100 * share)} % rejected gives PRR ${digits(numbers.PRR)}. ` +
    `${found.length} definitions say ${digits(Math.min(...found), 2)} to ${digits(Math.max(...found), 2)} for the same scores.`;
  return { numbers, says, shown: bars(says, rows, { limits: [-1.1, 1.1], unit: "PRR; per cent divided by 100" }) };
}

// 3 Ties
function ties({ n, levels, rows, failed, draw }) {
  const rng = new RandomState(draw), latent = rng.randn(n), doubt = rng.randn(n).map((v, i) => v - latent[i]);
  const all = latent.map((v) => 1 / (1 + Math.exp(-v))), rank = ranks(doubt);
  const fails = rng.rand(n).map((v) => v < failed / 100);
  const order = { "as drawn": all.map((_, i) => i), "best first": argsort(all.map((v) => -v)), "worst first": argsort(all) }[rows];
  const uncertainty = order.map((i) => Math.ceil(levels * rank[i] / n));
  const marked = (mark) => order.map((i) => (fails[i] ? mark : all[i])), kept = marked(NaN);
  const average = prr(kept, uncertainty), inRows = prr(kept, uncertainty, { ties: "input" }).value;
  const numbers = {
    "PRR, ties averaged": average.value, "PRR, ties in row order": inRows, "PRR, worst order of ties": average.tie_lo,
    "PRR, best order of ties": average.tie_hi, "spread of random row orders": average.tie_sd,
    "PRR, failures written as 0": prr(marked(0), uncertainty).value,
    "PRR, failures written as -1": prr(marked(-1), uncertainty).value, "texts used": average.n,
  };
  const says = `Averaged over ties PRR is ${digits(average.value)}; with the rows ${rows} a stable sort gives ${digits(inRows)}, ` +
    `and some order of the rows gives any value between ${digits(average.tie_lo)} and ${digits(average.tie_hi)}.`;
  const shown = Object.entries(numbers).filter(([name]) => name.startsWith("PRR")).map(([name, value]) => [name.slice(5), value, name.endsWith("averaged") ? "method" : "oracle"]);
  return { numbers, says, shown: bars(says, shown, { limits: [-1.2, 1.2], band: 1.96 * average.null_sd, unit: "PRR; grey: null interval" }) };
}

// 4 Chance and power
function chance({ n, bad, first, second, shared }) {
  const quality = Array.from({ length: n }, (_, i) => Number(i >= bad)), half = 1.96 * prr(quality, quality.map((_, i) => i)).null_sd;
  const rng = new RandomState(0), found = [];
  for (let study = 0; study < 100; study++) {
    const [common, ownFirst, ownSecond] = [rng.randn(n), rng.randn(n), rng.randn(n)];
    const score = (effect, own) => own.map((v, i) => effect * (i < bad) + Math.sqrt(shared) * common[i] + Math.sqrt(1 - shared) * v);
    found.push(prrDifference(quality, score(first, ownFirst), score(second, ownSecond)));
  }
  const values = found.map((d) => d.value), numbers = {
    "half width of the null interval": half, "mean difference of the two PRRs": mean(values),
    "power: studies of 100 that tell them apart": found.filter((d) => d.p < 0.05).length,
    "studies of 100 with the wrong method ahead": values.filter((v) => v * (first - second) < 0).length,
  };
  const says = `With ${bad} bad texts of ${n}, a random order stays within \u00b1${digits(half)} in 95 % of cases. ` +
    `Of 100 studies of this size, ${numbers["power: studies of 100 that tell them apart"]} tell the two methods apart.`;
  const limits = [-1.5, 1.5], [random, drawn] = [randomValues(quality, 2000), values].map((v) => shares(v, limits));
  const plot = axes(limits, [0, Math.max(0.3, ...random, ...drawn)], "PRR of a random order, and difference of the two methods", "share");
  const band = element("svg:rect", { class: "band", x: plot.x(Math.max(-1.5, -half)), width: plot.x(Math.min(1.5, half)) - plot.x(Math.max(-1.5, -half)), y: BOX.top, height: BOX.bottom - BOX.top });
  return { numbers, says, shown: figure(says, band, plot.plot, ...histogram(plot, random, limits, "random"), ...histogram(plot, drawn, limits, "method see-through"), legend([["random", "2,000 random orders"], ["method", "difference, 100 studies"]])) };
}

function randomValues(quality, draws) { // PRR of random orders
  const n = quality.length, weights = rankWeights(n), centre = mean(quality), rng = new RandomState(1);
  const risk = quality.map((q) => centre - q), gap = -dot(weights, [...risk].sort((a, b) => a - b));
  const bad = risk.filter((r) => r > 0).length, places = weights.map((_, i) => i), step = (risk[0] - risk[n - 1]) / gap;
  return Array.from({ length: draws }, () => { // Labels 0 and 1: only the places of the bad ones count
    let total = 0;
    for (let k = 0; k < bad; k++) {
      const j = k + rng.below(n - 1 - k);
      [places[k], places[j]] = [places[j], places[k]];
      total += weights[places[k]];
    }
    return (bad / n - total) * step;
  });
}

// 5 Length
function length({ n, quality_slope, metric_slope, uncertainty_slope, skill, draw }) {
  const rng = new RandomState(draw), [long, own, error, doubt] = [0, 1, 2, 3].map(() => rng.randn(n));
  const truth = own.map((v, i) => quality_slope * long[i] + v);
  const metric = truth.map((v, i) => 0.7 * v + metric_slope * long[i] + 0.7 * error[i]);
  const uncertainty = doubt.map((v, i) => uncertainty_slope * long[i] - skill * truth[i] + v);
  const centre = mean(metric), middle = mean(long);
  const slope = sum(long.map((v, i) => (v - middle) * (metric[i] - centre))) / sumOfSquares(long);
  const under = prr(metric, uncertainty), known = prr(truth, uncertainty), numbers = {
    "PRR under the metric": under.value, "PRR under the truth": known.value,
    "PRR of length alone, under the metric": prr(metric, long).value, "PRR of length alone, under the truth": prr(truth, long).value,
    "PRR under the metric without its slope on length": prr(metric.map((v, i) => v - slope * long[i]), uncertainty).value,
    "correlation of metric and truth": pearson(metric, truth),
  };
  const says = `PRR is ${digits(under.value)} under the metric and ${digits(known.value)} under the truth.`;
  const names = ["under the metric", "under the truth", "length, metric", "length, truth", "metric without length"];
  const rows = Object.values(numbers).slice(0, 5).map((value, i) => [names[i], value, i < 2 ? "method" : "oracle"]);
  return { numbers, says, shown: bars(says, rows, { limits: [-1.2, 1.2], band: 1.96 * known.null_sd, unit: "PRR; grey: null interval" }) };
}

// 6 Thresholds
function thresholds({ n, separation, shift, good, draw }) {
  const rng = new RandomState(draw), texts = (share, move) => {
    const y = rng.rand(n).map((v) => Number(v < share)), noise = rng.randn(n);
    return [y, y.map((v, i) => separation * v + move + noise[i])];
  };
  const [y, x] = texts(0.5, 0), [newY, newX] = texts(good / 100, shift), threshold = logisticThreshold(x, y), share = mean(newY);
  const numbers = {
    "AUC on the texts of the threshold": auc(y, x), "AUC on the new texts": auc(newY, newX),
    "accuracy on the texts of the threshold": accuracy(y, x, threshold), "accuracy on the new texts": accuracy(newY, newX, threshold),
    "best accuracy there, in hindsight": hindsightAccuracy(newX, newY), "accuracy of the commoner answer": Math.max(share, 1 - share),
  };
  const says = `AUC on the new texts is ${digits(numbers["AUC on the new texts"])}. The threshold, learned elsewhere, is right on ` +
    `${digits(100 * numbers["accuracy on the new texts"], 0)} % of them; the commoner answer alone on ${digits(100 * numbers["accuracy of the commoner answer"], 0)} %.`;
  const limits = [-6, 8], [bad, fine] = [0, 1].map((k) => shares(newX.filter((_, i) => newY[i] === k), limits, n));
  const plot = axes(limits, [0, Math.max(0.2, ...bad, ...fine)], "score of the new texts", "share");
  const cut = Number.isFinite(threshold.at) ? [element("svg:line", { class: "cut", x1: plot.x(threshold.at), x2: plot.x(threshold.at), y1: BOX.top, y2: BOX.bottom })] : [];
  return { numbers, says, shown: figure(says, plot.plot, ...histogram(plot, bad, limits, "bad see-through"), ...histogram(plot, fine, limits, "method see-through"), ...cut, legend([["bad", "bad texts"], ["method", "good texts"], ["ink", "threshold"]])) };
}

// 7 Claims
function units({ n, claims, spread, between, within, draw }) {
  const rng = new RandomState(draw), all = n * claims, at = Array.from({ length: all }, (_, i) => Math.floor(i / claims));
  const hard = rng.randn(n), own = rng.randn(all), doubt = rng.randn(all);
  const right = at.map((t, i) => Number(spread * hard[t] + own[i] < 0.8));
  const uncertainty = at.map((t, i) => between * hard[t] + within * own[i] + doubt[i]);
  const byText = (x) => hard.map((_, t) => mean(x.slice(t * claims, (t + 1) * claims))), inside = withinAuroc(right, uncertainty, at);
  const numbers = {
    "2 AUROC - 1 over all claims": 2 * auroc(right, uncertainty) - 1, "2 AUROC - 1 within a text": 2 * inside.value - 1,
    "PRR of texts by their mean": prr(byText(right), byText(uncertainty)).value,
    "texts with right and wrong claims": inside.texts, "wrong claims in per cent": 100 * (1 - mean(right)),
  };
  const [pooled, within_, across] = Object.values(numbers);
  const says = `Over all ${all} claims 2 AUROC \u2212 1 is ${digits(pooled, 2)}. Within a text it is ${digits(within_, 2)}, a mean over ` +
    `the ${inside.texts} texts that have right and wrong claims.`;
  const rows = [["over all claims", pooled, "oracle"], ["within a text", within_, "method"], ["between texts", across, "bad"]];
  return { numbers, says, shown: bars(says, rows, { limits: [-1, 1], unit: "2 AUROC \u2212 1, PRR" }) };
}

// 8 Noise
function noise({ n, methods, metrics, shared, draw }) {
  const rng = new RandomState(draw), common = rng.randn(n), table = (k) => {
    const all = rng.randn(n * k);
    return Array.from({ length: k }, (_, j) => Array.from({ length: n }, (_, i) => all[i * k + j]));
  };
  const qualities = table(metrics).map((own) => own.map((v, i) => Math.sqrt(shared) * common[i] + Math.sqrt(1 - shared) * v));
  const { values, nullSd } = prrGrid(qualities, table(methods));
  const cells = values.flatMap((row) => row.map((value, k) => Math.abs(value) / nullSd[k]));
  const outside = values.map((row) => row.filter((value, k) => Math.abs(value) > 1.96 * nullSd[k]).length);
  const flat = values.flat(), numbers = {
    cells: cells.length, "cells outside their null interval": sum(outside), "cells significant after Holm": holmCount(cells),
    "largest PRR": Math.max(...flat), "smallest PRR": Math.min(...flat), "most cells outside in one method": Math.max(...outside),
  };
  const says = `${sum(outside)} of ${cells.length} cells (${digits(100 * sum(outside) / cells.length, 1)} %) lie outside their null interval, ` +
    `the best at PRR ${digits(numbers["largest PRR"], 2)}; after Holm's correction ${numbers["cells significant after Holm"]} are left. There is nothing to find.`;
  return { numbers, says, shown: heatMap(says, values, nullSd) };
}

function holmCount(z) { // Of how many |z| Holm's correction at 5 % rejects 'no effect'
  const p = z.map((v) => 2 * normalCdf(-v)).sort((a, b) => a - b), stop = p.findIndex((v, i) => !(v * (p.length - i) < 0.05));
  return stop < 0 ? p.length : stop;
}

function heatMap(says, values, nullSd) {
  const width = 350 / nullSd.length, height = 200 / values.length, found = element("svg:g");
  values.forEach((row, m) => row.forEach((value, k) => {
    const z = Math.abs(value) / nullSd[k], size = { x: 2 + k * width, y: 17 + m * height, width: width - 1, height: height - 1 };
    found.append(element("svg:rect", { class: `fill ${value < 0 ? "bad" : "method"}`, "fill-opacity": Math.min(1, z / 3).toFixed(3), ...size }));
    if (z > 1.96) found.append(element("svg:rect", { class: "frame", ...size }));
  }));
  found.append(label(2, 11, "methods (rows) by metrics (columns)"), label(2, 230, "blue: above 0, orange: below; framed: outside the null interval"));
  return figure(says, found);
}

// 9 Own file
export function parseTable(text, name) { // {columns, rows}: rows hold text, numbers and nulls
  if (/\.(jsonl|ndjson)$/i.test(name)) return parseJsonLines(text);
  const rows = parseDelimited(text.replace(/^\ufeff/, ""), /\.tsv$/i.test(name) ? "\t" : ",");
  const columns = rows.shift() ?? [];
  if (!rows.length) throw new Error(`the file has ${columns.length ? "a heading and no row" : "no text"}; one row per text is needed`);
  const short = rows.findIndex((row) => row.length !== columns.length);
  if (short >= 0) throw new Error(`line ${short + 2} has ${rows[short].length} cells and the heading ${columns.length}; a comma inside a cell needs quotes`);
  return { columns, rows: rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]]))) };
}

function parseJsonLines(text) {
  const lines = text.split(/\r?\n/).filter((one) => one.trim());
  const rows = lines.map((one, i) => {
    let row;
    try { row = JSON.parse(one); } catch { throw new Error(`line ${i + 1} is not JSON: ${one.slice(0, 40)}`); }
    if (row === null || typeof row !== "object" || Array.isArray(row)) throw new Error(`line ${i + 1} is not an object with named scores: ${one.slice(0, 40)}`);
    return row;
  });
  if (!rows.length) throw new Error("the file is empty; one JSON object per line is needed");
  return { columns: [...new Set(rows.flatMap(Object.keys))], rows };
}

function parseDelimited(text, comma) {
  const rows = [];
  let row = [], cell = "", quoted = false, begun = false;
  const endRow = () => { if (begun) rows.push([...row, cell]); row = []; cell = ""; begun = false; };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += c; i++; } else quoted = false;
    } else if (c === '"' && cell === "") quoted = begun = true;
    else if (c === comma) { row.push(cell); cell = ""; begun = true; }
    else if (c === "\n") endRow();
    else if (c !== "\r") { cell += c; begun = true; }
  }
  if (quoted) throw new Error("a quotation mark is opened and never closed");
  endRow();
  return rows;
}

const MISSING = new Set(["", "nan", "na", "n/a", "null", "none", "<na>"]);
export function column({ columns, rows }, name) { // Numbers, NaN where missing
  if (!columns.includes(name)) throw new Error(`the file has no column "${name}"; it has ${columns.map((c) => `"${c}"`).join(", ")}`);
  return rows.map((row, i) => {
    const value = row[name];
    if (value === null || value === undefined || (typeof value === "string" && MISSING.has(value.trim().toLowerCase()))) return NaN;
    const number = typeof value === "boolean" || typeof value === "number" ? Number(value) : typeof value === "string" ? Number(value) : NaN;
    if (Number.isNaN(number)) throw new Error(`column "${name}" holds ${JSON.stringify(value)} in row ${i + 1}, which is not a number; leave the cell empty where a score is missing`);
    return number;
  });
}

function own(state, { table }) {
  if (!table) return { numbers: {}, says: "Choose a file, or drop it here." };
  const sign = state.direction === "larger is less certain" ? 1 : -1;
  const quality = column(table, state.quality), uncertainty = column(table, state.uncertainty).map((v) => sign * v), found = prr(quality, uncertainty);
  if (Number.isNaN(found.value)) throw new Error(found.n < 3 ? `${found.note}: ${quality.length} rows, of which ${found.n} have both scores` : `all ${found.n} texts have the same quality: there is nothing to rank`);
  const half = 1.96 * found.null_sd, numbers = {
    PRR: found.value, "lower end of its 95 % interval": found.lo, "upper end of its 95 % interval": found.hi, "half width of the null interval": half,
    "PRR, worst order of ties": found.tie_lo, "PRR, best order of ties": found.tie_hi, "texts used": found.n, "texts without a score": quality.length - found.n,
  };
  const where = Math.abs(found.value) > half ? "outside" : "inside";
  const says = `PRR is ${digits(found.value)} [${digits(found.lo)}, ${digits(found.hi)}] on ${found.n} of ${quality.length} texts, ${where} the null interval of \u00b1${digits(half)}.`;
  const curve = rejectionCurve(quality, uncertainty), k = curve.risk.map((_, i) => i + 1), top = Math.max(...curve.risk, curve.random) * 1.05;
  const plot = axes([1, found.n], [0, top], "texts kept, most certain first", "mean risk");
  const shown = figure(says, plot.plot, line(plot, k, k.map(() => curve.random), "random"), line(plot, k, curve.oracle, "oracle"), line(plot, k, curve.risk, "method"),
    legend([["method", state.uncertainty.slice(0, 16)], ["oracle", "perfect order"], ["random", "random order"]]));
  return { numbers, says, shown };
}

export const DRAW = { drag, definitions, ties, chance, length, thresholds, units, noise, own };

// State and its link
export function complete(panel, given = {}) { // Every control, inside its limits
  const state = {};
  for (const control of PANELS[panel].controls) {
    const value = given[control.name] ?? control.value;
    if (typeof control.value === "string") state[control.name] = !control.choices || control.choices.includes(value) ? String(value) : control.value;
    else state[control.name] = inside(Number.isFinite(Number(value)) ? Number(value) : control.value, control, state);
  }
  return state;
}

function most(control, state) {
  if (typeof control.max === "number") return control.max;
  return control.max === "n / 2" ? Math.floor(state.n / 2) : state[control.max];
}

function inside(value, control, state) {
  const steps = Math.round((value - control.min) / control.step), near = Number((control.min + steps * control.step).toFixed(6));
  return Math.min(most(control, state), Math.max(control.min, near));
}

export function readFragment(fragment) {
  const given = Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, "")));
  const panel = Object.hasOwn(PANELS, given.panel ?? "") ? given.panel : "drag";
  return { panel, state: complete(panel, given) };
}

export const fragmentOf = (panel, state) => "#" + new URLSearchParams({ panel, ...state });

export function pythonOf(panel, state) {
  const names = Object.keys(state).join(", "), values = Object.values(state).map((v) => JSON.stringify(v)).join(", ");
  return PANELS[panel].code.replace(/^\w+(?:, \w+)+ = .*$/m, () => `${names} = ${values}`); // The first such line
}

// The page
let count = 0;
export function mountPanel(root, panel, given, { onChange = () => {}, page } = {}) { // page: address that a link leads to
  const { title, question, controls } = PANELS[panel], id = `uetrust-${panel}-${count++}`;
  let state = complete(panel, given), table = null;
  const says = element("p", { class: "says", "aria-live": "polite" }), shown = element("div", { class: "figure" }), numbers = element("tbody");
  const results = element("table", {}, element("caption", {}, "Numbers"), numbers);
  const code = element("code"), inputs = {}, link = element("a", { class: "link" }, "Link to this state");

  const change = (part) => {
    state = complete(panel, { ...state, ...part });
    draw();
    onChange(state);
  };

  function draw() {
    for (const control of controls) inputs[control.name].show(state[control.name], control.step && most(control, state));
    code.textContent = pythonOf(panel, state);
    if (page !== undefined) link.setAttribute("href", page + fragmentOf(panel, state));
    let found;
    try {
      found = DRAW[panel](state, { change, table });
      root.classList.remove("failed");
    } catch (e) {
      root.classList.add("failed");
      found = { numbers: {}, says: e.message[0].toUpperCase() + e.message.slice(1) + "." };
    }
    says.textContent = found.says;
    shown.replaceChildren(...(found.shown ? [found.shown] : []));
    results.hidden = !Object.keys(found.numbers).length;
    numbers.replaceChildren(...Object.entries(found.numbers).map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", { "data-name": name, "data-value": value }, digits(value)))));
  }

  const useTable = (name, found) => {
    table = found;
    const guess = (wanted, now) => (found.columns.includes(now) ? now : found.columns.find((c) => wanted.test(c)) ?? found.columns[0]);
    change({ file: name, quality: guess(/quality|score|human|label|rouge/i, state.quality), uncertainty: guess(/uncert|entropy|msp|perplex/i, state.uncertainty) });
  };
  const failed = (e) => { table = null; draw(); root.classList.add("failed"); says.textContent = `The file cannot be used: ${e.message}.`; };

  for (const control of controls) inputs[control.name] = makeInput(`${id}-${control.name}`, control, (value) => change({ [control.name]: value }), () => table, { useTable, failed });
  if (panel === "own") acceptDrops(root, useTable, failed);
  const copy = element("button", { type: "button", onclick: () => copyText(code, copy) }, "Copy");
  root.replaceChildren(
    element("h2", {}, title), element("p", { class: "question" }, question),
    element("form", { class: "controls", onsubmit: (e) => e.preventDefault() }, ...controls.map((c) => inputs[c.name].field)),
    says, shown, results, ...(page === undefined ? [] : [element("p", {}, link)]),
    element("details", {}, element("summary", {}, "The same in Python"), copy, element("div", { class: "code", role: "region", "aria-label": "The same in Python", tabindex: 0 }, element("pre", {}, code))));
  draw();
  return { get state() { return state; }, set(given) { state = complete(panel, given); draw(); } };
}

function copyText(code, button) {
  const done = () => { button.textContent = "Copied"; };
  const select = () => { getSelection().selectAllChildren(code); button.textContent = "Selected: press Ctrl+C"; };
  if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
  else select();
}

function makeInput(id, control, change, table, file) {
  const field = element("div", { class: "field" }), name = element("label", { for: id }, control.label);
  if (control.name === "file") return fileInput(id, field, name, file);
  if (control.choices || typeof control.value === "string") {
    const select = element("select", { id, onchange: () => change(select.value) });
    field.append(name, select);
    return { field, show(value) {
      const options = control.choices ?? table()?.columns ?? [value];
      select.replaceChildren(...[...new Set([...options, value])].map((text) => element("option", { value: text, selected: text === value }, text)));
    } };
  }
  const input = element("input", { id, type: "range", min: control.min, step: control.step, oninput: () => change(Number(input.value)) });
  const now = element("output", { for: id });
  field.append(name, now, input);
  return { field, show(value, max) { input.max = max; input.value = value; now.textContent = digits(value, 2); } };
}

function fileInput(id, field, name, { useTable, failed }) {
  const input = element("input", { id, type: "file", accept: ".csv,.tsv,.jsonl,.ndjson", onchange: () => input.files[0] && read(input.files[0], useTable, failed) });
  name.textContent = "File (CSV, TSV or JSONL); it stays on this machine";
  field.append(name, input);
  return { field, show() {} };
}

function read(file, useTable, failed) {
  return file.text().then((text) => useTable(file.name, parseTable(text, file.name))).catch(failed);
}

function acceptDrops(root, useTable, failed) {
  const over = (e, on) => { e.preventDefault(); root.classList.toggle("over", on); };
  root.addEventListener("dragover", (e) => over(e, true));
  root.addEventListener("dragleave", (e) => over(e, false));
  root.addEventListener("drop", (e) => { over(e, false); if (e.dataTransfer.files[0]) read(e.dataTransfer.files[0], useTable, failed); });
}

export function mountPage(root) { // All panels, one at a time; the address says which, and its state
  const place = element("section"), links = Object.entries(PANELS).map(([panel, { title }]) => element("a", { href: `#panel=${panel}`, "data-panel": panel }, title));
  let here = null, mounted = null;
  root.classList.add("uetrust-playground");
  root.replaceChildren(element("nav", { "aria-label": "Panels" }, ...links), place);
  const keep = (panel) => (state) => history.replaceState(null, "", fragmentOf(panel, state));
  const go = () => {
    const { panel, state } = readFragment(location.hash);
    for (const one of links) one.toggleAttribute("aria-current", one.dataset.panel === panel);
    if (panel === here) return mounted.set(state);
    here = panel;
    const fresh = element("section");
    place.replaceChildren(fresh);
    mounted = mountPanel(fresh, panel, state, { onChange: keep(panel), page: "" });
  };
  window.addEventListener("hashchange", go);
  go();
}

export function mountAll() { // Every element of a page that asks for the playground or for a panel of it
  const script = document.currentScript.src, page = script && new URL("playground.html", script).href;
  for (const root of document.querySelectorAll("[data-playground]")) {
    const asked = root.dataset.playground;
    if (!asked) { mountPage(root); continue; }
    const { panel, state } = readFragment(asked);
    root.classList.add("uetrust-playground");
    mountPanel(root, panel, state, { page });
  }
}

// For anywidget: the state lives in Python and in the browser
export default {
  render({ model, el }) {
    el.classList.add("uetrust-playground");
    let quiet = false;
    const mounted = mountPanel(el, model.get("panel"), model.get("state"), { onChange(state) {
      quiet = true;
      model.set("state", state);
      model.save_changes();
      quiet = false;
    } });
    const follow = () => quiet || mounted.set(model.get("state"));
    model.on("change:state", follow);
    return () => model.off("change:state", follow);
  },
};
