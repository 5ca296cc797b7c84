// The arithmetic of uetrust's evaluation, as pure functions: tests/report/test_playground.py holds them to the
// Python functions of the same names. Quality: larger is better. Uncertainty: larger is less certain.

// Sums and orders
export function sum(x) {
  let total = 0, lost = 0; // Neumaier: what rounding loses is kept
  for (const v of x) {
    const next = total + v;
    lost += Math.abs(total) >= Math.abs(v) ? total - next + v : v - next + total;
    total = next;
  }
  return total + lost;
}

export const mean = (x) => sum(x) / x.length;
export const dot = (a, b) => sum(Array.from(a, (v, i) => v * b[i]));
const largest = (x) => x.reduce((a, b) => Math.max(a, b), -Infinity);
const smallest = (x) => x.reduce((a, b) => Math.min(a, b), Infinity);
const spread = (x) => largest(x) - smallest(x);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const ascending = (x) => Float64Array.from(x).sort();

export function sumOfSquares(x) {
  const centre = mean(x);
  return sum(Array.from(x, (v) => (v - centre) ** 2));
}

export function median(x) {
  const sorted = ascending(x), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Smallest first, equal values by `then` and at last in the order of the rows
export function argsort(x, then) {
  return range(x.length).sort((a, b) => x[a] - x[b] || (then ? then[a] - then[b] : 0) || a - b);
}

export function ranks(x) { // 1..n, ties get the mean of theirs
  const { item, start } = tieOrder(x, "average"), found = new Float64Array(x.length);
  start.forEach((from, g) => {
    const to = start[g + 1] ?? x.length;
    for (let i = from; i < to; i++) found[item[i]] = (from + 1 + to) / 2;
  });
  return found;
}

export function tieOrder(uncertainty, ties, risk) { // item: most certain first; start: first position of each block
  const then = { best: risk, worst: risk && Array.from(risk, (r) => -r) }[ties];
  const item = argsort(uncertainty, then), every = range(item.length);
  if (ties !== "average") return { item, start: every };
  return { item, start: every.filter((i) => i === 0 || uncertainty[item[i]] !== uncertainty[item[i - 1]]) };
}

// Rank weights
const HARMONIC = [0];
function harmonic(n) {
  while (HARMONIC.length <= n) HARMONIC.push(HARMONIC[HARMONIC.length - 1] + 1 / HARMONIC.length);
  return HARMONIC[n];
}

export class Undefined extends Error {}

export function rankWeights(n, area = "mean", maxRejection = 1) {
  if (area === "sum") {
    if (maxRejection !== 1) throw new Undefined("the sum is defined for all rejections only: max_rejection = 1");
    return range(n).map((i) => (n - i) / n);
  }
  const prefixes = Math.trunc(maxRejection * n);
  if (prefixes < 2) throw new Undefined(`max_rejection = ${maxRejection} leaves ${prefixes} rejection step of ${n} texts`);
  return range(n).map((i) => (harmonic(n) - harmonic(Math.max(i, n - prefixes))) / prefixes);
}

const sizes = (order) => order.start.map((from, g) => (order.start[g + 1] ?? order.item.length) - from);

function itemWeights(order, weights) { // Averaged within ties, in the order of the rows
  const found = new Float64Array(weights.length), size = sizes(order);
  order.start.forEach((from, g) => {
    const value = size[g] === 1 ? weights[from] : mean(weights.slice(from, from + size[g]));
    for (let i = from; i < from + size[g]; i++) found[order.item[i]] = value;
  });
  return found;
}

function tieVariance(order, weights, risk) {
  const size = sizes(order);
  return sum(order.start.map((from, g) => {
    if (size[g] === 1) return 0;
    const at = range(size[g]).map((i) => from + i);
    return sumOfSquares(at.map((i) => weights[i])) * sumOfSquares(at.map((i) => risk[order.item[i]])) / (size[g] - 1);
  }));
}

function deleteOneAreas(order, risk, options) { // Area of the others, for each item left out
  const { item, start } = order, n = item.length, size = sizes(order);
  const total = [0];
  for (const w of rankWeights(n - 1, ...options)) total.push(total[total.length - 1] + w);
  const blockRisk = start.map((from, g) => sum(item.slice(from, from + size[g]).map((i) => risk[i])));
  const end = start.map((from, g) => from + size[g]);
  const ahead = start.map((from, g) => (total[Math.min(end[g], n - 1)] - total[Math.min(from, n - 1)]) / size[g]);
  const behind = start.map((from, g) => (total[end[g] - 1] - total[Math.max(from - 1, 0)]) / size[g]);
  const own = start.map((from, g) => (total[end[g] - 1] - total[from]) / Math.max(size[g] - 1, 1));
  const areas = new Float64Array(n), all = dot(blockRisk, behind);
  let before = 0;
  start.forEach((from, g) => {
    before += blockRisk[g] * (ahead[g] - behind[g]);
    const base = all + before + blockRisk[g] * (own[g] - ahead[g]);
    for (let i = from; i < end[g]; i++) areas[item[i]] = size[g] === 1 ? base : base - own[g] * risk[item[i]];
  });
  return areas;
}

// Prediction-rejection ratio
export function completePairs(quality, ...scores) { // Rows that have every score, and how many lack one
  const lengths = [quality, ...scores].map((x) => x.length);
  if (new Set(lengths).size > 1) throw new Error(`the scores have ${lengths.join(" and ")} values: one of each per text is needed`);
  const at = Array.from(quality).findIndex((q) => Math.abs(q) === Infinity);
  if (at >= 0) throw new Error(`quality must be finite, found infinity at position ${at}. A score that does not exist is NaN`);
  const kept = range(quality.length).filter((i) => [quality, ...scores].every((x) => !Number.isNaN(x[i])));
  return [[quality, ...scores].map((x) => kept.map((i) => x[i])), quality.length - kept.length];
}

function powerOfTwo(x) { // Exponent e of x = m 2^e with m in [1/2, 1), as frexp
  if (!(x > 0)) return 0;
  if (x < 2 ** -1000) return powerOfTwo(x * 2 ** 200) - 200;
  let e = Math.floor(Math.log2(x)) + 1;
  while (x / 2 ** (e - 1) / 2 >= 1) e++;
  while (x / 2 ** (e - 1) / 2 < 0.5) e--;
  return e;
}

function rescaled(quality) { // Times a power of two, and without an offset that is large against the range
  const e = powerOfTwo(largest(quality.map(Math.abs))), half = 2 ** -(e >> 1), rest = 2 ** -(e - (e >> 1));
  const scaled = quality.map((q) => q * half * rest);
  return largest(scaled.map(Math.abs)) > 2 ** 20 * spread(scaled) ? scaled.map((q) => q - smallest(scaled)) : scaled;
}

function effectiveSize(scaled) { // How many texts decide the value
  const middle = median(scaled), d = scaled.map((q) => Math.abs(q - middle));
  return d.some((v) => v) ? sum(d) ** 2 / sum(d.map((v) => v * v)) : NaN;
}

function jackknife(values) {
  return Math.sqrt((values.length - 1) / values.length * sumOfSquares(values));
}

class Cells { // One metric and the areas that its methods need
  constructor(quality, area, maxRejection) {
    this.n = quality.length;
    this.options = [area, maxRejection];
    this.weights = rankWeights(this.n, area, maxRejection);
    const scaled = rescaled(quality), centre = mean(scaled);
    this.constant = spread(scaled) === 0;
    this.risk = scaled.map((q) => (this.constant ? 0 : centre - q));
    this.best = tieOrder(this.risk, "average");
    this.gap = this.constant ? NaN : -this.area(this.best);
    this.size = effectiveSize(scaled);
  }

  area(order) { return dot(itemWeights(order, this.weights), this.risk); }

  value(order) { return -this.area(order) / this.gap; }

  leftOut(order) { // PRR without each text
    const whole = this.options[0] === "sum" ? this.n / 2 : 1;
    const oracle = deleteOneAreas(this.best, this.risk, this.options);
    return deleteOneAreas(order, this.risk, this.options).map((area, i) => {
      const random = -this.risk[i] / (this.n - 1) * whole, gain = random - oracle[i];
      return gain > 1e-12 * Math.max(Math.abs(random), Math.abs(oracle[i])) ? (random - area) / gain : NaN;
    });
  }

  get nullSd() {
    return Math.sqrt(sumOfSquares(this.weights) * sumOfSquares(this.risk) / (this.n - 1)) / this.gap;
  }
}

function interval(value, se, size, lowest) {
  const quantile = tQuantile(0.975, Math.max(size, 2) - 1), gap = 1 - value, inside = gap > 1e-12;
  const half = inside ? quantile * se / gap : 0;
  const lo = Math.max(inside ? 1 - gap * Math.exp(half) : 0.025 ** (1 / size), Math.min(lowest, value));
  const near = Math.abs(value) < 0.99;
  const hi = near ? Math.tanh(Math.atanh(value) + quantile * se / (1 - value * value)) : 1 - gap * Math.exp(-half);
  return Number.isNaN(se) ? [NaN, NaN] : [lo, hi];
}

const NOTHING = { value: NaN, se: NaN, lo: NaN, hi: NaN, null_sd: NaN, tie_sd: NaN, tie_lo: NaN, tie_hi: NaN };

export function prr(quality, uncertainty, { area = "mean", ties = "average", max_rejection = 1 } = {}) {
  const [[q, u], lost] = completePairs(quality, uncertainty), n = q.length;
  const note = lost ? `${lost} of ${n + lost} pairs missing` : "";
  if (n < 3) return { ...NOTHING, n, note: `${n} pairs: at least 3 are needed` };
  try {
    return { ...fields(new Cells(q, area, max_rejection), u, ties), note };
  } catch (e) {
    if (!(e instanceof Undefined)) throw e;
    return { ...NOTHING, n, note: e.message };
  }
}

function fields(cells, u, ties) {
  const order = tieOrder(u, ties, cells.risk), tied = tieOrder(u, "average"), n = cells.n;
  const value = cells.value(order), few = n < 4 || Math.trunc(cells.options[1] * (n - 1)) < 2;
  const se = few ? NaN : jackknife(cells.leftOut(order));
  const lowest = -sum(cells.best.item.map((i, k) => cells.weights[n - 1 - k] * cells.risk[i])) / cells.gap;
  const [lo, hi] = interval(value, se, cells.size, lowest);
  const [tie_hi, tie_lo] = ["best", "worst"].map((rule) => cells.value(tieOrder(u, rule, cells.risk)));
  const tie_sd = Math.sqrt(tieVariance(tied, cells.weights, cells.risk)) / cells.gap;
  return { value, se, lo, hi, null_sd: cells.nullSd, tie_sd, tie_lo, tie_hi, n };
}

export function prrDifference(quality, first, second, { area = "mean" } = {}) {
  const [[q, ...methods]] = completePairs(quality, first, second), n = q.length;
  if (n < 4 || spread(q) === 0) return { value: NaN, se: NaN, p: NaN, n };
  const cells = new Cells(q, area, 1), orders = methods.map((u) => tieOrder(u, "average"));
  const value = cells.value(orders[0]) - cells.value(orders[1]);
  const [a, b] = orders.map((order) => cells.leftOut(order)), se = jackknife(a.map((v, i) => v - b[i]));
  return { value, se, p: twoSided(value, se, Math.min(n, 3 * (cells.size - 1))), n };
}

function twoSided(value, se, size) { // Student's t; degrees of freedom plus 1
  if (Number.isNaN(se)) return NaN;
  if (se === 0) return value === 0 ? 1 : NaN;
  const df = Math.max(size, 2) - 1, t = value / se;
  return incompleteBeta(df / 2, 0.5, df / (df + t * t));
}

export function rejectionCurve(quality, uncertainty) { // By the number kept, 1..n
  const [[q, u]] = completePairs(quality, uncertainty), n = q.length;
  if (n < 3) throw new Error(`a curve needs at least 3 pairs, found ${n}`);
  const top = largest(q), risk = q.map((v) => top - v), order = tieOrder(u, "average"), size = sizes(order);
  const blocks = order.start.flatMap((from, g) => {
    const here = mean(order.item.slice(from, from + size[g]).map((i) => risk[i]));
    return new Array(size[g]).fill(here);
  });
  const running = (x) => { let s = 0; return x.map((v, i) => (s += v) / (i + 1)); };
  const random = mean(risk), scatter = sumOfSquares(risk) / n;
  const half = range(n).map((i) => 1.96 * Math.sqrt(scatter * (n - i - 1) / ((i + 1) * (n - 1))));
  return {
    coverage: range(n).map((i) => (i + 1) / n), risk: running(blocks), oracle: running([...ascending(risk)]),
    random, random_lo: half.map((h) => random - h), random_hi: half.map((h) => random + h),
  };
}

// Other measures
export function auc(labels, scores) { // Probability that a 1 scores higher than a 0; ties count one half
  const rank = ranks(scores), ones = sum(labels), zeros = labels.length - ones;
  if (!ones || !zeros) return NaN;
  return (dot(labels, rank) - ones * (ones + 1) / 2) / (ones * zeros);
}

export function auroc(quality, uncertainty) { // Quality 0 or 1: a 0 should be less certain than a 1
  const [[q, u]] = completePairs(quality, uncertainty);
  return auc(q.map((v) => (v >= 1 ? 0 : 1)), u);
}

export function withinAuroc(quality, uncertainty, document) { // Mean over the texts that have both labels
  const parts = new Map();
  document.forEach((name, i) => parts.set(name, [...(parts.get(name) ?? []), i]));
  const found = [...parts.values()].map((part) => auroc(part.map((i) => quality[i]), part.map((i) => uncertainty[i])));
  const known = found.filter((value) => !Number.isNaN(value));
  return { value: known.length ? mean(known) : NaN, texts: known.length };
}

export function pearson(x, y) {
  const mx = mean(x), my = mean(y);
  const joint = sum(Array.from(x, (v, i) => (v - mx) * (y[i] - my)));
  return joint / Math.sqrt(sumOfSquares(x) * sumOfSquares(y));
}

export function spearman(quality, uncertainty) { // Of uncertainty with minus quality
  const [[q, u]] = completePairs(quality, uncertainty);
  return pearson(ranks(u), ranks(q.map((v) => -v)));
}

// Thresholds: a text is called good (1) where (score > at) equals `up`
export function logisticThreshold(x, y) { // L2 penalty of 1/2 slope^2 on standardised scores
  const centre = mean(x), sd = Math.sqrt(sumOfSquares(x) / x.length) || 1, z = x.map((v) => (v - centre) / sd);
  let a = 0, b = 0;
  for (let step = 0; step < 100; step++) {
    const p = z.map((v) => 1 / (1 + Math.exp(-(a + b * v)))), error = p.map((v, i) => v - y[i]);
    const curve = p.map((v) => v * (1 - v)), ga = sum(error), gb = dot(error, z) + b;
    if (Math.max(Math.abs(ga), Math.abs(gb)) < 1e-8 * z.length) break;
    const aa = sum(curve), ab = dot(curve, z), bb = sum(z.map((v, i) => curve[i] * v * v)) + 1, det = aa * bb - ab * ab;
    a -= Math.min(2, Math.max(-2, (bb * ga - ab * gb) / det));
    b -= Math.min(2, Math.max(-2, (aa * gb - ab * ga) / det));
  }
  return b === 0 ? { at: a > 0 ? -Infinity : Infinity, up: true } : { at: centre - sd * a / b, up: b > 0 };
}

export const accuracy = (labels, scores, { at, up }) =>
  labels.filter((y, i) => (y === 1) === ((scores[i] > at) === up)).length / labels.length;

export function hindsightAccuracy(x, y) { // Of the best upward threshold on these very texts
  const order = argsort(x);
  let right = sum(y), best = right;
  order.forEach((i, k) => {
    right += y[i] ? -1 : 1;
    if (k + 1 === x.length || x[order[k + 1]] !== x[i]) best = Math.max(best, right);
  });
  return best / x.length;
}

// Normal and Student distributions
function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x < 2.5) { // Series of positive terms
    let term = x, total = x;
    for (let k = 1; term > 1e-17 * total; k++) total += (term *= 2 * x * x / (2 * k + 1));
    return 1 - 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * total;
  }
  let tail = 0; // Continued fraction from its far end
  for (let k = 120; k > 0; k--) tail = k / 2 / (x + tail);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + tail);
}

export const normalCdf = (x) => erfc(-x / Math.SQRT2) / 2;

function logGamma(x) { // Stirling's series beyond 15, stepped down
  let shift = 0;
  for (; x < 15; x++) shift += Math.log(x);
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * 691 / 360360))))) / x;
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series - shift;
}

function incompleteBeta(a, b, x) { // Regularised
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  let d = 1 / (1 - (a + b) * x / (a + 1)), c = 1, f = d;
  for (let m = 1; m < 500; m++) {
    for (const k of [m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))]) {
      d = 1 / (1 + k * d);
      c = 1 + k / c;
      f *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  const front = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x);
  return Math.exp(front) * f / a;
}

export function tQuantile(p, df) { // p > 1/2; bisection on the logarithm
  if (!Number.isFinite(df)) return Number.isNaN(df) ? NaN : 1.959963984540054;
  let lo = 0, hi = 20;
  for (let i = 0; i < 200 && hi - lo > 0; i++) {
    const middle = (lo + hi) / 2, t = Math.expm1(middle);
    if (middle === lo || middle === hi) break;
    if (incompleteBeta(df / 2, 0.5, df / (df + t * t)) / 2 > 1 - p) lo = middle; else hi = middle;
  }
  return Math.expm1((lo + hi) / 2);
}

// NumPy's legacy generator, so that a draw here is a draw there: np.random.RandomState(seed)
export class RandomState {
  constructor(seed) {
    const key = new Uint32Array(624);
    key[0] = seed;
    for (let i = 1; i < 624; i++) {
      const last = key[i - 1] ^ (key[i - 1] >>> 30);
      key[i] = Math.imul(1812433253, last) + i;
    }
    Object.assign(this, { key, position: 624, kept: null });
  }

  uint32() {
    const key = this.key;
    if (this.position === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (key[i] & 0x80000000) | (key[(i + 1) % 624] & 0x7fffffff);
        key[i] = key[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.position = 0;
    }
    let y = key[this.position++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  uniform() { return ((this.uint32() >>> 5) * 67108864 + (this.uint32() >>> 6)) / 9007199254740992; }

  rand(n) { return range(n).map(() => this.uniform()); }

  normal() {
    if (this.kept !== null) { const value = this.kept; this.kept = null; return value; }
    let a, b, square;
    do {
      a = 2 * this.uniform() - 1;
      b = 2 * this.uniform() - 1;
      square = a * a + b * b;
    } while (square >= 1 || square === 0);
    const factor = Math.sqrt(-2 * Math.log(square) / square);
    this.kept = factor * a;
    return factor * b;
  }

  randn(n) { return range(n).map(() => this.normal()); }

  below(most) { // 0..most, both included
    let mask = most, value;
    for (const shift of [1, 2, 4, 8, 16]) mask |= mask >>> shift;
    do value = (this.uint32() & mask) >>> 0; while (value > most);
    return value;
  }

  shuffle(x) {
    for (let i = x.length - 1; i > 0; i--) {
      const j = this.below(i);
      [x[i], x[j]] = [x[j], x[i]];
    }
    return x;
  }
}

// Every definition that public code has for the name PRR, as in uetrust.evaluation.atlas
const KEPT = new Map();
function averageShuffle(n, key, seed, weightOf) { // Mean weight of each row over 1,000 seeded shuffles
  if (!KEPT.has(key)) {
    const rng = new RandomState(seed), shuffled = range(n), total = new Float64Array(n);
    for (let draw = 0; draw < 1000; draw++) {
      rng.shuffle(shuffled);
      for (let i = 0; i < n; i++) total[i] += weightOf(shuffled[i]);
    }
    if (KEPT.size > 20) KEPT.clear();
    KEPT.set(key, total.map((v) => v / 1000));
  }
  return KEPT.get(key);
}

function released(q, u, area = "mean", share = 1) {
  const n = q.length, top = largest(q), span = spread(q), risk = q.map((v) => (top - v) / span);
  const weights = rankWeights(n, area, share), inOrder = (scores) => dot(weights, argsort(scores).map((i) => risk[i]));
  const random = dot(averageShuffle(n, `r${n}${area}${share}`, 42, (i) => weights[i]), risk);
  return (inOrder(u) - random) / (inOrder(risk) - random);
}

function normalised(method, random, best) {
  if (best === random) throw new Undefined("a random order is as good as the best: there is nothing to rank");
  return (method - random) / (best - random);
}

const certainFirst = (q, u) => argsort(u).map((i) => q[i]);
const bestFirst = (q) => [...ascending(q)].reverse();
const keptMeans = (x) => { let s = 0; return x.map((v, i) => (s += v) / (i + 1)); };

function rawArea(q, u, share) {
  const low = smallest(q), span = spread(q), means = keptMeans(certainFirst(q.map((v) => (v - low) / span), u));
  const prefixes = Math.trunc(share * q.length);
  if (prefixes < 2) throw new Undefined("fewer than 2 rejection steps");
  return mean(means.slice(-prefixes));
}

const trapezoid = (x, single = false) =>
  sum(range(x.length - 1).map((i) => {
    const pair = x[i + 1] + x[i];
    return (single ? Math.fround(pair) : pair) * (1 / x.length);
  })) / 2;

function forcedTruth(q) { // Mean quality with the first i texts made perfect
  let gained = 0;
  const all = sum(q);
  return q.map((v) => { const now = (all + gained) / q.length; gained += 100 - v; return now; });
}

function structured(q, u) {
  const n = q.length, scaled = q.map((v) => 100 * v), centre = mean(scaled);
  const random = range(n).map((i) => Math.fround(centre * (1 - i / n) + 100 * (i / n)));
  const order = argsort(u).reverse(), per = (x) => x.map((v) => v / 100);
  const method = trapezoid(per(forcedTruth(order.map((i) => scaled[i]))));
  const best = trapezoid(per(forcedTruth([...ascending(scaled)])));
  return 100 * normalised(method, trapezoid(random.map((v) => Math.fround(v / 100)), true), best);
}

function priorNetworks(q, u) {
  const n = q.length, first = certainFirst(q, u);
  let wrong = 0;
  const errors = first.map((v) => { const now = wrong * 100 / n; wrong += 1 - v; return now; });
  const base = errors[n - 1], count = base / 100 * n;
  const random = range(n).map((i) => Math.fround(base * (1 - i / n)));
  const best = range(n).map((i) => (i < Math.trunc(count) ? Math.fround(base * (1 - i / Math.max(count, 1))) : 0));
  const per = (x) => x.map((v) => v / 100);
  const expected = trapezoid(random.map((v) => Math.fround(v / 100)), true);
  return 100 * normalised(trapezoid(per(errors.reverse())), expected, trapezoid(per(best)));
}

function trapezoidFull(q, u) {
  const n = q.length, rng = new RandomState(0), weights = new Float64Array(n);
  let running = 0;
  for (let i = n - 1; i >= 0; i--) weights[i] = running += (i === 0 || i === n - 1 ? 0.5 : 1) / n / (i + 1);
  const random = mean(range(100).map(() => dot(weights, rng.shuffle([...q]).reverse())));
  return normalised(dot(weights, certainFirst(q, u)), random, dot(weights, bestFirst(q)));
}

function trapezoidHalf(q, u) {
  const most = Math.floor(0.5 * q.length), all = mean(q);
  const gain = (first) => keptMeans(first).reverse().slice(0, most + 1).map((v) => v - all);
  const ratio = normalised(trapezoid(gain(certainFirst(q, u))), 0, trapezoid(gain(bestFirst(q))));
  return Math.max(0, Math.min(1, ratio));
}

function truthTorch(q, u) {
  const n = q.length, weights = rankWeights(n);
  const random = dot(averageShuffle(n, `t${n}`, 0, (i) => weights[n - 1 - i]), q);
  return normalised(dot(weights, certainFirst(q, u)), random, dot(weights, bestFirst(q)));
}

function medianGain(q, u) {
  const middle = median(u), all = mean(q);
  return (mean(q.filter((_, i) => u[i] <= middle)) - all) / (1 - all + 1e-12);
}

const labelsOnly = (definition) => (q, u) => {
  if (q.some((v) => v !== 0 && v !== 1)) throw new Undefined("defined for labels 0 and 1 only");
  return definition(q, u);
};

export const DEFINITIONS = {
  uetrust: (q, u) => prr(q, u).value,
  he2024: (q, u) => released(q, u),
  lm_polygraph: (q, u) => released(q, u),
  lm_polygraph_50: (q, u) => released(q, u, "mean", 0.5),
  lm_polygraph_raw: (q, u) => rawArea(q, u, 1),
  lm_polygraph_raw_50: (q, u) => rawArea(q, u, 0.5),
  truthtorchlm: truthTorch,
  he2024_sum: (q, u) => released(q, u, "sum"),
  structured_uncertainty: structured,
  prior_networks: labelsOnly(priorNetworks),
  trapezoid_full: trapezoidFull,
  trapezoid_50: trapezoidHalf,
  query_level: labelsOnly((q, u) => normalised(auroc(q, u), auroc(q, new RandomState(0).rand(q.length)), 1)),
  median_gain: medianGain,
};

export function prrAtlas(quality, uncertainty) { // {definition: value}, NaN where it is not defined
  const [[q, u]] = completePairs(quality, uncertainty);
  if (spread(q) === 0) throw new Undefined(`constant quality: all ${q.length} pairs have ${q[0]}, there is nothing to rank`);
  return Object.fromEntries(Object.entries(DEFINITIONS).map(([name, definition]) => {
    try {
      return [name, definition(q, u)];
    } catch (e) {
      if (!(e instanceof Undefined)) throw e;
      return [name, NaN];
    }
  }));
}

export function prrGrid(qualities, uncertainties) { // PRR of every method under every metric: {values: [M][K], nullSd: [K]}
  const cells = qualities.map((quality) => new Cells(quality, "mean", 1));
  const orders = uncertainties.map((uncertainty) => tieOrder(uncertainty, "average"));
  return { values: orders.map((order) => cells.map((one) => one.value(order))), nullSd: cells.map((one) => one.nullSd) };
}
