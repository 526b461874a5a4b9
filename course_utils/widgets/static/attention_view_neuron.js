// --- neuron -----------------------------------------------------------------------------------------------------

const STRIP_HEIGHT = 62;

// How one weight is computed: the query and the key, their products, the sum over the root of d, and the softmax
// over all keys.
class NeuronDrawing {
  constructor(view) {
    this.view = view;
    this.width = view.width; // of queries and keys
    this.dimension = 0;
    this.side = "row";
    const choose = (i, j) => view.select(i, j);
    const cell = () => view.state.cell || [0, 0];

    this.queries = this.tokens("row", (i) => choose(i, cell()[1]));
    this.keys = this.tokens("column", (j) => choose(cell()[0], j));
    const steps = ["query", "key", "product"];
    this.strips = Object.fromEntries(steps.map((name) => [name, strip(`av-strip av-${name}`, STRIP_HEIGHT)]));
    for (const { svg } of Object.values(this.strips)) answerPointer(svg, (event) => this.pointAt(event, svg), view.closing.signal);
    this.names = Object.fromEntries(steps.map((name) => [name, element("div", { class: "av-step" })]));
    this.one = element("div", { class: "av-one" });
    this.sum = element("div", { class: "av-sum" });
    this.share = element("div", { class: "av-sum" });
    this.answers = view.columns.map((_, j) => this.answer(j));

    const pair = steps.flatMap((name) => [this.names[name], this.strips[name].svg]);
    const head = ["5. all keys", "score", "", "weight", ""].map((text) => element("span", { class: "av-where", text }));
    this.node = element("div", { class: "av-neuron" }, [
      element("div", { class: "av-asking" }, [element("span", { class: "av-query av-step", text: "queries" }), ...this.queries]),
      element("div", { class: "av-pair" }, [...pair, this.one, this.sum, this.share]),
      element("div", { class: "av-answers" }, [...head, ...this.answers.flatMap((answer) => answer.nodes)]),
    ]);
  }

  tokens(side, choose) {
    const { rows, columns, padding, closing } = this.view;
    const [tokens, className, marked] = side === "row" ? [rows, "av-query", padding[0]] : [columns, "av-key", padding[1]];
    return tokens.map((token, k) => {
      const node = tokenElement(token, `av-word ${className}`);
      node.classList.toggle("is-padding", marked.includes(k));
      answerPointer(node, () => choose(k), closing.signal);
      return node;
    });
  }

  // One key: its token, score and weight, each with a bar.
  answer(column) {
    const number = () => element("span", { class: "av-number" });
    const bar = (name) => element("span", { class: `av-bar-room ${name}` }, [element("span", { class: "av-value-bar" })]);
    const [score, weight, scoreBar, weightBar] = [number(), number(), bar("is-score"), bar("is-weight")];
    const nodes = [this.keys[column], score, scoreBar, weight, weightBar];
    return { nodes, score, weight, scoreBar: scoreBar.firstChild, weightBar: weightBar.firstChild };
  }

  showHead() {
    if (!this.view.arrays) return;
    const { queries, keys } = this.view.arrays;
    const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    this.largest = Math.max(largest(queries), largest(keys));
  }

  showCell(cell) {
    const { view, width } = this;
    if (!view.arrays) return;
    const [row, column] = cell || [0, 0];
    const query = view.arrays.queries.subarray(row * width, (row + 1) * width);
    const key = (j) => view.arrays.keys.subarray(j * width, (j + 1) * width);
    const products = (j) => query.map((value, k) => value * key(j)[k]);
    const scores = view.columns.map((_, j) => products(j).reduce((sum, value) => sum + value, 0) / Math.sqrt(width));
    this.showAnswers(row, column, scores);

    const product = products(column);
    this.now = { query, key: key(column), product };
    const largestProduct = this.largest * Math.max(...query.map(Math.abs)) || 1;
    this.strips.query.show(query, this.largest);
    this.strips.key.show(key(column), this.largest);
    this.strips.product.show(product, largestProduct);
    const token = (side, k) => tokenElement(view[side][k], side === "rows" ? "av-query" : "av-key");
    this.names.query.replaceChildren("1. query of ", token("rows", row));
    this.names.key.replaceChildren("2. key of ", token("columns", column));
    this.names.product.replaceChildren("3. query × key, number by number");
    const sum = scores[column] * Math.sqrt(width);
    this.sum.replaceChildren(`4. sum ${signed(sum, 4)} ÷ √${width} = score `, element("b", { text: signed(scores[column], 4) }));
    const weight = view.weight(row, column);
    this.share.replaceChildren("5. softmax over all keys = weight ", element("b", { text: readable(weight) }));
    this.queries.forEach((node, i) => node.classList.toggle("is-current", i === row));
    this.keys.forEach((node, j) => node.classList.toggle("is-current", j === column));
    this.showDimension();
  }

  // The scores and weights of one query. A key is masked if its weight is zero although its score is not that low.
  showAnswers(row, column, scores) {
    const { view } = this;
    const weights = scores.map((_, j) => view.weight(row, j));
    const open = scores.filter((_, j) => weights[j] > 0);
    const top = Math.max(...open);
    const total = open.reduce((sum, score) => sum + Math.exp(score - top), 0);
    const isMasked = (j) => weights[j] === 0 && !(Math.exp(scores[j] - top) / total < 1e-4);
    const largest = scores.reduce((most, score, j) => (isMasked(j) ? most : Math.max(most, Math.abs(score))), 1e-9);
    this.answers.forEach(({ nodes, score, weight, scoreBar, weightBar }, j) => {
      const masked = isMasked(j);
      nodes.forEach((node) => node.classList.toggle("is-masked", masked));
      score.textContent = masked ? "masked" : signed(scores[j], 4);
      weight.textContent = readable(weights[j]);
      const half = masked ? 0 : (50 * scores[j]) / largest;
      scoreBar.style.cssText = `left:${50 + Math.min(0, half)}%; width:${Math.abs(half)}%`;
      weightBar.style.cssText = `left:0; width:${(100 * weights[j]) / view.top}%`;
    });
  }

  pointAt(event, svg) {
    const box = svg.getBoundingClientRect();
    this.dimension = clamp(Math.floor(((event.clientX - box.left) / box.width) * this.width), this.width);
    this.showDimension();
  }

  point(by) {
    this.dimension = (this.dimension + by + this.width) % this.width;
    this.showDimension();
  }

  showDimension() {
    const { dimension: k, now } = this;
    if (!now) return;
    for (const one of Object.values(this.strips)) one.point(k, this.width);
    this.one.replaceChildren(
      `number ${k}: `, element("span", { class: "av-query", text: signed(now.query[k], 4) }), " × ",
      element("span", { class: "av-key", text: signed(now.key[k], 4) }), " = ", element("b", { text: signed(now.product[k], 4) }),
    );
  }

  legend() {
    return [...this.view.paddingKey(), this.view.hint("↑ ↓ query", "← → key", ", . number")];
  }
}
