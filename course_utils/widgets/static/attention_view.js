// The attention view: every head as a small picture, or one head as a matrix, as links between two columns of
// tokens, or down to the products of a query and a key.
//
// State: {_content: {shape, top, rows, columns, alignment, segments, padding, width, heads, edition or cut}, cell,
// layer, head, heads, view, between, title}. Rows are queries (purple), columns are keys (orange); `cell` is
// [row, column] or null; `heads` are those drawn together as links, or empty.
//
// The drawings are in attention_view_*.js. Each is a class with a `node`, showHead() and showCell(cell), and what it
// adds to the legend; `controls`, says(), move(down, right) and open() are optional.

const VIEWS = { matrix: "Matrix", links: "Links", grid: "Grid", neuron: "Neuron" };
const BETWEEN = { all: "all", AA: "A → A", AB: "A → B", BA: "B → A", BB: "B → B" };

class AttentionView extends CourseWidget {
  constructor(place, state, tell, ask) {
    super(place, state, tell, "attention-view", ask);
    this.listen();
  }

  // Draw `state`: everything if the tensor is new, otherwise only what has changed.
  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (...names) => names.some((name) => before[name] !== state[name]);
    if (changed("_content", "title")) this.build();
    if (changed("_content", "title", "view")) this.chooseDrawing();
    else if (changed("layer", "head", "heads", "between")) this.showHead();
    this.showCell();
  }

  // The kernel has sent a head, or all the thumbnails.
  answer(content, buffers) {
    if (!this.store.arrive(content, buffers)) return;
    this.showHead();
    this.showCell();
  }

  // --- the tensor ---

  weight(row, column) {
    return this.weights[row * this.columns.length + column];
  }

  strongestColumn(row) {
    return strongest(this.columns.length, (column) => this.weight(row, column));
  }

  strongestRow(column) {
    return strongest(this.rows.length, (row) => this.weight(row, column));
  }

  isAligned(row, column) {
    return this.alignment.some(([i, j]) => i === row && j === column);
  }

  isPadding(row, column) {
    return this.padding[0].includes(row) || this.padding[1].includes(column);
  }

  // Whether the token takes part, if only the links from one sentence to another are shown.
  takesPart(side, index) {
    const { between } = this.state;
    return between === "all" || "AB"[this.segments[index]] === between[side === "row" ? 0 : 1];
  }

  // --- building ---

  build() {
    const content = this.state._content;
    const { shape: [layers, heads], top, rows, columns, alignment = [], segments = [], padding = [[], []] } = content;
    Object.assign(this, { layers, heads, top, rows, columns, alignment, segments, padding });
    this.store = new HeadStore(content, this.ask);
    this.weights = new Float32Array(rows.length * columns.length); // until the first head is there

    this.views = ["matrix", "links", ...(layers * heads > 1 ? ["grid"] : []), ...(content.width ? ["neuron"] : [])];
    this.toggles = this.views.map((name) => this.toggle(name));
    const numbers = (count) => Array.from({ length: count }, (_, k) => [k, k]);
    this.choosers = {
      layer: this.chooser("layer", numbers(layers), (layer) => this.chooseHead(Number(layer), this.state.head)),
      head: this.chooser("head", numbers(heads), (head) => this.chooseHead(this.state.layer, Number(head))),
      between: this.chooser("sentences", segments.length ? Object.entries(BETWEEN) : [], (between) => this.choose({ between })),
    };
    this.controls = element("div", { class: "av-controls" });
    this.stage = element("div", { class: "av-stage", tabindex: 0, role: "application" });
    this.stage.setAttribute("aria-roledescription", "attention view");
    answerKeys(this.stage, this.stageKeys(), this.closing.signal);
    this.readout = element("div", { class: "av-readout", role: "status", "aria-live": "polite" });
    const longest = (tokens) => Math.max(...tokens.map((token) => token.length));
    // keep room for a second line, or the matrix would move under the pointer
    this.readout.classList.toggle("is-long", longest(this.rows) + longest(this.columns) > 36);
    this.legend = element("div", { class: "av-legend" });

    const title = this.state.title;
    this.root.setAttribute("aria-label", title || "Attention view");
    this.root.replaceChildren(
      element("div", { class: "av-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        element("span", { class: "av-toggle", role: "group", "aria-label": "View" }, this.toggles),
        ...Object.values(this.choosers).filter(Boolean).map((select) => select.parentNode),
      ]),
      this.controls,
      this.readout,
      this.stage,
      this.legend,
      ...(content.cut ? [element("div", { class: "av-cut", role: "note", text: content.cut })] : []),
    );
  }

  toggle(name) {
    const button = element("button", { type: "button", text: VIEWS[name] });
    button.addEventListener("click", () => this.choose({ view: name }), { signal: this.closing.signal });
    return button;
  }

  // A select with its label, or null where there is nothing to choose. `options` are pairs of value and text.
  chooser(name, options, choose) {
    if (options.length < 2) return null;
    const select = element("select", {}, options.map(([value, text]) => element("option", { value, text })));
    element("label", { text: `${name} ` }).append(select);
    select.addEventListener("change", () => choose(select.value), { signal: this.closing.signal });
    return select;
  }

  chooseDrawing() {
    const { view } = this.state;
    const Drawing = { matrix: MatrixDrawing, links: LinksDrawing, grid: GridDrawing, neuron: NeuronDrawing }[view];
    this.drawing = new Drawing(this);
    this.stage.replaceChildren(this.drawing.node);
    this.controls.replaceChildren(...[this.drawing.controls].filter(Boolean));
    this.toggles.forEach((button, k) => button.setAttribute("aria-pressed", this.views[k] === view));
    if (this.choosers.between) this.choosers.between.parentNode.hidden = !["matrix", "links"].includes(view);
    this.legend.replaceChildren(...this.drawing.legend());
    this.showHead();
  }

  // What the legends of several drawings have in common.
  hint(...keys) {
    const more = [
      ...(this.heads > 1 && this.state.view !== "grid" ? ["[ ] head"] : []),
      ...(this.layers > 1 && this.state.view !== "grid" ? ["{ } layer"] : []),
    ];
    return element("span", { class: "av-hint", text: [...keys, ...more, "v view", "Esc leaves"].join(" · ") });
  }

  paddingKey() {
    if (!this.padding.some((marked) => marked.length)) return [];
    const sample = element("span", { class: "av-padded av-sample", "aria-hidden": "true" });
    return [element("span", { class: "av-padding-key" }, [sample, " padding"])];
  }

  // --- showing ---

  showHead() {
    const { layer, head, heads, between } = this.state;
    this.drawn = (heads || []).filter((other) => this.store.canShow(layer, other));
    if (!this.drawn.length) this.drawn = [head];
    if (this.choosers.layer) this.mark(this.choosers.layer, layer, (other) => this.store.canShow(other, head));
    if (this.choosers.head) this.mark(this.choosers.head, head, (other) => this.store.canShow(layer, other));
    if (this.choosers.between) this.choosers.between.value = between;
    // in the grid, going past a head must not load it
    this.parts = this.state.view === "grid" ? null : this.store.get(layer, head);
    this.isWaiting = !this.parts && this.state.view !== "grid";
    this.root.classList.toggle("is-waiting", this.isWaiting);
    if (this.parts) this.weights = this.parts.weights;
    this.drawing.showHead();
  }

  // Show the value of a select; the others that cannot be chosen are grey.
  mark(select, value, canChoose) {
    select.value = value;
    for (const option of select.options) option.disabled = !canChoose(Number(option.value));
  }

  showCell() {
    const cell = this.state.cell;
    this.drawing.showCell(cell);
    this.readout.replaceChildren(...this.says(cell));
    if (cell && this.parts) this.readout.dataset.value = this.weight(...cell);
    const where = `${this.rows.length} queries, ${this.columns.length} keys`;
    this.stage.setAttribute("aria-label", cell ? `${where}. ${this.readout.textContent}` : `${where}. Arrow keys select.`);
  }

  says(cell) {
    const { layer, head } = this.state;
    const small = (text) => element("span", { class: "av-where", text });
    if (this.isWaiting) return [small(`waiting for the kernel to send layer ${layer}, head ${head}`)];
    if (this.drawing.says) return this.drawing.says();
    if (!cell) return [small("nothing selected")];
    const [row, column] = cell;
    const compared = this.state.view === "links" && this.drawn.length > 1 ? this.drawn : [];
    return [
      tokenElement(this.rows[row], "av-query"), " → ", tokenElement(this.columns[column], "av-key"), "  ",
      ...(compared.length ? [] : [element("b", { class: "av-value", text: readable(this.weight(row, column)) }), " "]),
      ...compared.flatMap((other) => this.saysOf(other, row, column)),
      small(`row ${row}, column ${column}`),
      ...(this.isAligned(row, column) ? [small(" · true link")] : []),
      ...(this.isPadding(row, column) ? [small(" · padding")] : []),
    ];
  }

  saysOf(head, row, column) {
    const parts = this.store.get(this.state.layer, head);
    const value = parts ? readable(parts.weights[row * this.columns.length + column]) : "…";
    return [element("span", { class: "av-where", text: `head ${head} ` }), element("b", { class: "av-value", text: value }), " "];
  }

  // --- choosing ---

  chooseHead(layer, head) {
    const { heads = [] } = this.state;
    this.choose({ layer, head, ...(heads.length && !heads.includes(head) ? { heads: [] } : {}) });
  }

  // Draw the links of one head more, or of one less; one always stays.
  toggleHead(head) {
    if (head >= this.heads || !this.store.canShow(this.state.layer, head)) return;
    const others = this.drawn.filter((other) => other !== head);
    const heads = others.length < this.drawn.length ? others : [...others, head].sort((a, b) => a - b);
    if (!heads.length) return;
    const read = [head, this.state.head, ...heads].find((other) => heads.includes(other));
    this.choose({ head: read, heads: heads.length > 1 ? heads : [] });
  }

  select(row, column) {
    const [i, j] = this.state.cell || [];
    if (row !== i || column !== j) this.choose({ cell: [row, column] });
    else this.showCell(); // the same cell, perhaps seen from its other side
  }

  // --- keys ---

  listen() {
    const next = (choices, now, by) => choices[(choices.indexOf(now) + by + choices.length) % choices.length];
    const range = (count) => [...Array(count).keys()];
    const stepHead = (by) => {
      const { layer, head, view } = this.state;
      const among = view === "links" && this.drawn.length > 1 ? this.drawn : range(this.heads);
      this.chooseHead(layer, next(among.filter((other) => this.store.canShow(layer, other)), head, by));
    };
    const stepLayer = (by) => {
      const { layer, head } = this.state;
      this.chooseHead(next(range(this.layers).filter((other) => this.store.canShow(other, head)), layer, by), head);
    };
    answerKeys(this.root, {
      "[": () => stepHead(-1),
      "]": () => stepHead(1),
      "{": () => stepLayer(-1),
      "}": () => stepLayer(1),
      v: () => this.choose({ view: next(this.views, this.state.view, 1) }),
    }, this.closing.signal);
  }

  stageKeys() {
    const move = (down, right) => {
      if (this.drawing.move) return this.drawing.move(down, right);
      const [row, column] = this.state.cell || [0, 0];
      this.drawing.side = down ? "row" : this.drawing.side;
      this.select(clamp(row + down, this.rows.length), clamp(column + right, this.columns.length));
    };
    const far = Math.max(this.columns.length, this.heads);
    return {
      ArrowUp: () => move(-1, 0),
      ArrowDown: () => move(1, 0),
      ArrowLeft: () => move(0, -1),
      ArrowRight: () => move(0, 1),
      Home: () => move(0, -far),
      End: () => move(0, far),
      Enter: () => this.drawing.open?.(),
      ",": () => this.drawing.point?.(-1),
      ".": () => this.drawing.point?.(1),
      ...Object.fromEntries(Array.from("0123456789", (digit) => [digit, () => this.drawing.toggle?.(Number(digit))])),
    };
  }
}

function strongest(count, weightAt) {
  let best = 0;
  for (let k = 1; k < count; k++) if (weightAt(k) > weightAt(best)) best = k;
  return best;
}

function clamp(index, count) {
  return Math.max(0, Math.min(count - 1, index));
}
