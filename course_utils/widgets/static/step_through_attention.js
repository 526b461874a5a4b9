// --- one computation --------------------------------------------------------------------------------------------

const STRIPS = [24, 20]; // CSS pixels of a vector, for few keys and for many
const MANY = 10;

// A row a key: its vector, its score, its weight, its value and its share of the output; a column a step.
class ComputationDrawing {
  constructor(view, { mask }) {
    Object.assign(this, { view, mask });
    const { rows, columns, arrays } = view;
    const of = (name, count) => Array.from({ length: count }, (_, k) => {
      const width = arrays[name].length / count;
      return arrays[name].subarray(k * width, (k + 1) * width);
    });
    this.queries = of("queries", rows.length);
    this.keys = of("keys", columns.length);
    this.values = of("values", columns.length);
    this.largest = Object.fromEntries(["queries", "keys", "values"].map((name) => [name, furthest(arrays[name])]));

    this.asking = element("div", { class: "st-asking" }, [
      element("span", { class: "st-caption", text: "query:" }),
      ...rows.map((token, i) => {
        const word = tokenElement(token, "st-word st-query");
        word.addEventListener("click", () => view.turnTo(i), { signal: view.closing.signal });
        return word;
      }),
    ]);
    this.height = STRIPS[columns.length > MANY ? 1 : 0];
    this.query = strip("st-query", this.height);
    this.lines = columns.map((token, j) => this.line(token, j));
    this.output = strip("st-value", this.height);
    const head = (step, ...nodes) => element("div", { class: "st-head", "data-head": step }, nodes);
    const name = (className, text) => element("span", { class: className, text });
    this.asks = element("div", { class: "st-asks" });
    this.table = element("div", { class: "st-table" }, [
      element("div", { class: "st-head" }, [this.asks]), head(0, this.query.svg),
      head(0, name("st-query", "q"), " · ", name("st-key", "k"), ` ÷ √${this.queries[0].length}`),
      head(2, "softmax: weight"), head(3, name("st-value", "value")), head(3, "weight × ", name("st-value", "value")),
      ...this.lines.flatMap(({ nodes }) => nodes),
      element("div", { class: "st-sum", "data-step": 4 }, [name("st-value", "sum of the column: output")]),
      element("div", { class: "st-foot", "data-step": 4 }, [this.output.svg]),
    ]);
    this.node = element("div", {}, [this.asking, this.table]);
    this.heads = [...this.table.querySelectorAll("[data-head]")];
    this.cells = [...this.table.querySelectorAll("[data-step]")];
  }

  line(token, j) {
    const { view } = this;
    const strips = Object.fromEntries(["key", "value", "share"].map((name) =>
      [name, strip(name === "key" ? "st-key" : "st-value", this.height)]));
    const number = () => element("span", { class: "st-number" });
    const bar = () => element("span", { class: "st-bar-room" }, [element("i")]);
    const [score, weight, scoreBar, weightBar] = [number(), number(), bar(), bar()];
    scoreBar.classList.add("is-signed");
    const cell = (step, ...nodes) => element("div", { class: "st-cell", "data-step": step }, nodes);
    const nodes = [
      tokenElement(token, "st-word st-key"), cell(0, strips.key.svg), cell(0, score, scoreBar), cell(2, weight, weightBar),
      cell(3, strips.value.svg), cell(3, strips.share.svg),
    ];
    for (const node of nodes) answerPointer(node, () => view.explain(j), view.closing.signal);
    return { nodes, strips, score, weight, scoreBar: scoreBar.firstChild, weightBar: weightBar.firstChild };
  }

  // Scores before the mask, weights, shares and the output of the query. The same as in Python.
  compute() {
    const { query } = this.view.state;
    const q = this.queries[query];
    const open = this.mask[query];
    const products = this.keys.map((key) => total(key, (value, c) => value * q[c]));
    const scores = products.map((product) => product / Math.sqrt(q.length));
    const top = Math.max(...scores.filter((_, j) => open[j]));
    const powers = scores.map((score, j) => (open[j] ? Math.exp(score - top) : 0));
    const sum = total(powers, (power) => power);
    const weights = powers.map((power) => (sum ? power / sum : 0)); // fully masked: zeros
    const shares = this.values.map((value, j) => Array.from(value, (number) => weights[j] * number));
    const output = Array.from(this.values[0], (_, c) => total(shares, (share) => share[c]));
    return { q, open, products, scores, weights, shares, output };
  }

  show() {
    const { view } = this;
    const { query, step } = view.state;
    this.now = this.compute();
    const { q, open, scores, weights, shares, output } = this.now;
    [...this.asking.children].slice(1).forEach((word, i) => word.classList.toggle("is-current", i === query));
    this.asks.replaceChildren(view.word("rows", query), " asks");
    this.query.show(q, this.largest.queries);
    const furthestScore = furthest(scores);
    this.lines.forEach(({ nodes, strips, score, weight, scoreBar, weightBar }, j) => {
      const masked = step >= 1 && !open[j];
      nodes.forEach((node) => {
        node.classList.toggle("is-masked", masked);
        node.classList.toggle("is-closed", !open[j]); // the same, of all steps at once: for print
      });
      strips.key.show(this.keys[j], this.largest.keys);
      strips.value.show(this.values[j], this.largest.values);
      strips.share.show(shares[j], this.largest.values);
      score.textContent = masked ? "−∞" : signed(scores[j]);
      const half = masked ? 0 : (50 * scores[j]) / furthestScore;
      scoreBar.style.cssText = `left:${50 + Math.min(0, half)}%; width:${Math.abs(half)}%`;
      weight.textContent = narrow(weights[j]);
      weightBar.style.cssText = `left:0; width:${100 * weights[j]}%`;
    });
    this.output.show(output, this.largest.values);
    const marked = step === 1 ? 0 : step; // the mask works on the scores
    for (const cell of this.cells) {
      cell.classList.toggle("is-hidden", Number(cell.dataset.step) > step);
      cell.classList.toggle("is-now", Number(cell.dataset.step) === marked);
    }
    for (const cell of this.heads) {
      cell.classList.toggle("is-coming", Number(cell.dataset.head) > step);
      cell.classList.toggle("is-now", Number(cell.dataset.head) === marked);
    }
    view.count.textContent = `query ${query + 1} of ${view.rows.length}`;
    this.point();
  }

  // The key that is explained: the one under the pointer, or the strongest.
  get key() {
    return this.view.pointed ?? strongestOf(this.now.weights);
  }

  point() {
    this.lines.forEach(({ nodes }, j) => nodes.forEach((node) => node.classList.toggle("is-current", j === this.key)));
    return this.lines[this.key].nodes[0];
  }

  story() {
    const { view, key: j, now: { q, open, products, scores, weights, shares, output } } = this;
    const { step } = view.state;
    const asks = () => view.word("rows", view.state.query);
    const key = () => view.word("columns", j);
    const b = (text) => element("b", { text });
    const width = q.length;
    const nobody = !open.some(Boolean);
    const terms = (first, second, count = 3) => Array.from({ length: Math.min(count, first.length) }, (_, c) =>
      `${signed(first[c])} × ${signed(second[c])}`).join(" + ") + (first.length > count ? " + …" : "");
    if (step === 0) {
      return [
        ["The query meets every key: multiply number by number, add up, divide by √", `${width}.`],
        [asks(), " · ", key(), ` = ${terms(q, this.keys[j])} = ${signed(products[j], 4)}, ÷ √${width} = `, b(signed(scores[j], 4))],
      ];
    }
    if (step === 1) {
      const hidden = view.columns.filter((_, k) => !open[k]).length;
      return [
        hidden ? [`The mask: ${hidden} of ${open.length} keys may not be seen; their scores become −∞.`]
          : ["The mask: this query may see every key, so nothing changes."],
        open[j] ? [key(), " may be seen: its score stays ", b(signed(scores[j], 4))]
          : [key(), " may not be seen: ", b("−∞"), ` instead of ${signed(scores[j], 4)}`],
      ];
    }
    if (step === 2) {
      const powers = scores.map((score, k) => (open[k] ? Math.exp(score) : 0));
      const sum = total(powers, (power) => power);
      const raised = open[j] ? `e^${signed(scores[j], 4)} = ${powers[j].toPrecision(3)}` : "e^−∞ = 0";
      const writable = sum > 0 && sum < Infinity; // else only the weights can be written
      return [
        [nobody ? "No key may be seen: all weights are zero." : "The softmax: positive weights that sum to one."],
        [key(), ": ", ...(writable ? [`${raised}, ÷ ${sum.toPrecision(3)} (the sum over all keys) = `] : []), b(readable(weights[j]))],
      ];
    }
    if (step === 3) {
      const some = (vector) => `${Array.from(vector).slice(0, 3).map((number) => signed(number)).join(", ")}${vector.length > 3 ? ", …" : ""}`;
      return [
        ["Every value is multiplied by the weight of its key."],
        [b(readable(weights[j])), " × ", element("span", { class: "st-value", text: "value of " }), key(),
          `: (${some(this.values[j])}) becomes (${some(shares[j])})`],
      ];
    }
    const first = this.values.map((value) => value[0]);
    const order = weights.map((_, k) => k).sort((x, y) => weights[y] - weights[x]);
    const strongestFirst = (list) => order.map((k) => list[k]);
    return [
      ["The sum is the output for ", asks(), ": a mixture of the values."],
      [`its first number: ${terms(strongestFirst(weights), strongestFirst(first))} = `, b(signed(output[0], 4))],
    ];
  }

  legend() {
    const sample = (className, text) => element("span", { class: `st-sample ${className}`, text });
    return [sample("st-query", "query"), sample("st-key", "key"), sample("st-value", "value"),
      element("span", { text: "a bar is a number: up positive, down negative · point at a key to read it" })];
  }
}

function furthest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}
