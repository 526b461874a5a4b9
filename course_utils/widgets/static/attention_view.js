// The attention view: every head as a small picture, or one head as a matrix, as links between two columns of
// tokens, or down to the products of a query and a key.
//
// State: {_content: {part: {shape, steps (of a film, whose "heads" are one head at these training steps), top, rows,
// columns, alignment, padding, causal, width, cell, heads, cut}}, part, cell, layer, head, heads, view, title}. The parts
// are those of PARTS, or one without a name. Rows are queries (purple), columns are keys (orange); `cell` is
// [row, column] or null, in the content the one to begin with; `heads` are those drawn together as links, or empty.
//
// The drawings are in attention_view_*.js. Each is a class with a `node`, showHead() and showCell(cell), and what it
// adds to the legend; `controls`, says(), move(down, right), open() and fit(room) are optional.

const VIEWS = { matrix: "Matrix", links: "Links", grid: "Grid", neuron: "Neuron" };
const PARTS = { encoder: "Encoder", decoder: "Decoder", cross: "Cross" };
const SIDES = { encoder: ["source ", "source "], decoder: ["target ", "target "], cross: ["target ", "source "] };
const STAGE_PADDING = 4; // of both sides

class AttentionView extends CourseWidget {
  constructor(place, state, tell, ask) {
    super(place, state, tell, "attention-view", ask);
    this.listen();
  }

  // Draw `state`: everything if the tensor is new, otherwise only what has changed.
  update(state) {
    const before = this.state || {};
    this.state = this.within(state);
    const changed = (...names) => names.some((name) => before[name] !== this.state[name]);
    if (changed("_content", "title")) this.build();
    if (changed("_content", "title", "part")) this.showPart();
    if (changed("_content", "title", "part", "view", "room")) this.chooseDrawing();
    else if (changed("layer", "head", "heads")) this.showHead();
    this.showCell();
  }

  // The kernel may send another part before its layer, head and cell.
  within(state) {
    const { shape: [layers, heads, ...sides] } = state._content[state.part];
    return {
      ...state,
      layer: state.layer < layers ? state.layer : 0,
      head: state.head < heads ? state.head : 0,
      cell: state.cell?.every((index, side) => index < sides[side]) ? state.cell : null,
    };
  }

  // The kernel has sent a head, or all the thumbnails.
  answer(content, buffers) {
    const store = this.stores[content.part];
    store.arrive(content, buffers);
    if (store !== this.store) return;
    const { layer, head } = this.state;
    if (!("head" in content) || [head, ...this.drawn].some((other) => content.head === layer * this.heads + other)) {
      this.showHead();
      this.showCell();
    } else this.fetchAhead(); // what is not seen is not drawn
  }

  // Of a head that is there, let the kernel send the neighbours too: then a key finds them.
  fetchAhead() {
    const { layer, head } = this.state;
    if (this.arrays) this.store.fetch([1, this.heads - 1].map((by) => layer * this.heads + ((head + by) % this.heads)));
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

  // The most tokens that a part has on this side.
  most(side) {
    return Math.max(...this.sides[side].map((tokens) => tokens.length));
  }

  isAligned(row, column) {
    return this.alignment.some(([i, j]) => i === row && j === column);
  }

  isPadding(row, column) {
    return this.padding[0].includes(row) || this.padding[1].includes(column);
  }

  isMasked(row, column) {
    return this.causal && column > row;
  }

  // --- building ---

  build() {
    const { _content: contents, title } = this.state;
    this.stores = Object.fromEntries(Object.entries(contents).map(([part, content]) => [part, new HeadStore(part, content, this.ask)]));
    // the tokens of all parts: they share one geometry, so that a query stays where it is
    this.sides = { row: Object.values(contents).map(({ rows }) => rows), column: Object.values(contents).map(({ columns }) => columns) };
    this.parts = Object.keys(PARTS).filter((part) => part in contents);
    this.partToggles = this.parts.map((part) => this.toggle(PARTS[part], () => this.choosePart(part)));
    this.tools = element("span", { class: "av-tools" });
    this.controls = element("div", { class: "av-controls" });
    this.stage = element("div", { class: "av-stage", tabindex: 0, role: "application" });
    this.stage.setAttribute("aria-roledescription", "attention view");
    answerKeys(this.stage, this.stageKeys(), this.closing.signal);
    this.stage.addEventListener("scroll", () => this.showEdge(), { signal: this.closing.signal });
    this.watcher?.disconnect();
    this.watcher = new ResizeObserver(() => {
      if (this.stage.scrollWidth > this.stage.clientWidth) this.drawing.fit?.(this.stage.clientWidth - STAGE_PADDING);
      this.showEdge();
    });
    this.watcher.observe(this.stage);
    this.readout = element("div", { class: "av-readout", role: "status", "aria-live": "polite" });
    this.legend = element("div", { class: "av-legend" });
    this.cut = element("div", { class: "av-cut", role: "note" });
    this.root.setAttribute("aria-label", title || "Attention view");
    this.root.replaceChildren(
      element("div", { class: "av-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        ...(this.parts.length ? [toggleGroup("Attention", this.partToggles)] : []),
        this.tools,
      ]),
      this.controls,
      this.readout,
      this.stage,
      this.legend,
      this.cut,
    );
  }

  // What belongs to one part: its tensor, and what can be chosen of it.
  showPart() {
    const { _content: contents, part } = this.state;
    const { shape: [layers, heads], top, rows, columns, alignment = [], padding = [[], []], causal, width, cut, steps } = contents[part];
    Object.assign(this, { layers, heads, top, rows, columns, alignment, padding, causal, width, steps });
    this.store = this.stores[part];
    this.weights = new Float32Array(rows.length * columns.length); // until the first head is there
    const [asking, asked] = SIDES[part] || ["", ""];
    this.names = { row: `${asking}queries`, column: `${asked}keys` };

    this.views = ["matrix", "links", ...(layers * heads > 1 ? ["grid"] : []), ...(width ? ["neuron"] : [])];
    this.toggles = this.views.map((view) => this.toggle(VIEWS[view], () => this.choose({ view })));
    const numbers = (count) => Array.from({ length: count }, (_, k) => [k, k]);
    this.choosers = {
      layer: this.chooser("layer", numbers(layers), (layer) => this.chooseHead(Number(layer), this.state.head)),
      head: (steps ? this.stepper : this.chooser).call(this, "head", numbers(heads), (head) => this.chooseHead(this.state.layer, Number(head))),
    };
    this.tools.replaceChildren(
      toggleGroup("View", this.toggles), ...Object.values(this.choosers).filter(Boolean).map((select) => select.parentNode),
    );
    this.partToggles.forEach((button, k) => button.setAttribute("aria-pressed", this.parts[k] === part));
    const longest = (tokens) => Math.max(...tokens.map((token) => token.length));
    // keep room for a second line, or the matrix would move under the pointer
    this.readout.classList.toggle("is-long", longest(rows) + longest(columns) > 36);
    this.cut.textContent = cut || "";
    this.cut.hidden = !cut;
  }

  toggle(text, answer) {
    const button = element("button", { type: "button", text });
    button.addEventListener("click", answer, { signal: this.closing.signal });
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

  // In the select's place for a film: a slider through its steps.
  stepper(_, options, choose) {
    const { input, value } = this.slider("av-film", "step ", { min: 0, max: options.length - 1, step: 1 }, choose);
    this.stepShown = value;
    return input;
  }

  get headName() {
    return this.steps ? "step" : "head";
  }

  nameOf(head) {
    return this.steps ? this.steps[head] : head;
  }

  chooseDrawing() {
    const { view } = this.state;
    const Drawing = { matrix: MatrixDrawing, links: LinksDrawing, grid: GridDrawing, neuron: NeuronDrawing }[view];
    this.root.dataset.view = view;
    this.drawing = new Drawing(this);
    this.stage.replaceChildren(this.drawing.node);
    this.controls.replaceChildren(...[this.drawing.controls].filter(Boolean));
    this.toggles.forEach((button, k) => button.setAttribute("aria-pressed", this.views[k] === view));
    this.legend.replaceChildren(...this.drawing.legend());
    this.showHead();
    this.watcher.observe(this.drawing.node);
  }

  // What is cut at the right edge fades there, until one has scrolled to its end.
  showEdge() {
    const { scrollLeft, clientWidth, scrollWidth } = this.stage;
    this.stage.classList.toggle("goes-on", scrollLeft + clientWidth < scrollWidth - 2);
  }

  // What the legends of several drawings have in common.
  hint(...keys) {
    const more = [
      ...(this.heads > 1 && this.state.view !== "grid" ? [`[ ] ${this.headName}`] : []),
      ...(this.layers > 1 && this.state.view !== "grid" ? ["{ } layer"] : []),
    ];
    return element("span", { class: "av-hint", text: [...keys, ...more, ...(this.parts.length ? ["p part"] : []), "v view", "Esc leaves"].join(" · ") });
  }

  maskedKey() {
    if (!this.causal) return [];
    const sample = element("span", { class: "av-masked av-sample", "aria-hidden": "true" });
    return [element("span", { class: "av-masked-key" }, [sample, " masked"])];
  }

  paddingKey() {
    if (!this.padding.some((marked) => marked.length)) return [];
    const sample = element("span", { class: "av-padded av-sample", "aria-hidden": "true" });
    return [element("span", { class: "av-padding-key" }, [sample, " padding"])];
  }

  // --- showing ---

  showHead() {
    const { layer, head, heads } = this.state;
    this.drawn = (heads || []).filter((other) => this.store.canShow(layer, other));
    if (!this.drawn.length) this.drawn = [head];
    if (this.choosers.layer) this.mark(this.choosers.layer, layer, (other) => this.store.canShow(other, head));
    if (this.choosers.head) this.mark(this.choosers.head, head, (other) => this.store.canShow(layer, other));
    if (this.steps) [this.stepShown.textContent, this.choosers.head.ariaValueText] = [this.nameOf(head), `step ${this.nameOf(head)}`];
    // in the grid, going past a head must not load it
    this.arrays = this.state.view === "grid" ? null : this.store.get(layer, head);
    this.isWaiting = !this.arrays && this.state.view !== "grid";
    this.root.classList.toggle("is-waiting", this.isWaiting);
    if (this.arrays) this.weights = this.arrays.weights;
    this.drawing.showHead();
    this.fetchAhead();
  }

  // Show the value of a select; the others that cannot be chosen are grey.
  mark(select, value, canChoose) {
    select.value = value;
    for (const option of select.options || []) option.disabled = !canChoose(Number(option.value));
  }

  showCell() {
    const cell = this.state.cell;
    this.drawing.showCell(cell);
    this.readout.replaceChildren(...this.says(cell));
    if (cell && this.arrays) this.readout.dataset.value = this.weight(...cell);
    const where = `${this.rows.length} ${this.names.row}, ${this.columns.length} ${this.names.column}`;
    this.stage.setAttribute("aria-label", cell ? `${where}. ${this.readout.textContent}` : `${where}. Arrow keys select.`);
  }

  says(cell) {
    const { layer, head } = this.state;
    const small = (text) => element("span", { class: "av-where", text });
    if (this.isWaiting) return [small(`waiting for the kernel to send layer ${layer}, ${this.headName} ${this.nameOf(head)}`)];
    if (this.drawing.says) return this.drawing.says();
    if (!cell) return [small("nothing selected")];
    const [row, column] = cell;
    const compared = this.state.view === "links" && this.drawn.length > 1 ? this.drawn : [];
    return [
      tokenElement(this.rows[row], "av-query"), " → ", tokenElement(this.columns[column], "av-key"), "  ",
      ...(compared.length ? [] : [element("b", { class: "av-value", text: readable(this.weight(row, column)) }), " "]),
      ...compared.flatMap((other) => this.saysOf(other, row, column)),
      element("span", { class: "av-where av-indices", text: `row ${row}, column ${column}` }),
      ...(this.isAligned(row, column) ? [small(" · true link")] : []),
      ...(this.isPadding(row, column) ? [small(" · padding")] : []),
      ...(this.isMasked(row, column) ? [small(" · masked")] : []),
    ];
  }

  saysOf(head, row, column) {
    const arrays = this.store.get(this.state.layer, head);
    const value = arrays ? readable(arrays.weights[row * this.columns.length + column]) : "…";
    return [element("span", { class: "av-where", text: `${this.headName} ${this.nameOf(head)} ` }), element("b", { class: "av-value", text: value }), " "];
  }

  // --- choosing ---

  // As in Python: a part with the same queries selects the same query, another one begins anew.
  choosePart(part) {
    const { [part]: content, [this.state.part]: before } = this.state._content;
    const { layer: wanted, head: wantedHead, heads = [] } = this.within({ ...this.state, part });
    const [layer, head] = this.stores[part].orFirst(wanted, wantedHead);
    const arrays = this.stores[part].get(layer, head);
    const row = JSON.stringify(content.rows) === JSON.stringify(before.rows) ? this.state.cell?.[0] : undefined;
    const weightAt = (column) => arrays.weights[row * content.columns.length + column];
    const cell = row === undefined || !arrays ? content.cell : [row, strongest(content.columns.length, weightAt)];
    this.choose({ part, layer, head, cell, heads: heads.every((other) => other < content.shape[1]) ? heads : [] });
  }

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
      p: () => this.parts.length && this.choosePart(next(this.parts, this.state.part, 1)),
      v: () => this.choose({ view: next(this.views, this.state.view, 1) }),
    }, this.closing.signal);
  }

  stageKeys() {
    const move = (down, right) => {
      if (this.drawing.move) return this.drawing.move(down, right);
      const [row, column] = this.state.cell || [0, 0];
      this.drawing.side = down ? "row" : "column"; // of the links, those of what has moved
      this.select(clamp(row + down, this.rows.length), clamp(column + right, this.columns.length));
    };
    const far = () => Math.max(this.columns.length, this.heads);
    return {
      ArrowUp: () => move(-1, 0),
      ArrowDown: () => move(1, 0),
      ArrowLeft: () => move(0, -1),
      ArrowRight: () => move(0, 1),
      Home: () => move(0, -far()),
      End: () => move(0, far()),
      Enter: () => this.drawing.open?.(),
      ",": () => this.drawing.point?.(-1),
      ".": () => this.drawing.point?.(1),
      ...Object.fromEntries(Array.from("0123456789", (digit) => [digit, () => this.drawing.toggle?.(Number(digit))])),
    };
  }
}

function toggleGroup(name, buttons) {
  return element("span", { class: "av-toggle", role: "group", "aria-label": name }, buttons);
}

function clamp(index, count) {
  return Math.max(0, Math.min(count - 1, index));
}
