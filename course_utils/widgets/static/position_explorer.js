// The position explorer: an encoding, the product of every two positions, and the product against distance.
//
// State: {_sizes: [length, d_model], _learned: float32 (see `numbers`), kind, cell: [query, key], title}. Everything
// that is drawn is computed here; position_explorer.py computes the same.

const KINDS = {
  sinusoidal: { name: "Sinusoidal", encoding: "encoding: position ↓ column →", product: "product" },
  learned: { name: "Learned", encoding: "encoding: position ↓ column →", product: "product" },
  rotary: { name: "Rotary", encoding: "cos(angle): position ↓ pair →", product: "product" },
  alibi: { name: "ALiBi", encoding: "bias: distance ↓ head →", product: "bias" },
};
const HEADS = 8; // of ALiBi
const HEAD = 4; // of these the one whose bias is shown, counted from 1
const HEIGHT = 286; // CSS pixels of every picture
const WIDTHS = { encoding: 206, matrix: 286, plot: 268 };

// --- the numbers ---

// Position times frequency, for every pair of dimensions.
function angle(position, pair, dModel) {
  return position / 10000 ** ((2 * pair) / dModel);
}

// A matrix {values, columns} with a row a position, from value(row, column).
function table(rows, columns, value) {
  const values = new Float64Array(rows * columns);
  for (let k = 0; k < values.length; k++) values[k] = value(Math.floor(k / columns), k % columns);
  return { values, columns };
}

// What is drawn on the left.
function encodingOf(kind, length, dModel, learned) {
  if (kind === "learned") return { values: Float64Array.from(learned), columns: dModel };
  if (kind === "alibi") return table(length, HEADS, (distance, head) => -distance * 2 ** ((-8 * (head + 1)) / HEADS));
  if (kind === "rotary") return table(length, dModel / 2, (position, pair) => Math.cos(angle(position, pair, dModel)));
  return table(length, dModel, (position, column) => {
    const turn = angle(position, column >> 1, dModel);
    return column % 2 ? Math.cos(turn) : Math.sin(turn);
  });
}

// The product of every two positions, a row a query: a Float64Array of length².
function productsOf(kind, length, dModel, learned) {
  if (kind === "alibi") return table(length, length, (i, j) => -Math.abs(i - j) * 2 ** ((-8 * HEAD) / HEADS)).values;
  // rotary: every pair of dimensions is (1, 1), turned by its angle
  const { values } = kind === "rotary" ? table(length, dModel, (position, column) => {
    const turn = angle(position, column >> 1, dModel);
    return column % 2 ? Math.sin(turn) + Math.cos(turn) : Math.cos(turn) - Math.sin(turn);
  }) : encodingOf(kind, length, dModel, learned);
  const scale = kind === "rotary" ? 1 / dModel : 1;
  const products = new Float64Array(length * length);
  for (let i = 0; i < length; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let c = 0; c < dModel; c++) sum += values[i * dModel + c] * values[j * dModel + c];
      products[i * length + j] = products[j * length + i] = sum * scale;
    }
  }
  return products;
}

// The smallest and the largest product at every distance from 0: [[low, high], …].
function rangesOf(products, length) {
  const ranges = Array.from({ length }, () => [Infinity, -Infinity]);
  for (let k = 0; k < products.length; k++) {
    const range = ranges[Math.abs(Math.floor(k / length) - (k % length))];
    range[0] = Math.min(range[0], products[k]);
    range[1] = Math.max(range[1], products[k]);
  }
  return ranges;
}

function endsOf(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

// --- the widget ---

class PositionExplorer extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "position-explorer");
    const both = (by) => this.move(by, by);
    answerKeys(this.root, {
      ArrowUp: () => this.move(-1, 0),
      ArrowDown: () => this.move(1, 0),
      ArrowLeft: () => this.move(0, -1),
      ArrowRight: () => this.move(0, 1),
      "[": () => both(-1),
      "]": () => both(1),
      Home: () => this.select(this.state.cell[0], 0),
      End: () => this.select(this.state.cell[0], this.length - 1),
    }, this.closing.signal);
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (...names) => names.some((name) => before[name] !== state[name]);
    const anew = changed("_sizes", "_learned", "title");
    if (anew) this.build();
    if (anew || changed("kind")) this.showKind();
    this.showCell();
  }

  // --- choosing ---

  // Where one of the two would leave the positions, nothing moves.
  move(byQuery, byKey) {
    const [query, key] = [this.state.cell[0] + byQuery, this.state.cell[1] + byKey];
    if ([query, key].every((position) => position >= 0 && position < this.length)) this.select(query, key);
  }

  select(query, key) {
    if (query !== this.state.cell[0] || key !== this.state.cell[1]) this.choose({ cell: [query, key] });
  }

  // The position under the pointer, from 0 to `count` - 1. A slide show scales the page, so it is measured now.
  under(start, size, at, count) {
    return Math.max(0, Math.min(count - 1, Math.floor(((at - start) / size) * count)));
  }

  pointAtCell(event) {
    const box = this.matrix.board.getBoundingClientRect();
    this.select(this.under(box.top, box.height, event.clientY, this.length),
      this.under(box.left, box.width, event.clientX, this.length));
  }

  pointAtDistance(event) {
    const box = this.plot.board.getBoundingClientRect();
    const distance = this.under(box.left, box.width, event.clientX, 2 * this.length - 1) - this.length + 1;
    const [query] = this.state.cell;
    this.select(query, Math.max(0, Math.min(this.length - 1, query + distance)));
  }

  // --- building ---

  build() {
    const { _sizes: sizes, _learned: sent, title } = this.state;
    [this.length, this.dModel] = sizes;
    this.learned = numbers(sent);
    const kinds = Object.keys(KINDS).filter((kind) => kind !== "learned" || this.learned.length);
    this.kinds = kinds.map((kind) => {
      const button = element("button", { type: "button", text: KINDS[kind].name, "data-kind": kind });
      button.addEventListener("click", () => this.choose({ kind }), { signal: this.closing.signal });
      return button;
    });
    this.about = element("span", { class: "pe-about" });
    this.readout = element("div", { class: "pe-readout", role: "status" });
    this.encoding = panel("encoding");
    this.matrix = panel("matrix");
    this.plot = panel("plot");
    answerPointer(this.matrix.board, (event) => this.pointAtCell(event), this.closing.signal);
    answerPointer(this.plot.board, (event) => this.pointAtDistance(event), this.closing.signal);
    this.stage = element("div", { class: "pe-stage", tabindex: 0, role: "application" },
      [this.encoding.node, this.matrix.node, this.plot.node]);
    this.stage.setAttribute("aria-roledescription", "position explorer");
    keepFromNotebook(this.stage);
    this.root.setAttribute("aria-label", title || "Position explorer");
    this.root.replaceChildren(
      element("div", { class: "pe-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        element("span", { class: "pe-kinds", role: "group", "aria-label": "kind of encoding" }, this.kinds),
        this.about,
      ]),
      this.readout, this.stage,
      element("div", { class: "is-hint", text: "↑ ↓ query · ← → key · [ ] both, same distance · Home End · Esc leaves" }),
    );
  }

  // --- showing ---

  showKind() {
    const { kind } = this.state;
    const { length, dModel, learned } = this;
    const { values, columns } = encodingOf(kind, length, dModel, learned);
    this.columns = columns;
    this.products = productsOf(kind, length, dModel, learned);
    this.ranges = rangesOf(this.products, length);
    this.ends = endsOf(this.products);
    for (const button of this.kinds) button.setAttribute("aria-pressed", button.dataset.kind === kind);
    const { encoding, product } = KINDS[kind];
    const detail = kind === "alibi" ? `head ${HEAD} of ${HEADS}, slope 1/${2 ** ((8 * HEAD) / HEADS)}` : `d_model ${dModel}`;
    this.about.textContent = `${length} positions, ${detail}`;
    paint(this.encoding, values, columns, endsOf(values), encoding);
    paint(this.matrix, this.products, length, this.ends, `${product}: query ↓ key →`);
    this.plot.caption.textContent = `${product} against distance (key − query)`;
    const [low, high] = this.ends;
    const same = this.ranges.every(([least, most]) => most - least <= 1e-5 * (high - low));
    this.plot.under.textContent = same ? "the same curve for every query" : "grey: all queries, they differ";
  }

  product(query, key) {
    return this.products[query * this.length + key];
  }

  showCell() {
    const { kind, cell: [query, key] } = this.state;
    const name = KINDS[kind].product;
    const product = signed(this.product(query, key), 4);
    const itself = signed(this.product(query, query), 4);
    this.readout.replaceChildren(
      element("span", { class: "pe-query", text: `query ${query}` }), " · ",
      element("span", { class: "pe-key", text: `key ${key}` }), ` · ${Math.abs(key - query)} apart · ${name} `,
      element("b", { text: product }), ` · query ${query} with itself ${itself}`,
    );
    this.readout.dataset.cell = `${query},${key}`;
    this.stage.setAttribute("aria-label", `${KINDS[kind].name}. ${this.readout.textContent}`);
    this.markEncoding(kind, query, key);
    this.markMatrix(query, key);
    this.markPlot(query, key);
  }

  // The rows of the two positions; of ALiBi the row of their distance, and the head.
  markEncoding(kind, query, key) {
    const { length, columns } = this;
    const width = WIDTHS.encoding;
    const row = (position) => ({ ...stripe(position, length), x: 0, width });
    const first = kind === "alibi" ? 1 : 0;
    const marks = kind === "alibi" ? [
      ...outline("pe-both", row(Math.abs(key - query))),
      ...outline("pe-both", { x: ((HEAD - 1) * width) / columns, width: width / columns, y: 0, height: HEIGHT }),
      ...rowLabels("pe-both", "", Math.abs(key - query), length),
    ] : [
      ...outline("pe-key", row(key)), ...outline("pe-query", row(query)),
      ...rowLabels("pe-query", "q ", query, length),
      label("pe-key", `k ${key}`, width + 9, middle(key, length) + 5, "start"),
    ];
    this.encoding.overlay.replaceChildren(...marks,
      ...columnLabels("pe-both", "", kind === "alibi" ? HEAD - 1 : null, columns, width, first));
  }

  markMatrix(query, key) {
    const { length } = this;
    const width = WIDTHS.matrix;
    const across = stripe(query, length);
    const down = stripe(key, length);
    this.matrix.overlay.replaceChildren(
      ...outline("pe-query", { ...across, x: 0, width }),
      ...outline("pe-key", { x: down.y, width: down.height, y: 0, height: HEIGHT }),
      ...rowLabels("pe-query", "q ", query, length), ...columnLabels("pe-key", "k ", key, length, width),
    );
  }

  markPlot(query, key) {
    const { length } = this;
    const [low, high] = this.ends;
    const width = WIDTHS.plot;
    const x = (distance) => ((distance + length - 0.5) / (2 * length - 1)) * width;
    const y = (value) => HEIGHT - 8 - ((value - low) / (high - low || 1)) * (HEIGHT - 16);
    const line = (points) => `M${points.map((point) => point.map((part) => part.toFixed(2))).join("L")}`;
    const distances = Array.from({ length: 2 * length - 1 }, (_, k) => k - length + 1);
    const edge = (side) => distances.map((distance) => [x(distance), y(this.ranges[Math.abs(distance)][side])]);
    const keys = Array.from({ length }, (_, k) => [x(k - query), y(this.product(query, k))]);
    const [px, py] = keys[key];
    const zero = low < 0 && high > 0 && y(0) > 26 && y(0) < HEIGHT - 26;
    this.plot.overlay.replaceChildren(
      shape("rect", { class: "pe-ground", width, height: HEIGHT }),
      shape("path", { class: "pe-axis", d: `M0,${y(low < 0 && high > 0 ? 0 : low)}H${width} M${x(0)},0V${HEIGHT}` }),
      shape("path", { class: "pe-range", d: `${line([...edge(1), ...edge(0).reverse()])}Z` }),
      shape("path", { class: "pe-line", d: line(keys) }),
      shape("path", { class: "pe-drop", d: `M${px},${py}V${HEIGHT}` }),
      shape("circle", { class: "pe-dot", cx: px, cy: py, r: 6 }),
      ...[low, ...(zero ? [0] : []), high].map((value) => label("", short(value), -7, y(value) + 5, "end")),
      ...[1 - length, 0, length - 1]
        .filter((distance) => Math.abs(x(distance) - px) > 30)
        .map((distance) => label("", short(distance), x(distance), HEIGHT + 18)),
      label("pe-key", key > query ? `+${key - query}` : short(key - query), px, HEIGHT + 18),
    );
  }
}

// --- drawing ---

// A caption, a board of fixed size with a canvas and an SVG above it, and a line below.
function panel(name) {
  const canvas = element("canvas", { class: "pe-cells" });
  const overlay = shape("svg", { class: "pe-overlay", width: WIDTHS[name], height: HEIGHT });
  const board = element("div", { class: "pe-board" }, [...(name === "plot" ? [] : [canvas]), overlay]);
  board.style.cssText = `width:${WIDTHS[name]}px; height:${HEIGHT}px`;
  const caption = element("div", { class: "pe-caption" });
  const under = element("div", { class: "pe-under" });
  const node = element("div", { class: `pe-panel pe-${name}`, "aria-hidden": "true" }, [caption, board, under]);
  return { node, caption, board, canvas, overlay, under };
}

// Paint numbers from `low` to `high`, and their scale below.
function paint({ canvas, caption, under }, values, columns, [low, high], words) {
  paintMatrix(canvas, values, values.length / columns, columns, high, low);
  caption.textContent = words;
  under.replaceChildren(`${short(low)} `, colourRamp("pe-ramp"), ` ${short(high)}`);
}

// Where a row lies: at least three pixels of it are seen.
function stripe(position, length) {
  const height = Math.max(3, HEIGHT / length);
  return { y: middle(position, length) - height / 2, height };
}

function middle(position, length) {
  return ((position + 0.5) * HEIGHT) / length;
}

// Around a box, so that what is in it can be seen; white below, so that the outline is seen on every colour.
function outline(className, { x, y, width, height }) {
  const box = { x: x - 2.5, y: y - 2.5, width: width + 5, height: height + 5 };
  return [shape("rect", { class: "pe-halo", ...box }), shape("rect", { class: className, ...box })];
}

function label(className, text, x, y, anchor = "middle") {
  return shape("text", { class: className, x, y, "text-anchor": anchor, text });
}

// The first and the last row, where the marked one leaves room for them.
function rowLabels(className, letter, position, length) {
  const at = (row) => middle(row, length) + 5;
  return [
    ...[0, length - 1].filter((row) => Math.abs(at(row) - at(position)) > 17).map((row) => label("", row, -7, at(row), "end")),
    label(className, `${letter}${position}`, -7, at(position), "end"),
  ];
}

// The same below a board; `first` is the number of the first column.
function columnLabels(className, letter, position, columns, width, first = 0) {
  const at = (column) => ((column + 0.5) * width) / columns;
  const marked = position === null ? [] : [label(className, `${letter}${position + first}`, at(position), HEIGHT + 18)];
  return [
    ...[0, columns - 1].filter((column) => position === null || Math.abs(at(column) - at(position)) > 36)
      .map((column) => label("", column + first, at(column), HEIGHT + 18)),
    ...marked,
  ];
}

// Three digits, for the ends of a scale; one where there is no room for more.
function short(value) {
  const tiny = value !== 0 && Math.abs(value) < 0.001;
  return (tiny ? value.toExponential(0) : String(Number(value.toPrecision(3)) + 0)).replaceAll("-", "−");
}
