// The attention view: one head's weights as a matrix or as links between two columns of tokens.
//
// State: {_content: {shape, weights, top, rows, columns, alignment}, cell, layer, head, view, title}.
// Rows are queries (purple), columns are keys (orange); `cell` is [row, column] or null.

const LINES_AT_MOST = 2000; // links drawn at once; the strongest are kept
const FAINTEST = 0.01; // links below this share of the scale are not drawn

class AttentionView {
  constructor(place, state, tell) {
    this.tell = tell;
    this.closing = new AbortController(); // its signal frees every listener
    this.root = element("div", { class: "attention-view mathjax_ignore tex2jax_ignore", role: "group" });
    place.append(this.root);
    this.listen();
    this.update(state);
  }

  destroy() {
    this.closing.abort();
    this.root.remove();
  }

  // Draw `state`: everything if the tensor is new, otherwise only what has changed.
  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    if (changed("_content") || changed("title")) this.build();
    if (changed("_content") || changed("title") || changed("view")) this.chooseDrawing();
    else if (changed("layer") || changed("head")) this.showHead();
    this.showCell();
  }

  // The reader chose something: draw it, and tell the kernel if there is one.
  choose(changes) {
    this.update({ ...this.state, ...changes });
    this.tell(changes);
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

  // --- building ---

  build() {
    const { shape: [layers, heads], weights, top, rows, columns, alignment } = this.state._content;
    Object.assign(this, { tensor: numbers(weights), layers, heads, top, rows, columns, alignment: alignment || [] });

    this.toggles = ["matrix", "links"].map((name) => this.button(name));
    this.choosers = { layer: this.chooser("layer", layers), head: this.chooser("head", heads) };
    this.stage = element("div", { class: "av-stage", tabindex: 0, role: "application" });
    this.stage.setAttribute("aria-roledescription", "attention view");
    answerKeys(this.stage, this.arrows(), this.closing.signal);
    this.readout = element("div", { class: "av-readout", role: "status", "aria-live": "polite" });
    const longest = (tokens) => Math.max(...tokens.map((token) => token.length));
    // keep room for a second line, or the matrix would move under the pointer
    this.readout.classList.toggle("is-long", longest(this.rows) + longest(this.columns) > 36);
    this.legend = element("div", { class: "av-legend" });

    const title = this.state.title;
    this.root.setAttribute("aria-label", title || "Attention view");
    this.root.replaceChildren(
      element("div", { class: "av-bar" }, [
        ...(title ? [element("span", { class: "av-title", text: title })] : []),
        element("span", { class: "av-toggle", role: "group", "aria-label": "View" }, this.toggles),
        ...[this.choosers.layer, this.choosers.head].filter(Boolean).map((select) => select.parentNode),
      ]),
      this.readout,
      this.stage,
      this.legend,
    );
  }

  button(name) {
    const button = element("button", { type: "button", text: name === "matrix" ? "Matrix" : "Links" });
    keepFromNotebook(button);
    button.addEventListener("click", () => this.choose({ view: name }), { signal: this.closing.signal });
    return button;
  }

  // A select with its label, or null where there is nothing to choose.
  chooser(name, count) {
    if (count < 2) return null;
    const options = Array.from({ length: count }, (_, k) => element("option", { value: k, text: k }));
    const select = element("select", {}, options);
    element("label", { text: `${name} ` }).append(select);
    keepFromNotebook(select);
    const choose = () => this.choose({ [name]: Number(select.value) });
    select.addEventListener("change", choose, { signal: this.closing.signal });
    return select;
  }

  chooseDrawing() {
    const Drawing = this.state.view === "links" ? LinksDrawing : MatrixDrawing;
    this.drawing = new Drawing(this);
    this.stage.replaceChildren(this.drawing.node);
    for (const button of this.toggles) {
      button.setAttribute("aria-pressed", button.textContent.toLowerCase() === this.state.view);
    }
    const hint = "arrows move" + (this.heads > 1 ? " · [ ] head" : "") + (this.layers > 1 ? " · { } layer" : "");
    this.legend.replaceChildren(
      this.drawing.scale(),
      ...(this.alignment.length ? [this.drawing.alignmentKey()] : []),
      element("span", { class: "av-hint", text: `${hint} · v view · Esc leaves` }),
    );
    this.showHead();
  }

  // --- showing ---

  showHead() {
    const { layer, head } = this.state;
    const size = this.rows.length * this.columns.length;
    this.weights = this.tensor.subarray((layer * this.heads + head) * size, (layer * this.heads + head + 1) * size);
    if (this.choosers.layer) this.choosers.layer.value = layer;
    if (this.choosers.head) this.choosers.head.value = head;
    this.drawing.showHead();
  }

  showCell() {
    const cell = this.state.cell;
    this.drawing.showCell(cell);
    const where = `${this.rows.length} queries, ${this.columns.length} keys`;
    if (!cell) {
      this.readout.replaceChildren(element("span", { class: "av-where", text: "nothing selected" }));
      this.stage.setAttribute("aria-label", `${where}. Arrow keys select.`);
      return;
    }
    const [row, column] = cell;
    const value = this.weight(row, column);
    this.readout.dataset.value = value;
    this.readout.replaceChildren(
      tokenElement(this.rows[row], "av-query"), " → ", tokenElement(this.columns[column], "av-key"), "  ",
      element("b", { class: "av-value", text: readable(value) }), " ",
      element("span", { class: "av-where", text: `row ${row}, column ${column}` }),
      ...(this.isAligned(row, column) ? [element("span", { class: "av-where", text: " · true link" })] : []),
    );
    this.stage.setAttribute("aria-label", `${where}. ${this.readout.textContent}`);
  }

  // --- keys ---

  listen() {
    const step = (name, count, by) => {
      const size = this[count];
      if (size > 1) this.choose({ [name]: (this.state[name] + by + size) % size });
    };
    answerKeys(this.root, {
      "[": () => step("head", "heads", -1),
      "]": () => step("head", "heads", 1),
      "{": () => step("layer", "layers", -1),
      "}": () => step("layer", "layers", 1),
      v: () => this.choose({ view: this.state.view === "matrix" ? "links" : "matrix" }),
      Escape: () => document.activeElement.blur(), // the way back to the notebook or the slides
    }, this.closing.signal);
    // other keys are for the buttons and selects, never for the notebook or the slide show
    this.root.addEventListener("keydown", (event) => event.stopPropagation(), { signal: this.closing.signal });
  }

  arrows() {
    const move = (down, right) => {
      const [row, column] = this.state.cell || [0, 0];
      this.drawing.side = down ? "row" : this.drawing.side;
      this.select(clamp(row + down, this.rows.length), clamp(column + right, this.columns.length));
    };
    return {
      ArrowUp: () => move(-1, 0),
      ArrowDown: () => move(1, 0),
      ArrowLeft: () => move(0, -1),
      ArrowRight: () => move(0, 1),
      Home: () => move(0, -this.columns.length),
      End: () => move(0, this.columns.length),
    };
  }

  select(row, column) {
    const [i, j] = this.state.cell || [];
    if (row !== i || column !== j) this.choose({ cell: [row, column] });
    else this.showCell(); // the same cell, perhaps seen from its other side
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

// --- tokens along an axis ---------------------------------------------------------------------------------------

const FONT = "14px system-ui, sans-serif";
const LONGEST = 120; // CSS pixels; longer tokens end in an ellipsis
const ROOM_FOR_TEXT = 13; // with less between two tokens, only the selected one is written

// The tokens of one axis. `place(node, index)` puts a node at its position; `answer(index)` is called when the
// pointer chooses a token.
class TokenAxis {
  constructor(tokens, className, pitch, place, answer, signal) {
    const all = pitch >= ROOM_FOR_TEXT;
    Object.assign(this, { tokens, place, all });
    this.nodes = (all ? tokens : tokens.slice(0, 1)).map((token) => tokenElement(token, `av-token ${className}`));
    this.nodes.forEach((node, index) => {
      place(node, index);
      node.classList.toggle("is-tight", all && pitch < 16);
      if (all) answerPointer(node, () => answer(index), signal);
    });
  }

  show(index) {
    if (this.current) this.current.classList.remove("is-current");
    this.current = index === null ? null : this.nodes[this.all ? index : 0];
    if (!this.all) this.nodes[0].hidden = index === null;
    if (!this.current) return;
    this.current.classList.add("is-current");
    if (!this.all) {
      showToken(this.current, this.tokens[index]);
      this.place(this.current, index);
    }
  }
}

// Room for the longest token, at least `least` CSS pixels.
function labelWidth(tokens, least) {
  const widths = tokens.slice(0, 600).map((token) => textWidth(visible(token), `bold ${FONT}`) + 12);
  return Math.ceil(Math.min(LONGEST, Math.max(least, ...widths)));
}

// Distance between two tokens: as large as fits `room`, no larger than `most`, no smaller than legible text needs
// up to 40 tokens, and for longer axes as small as one pixel.
function pitchFor(count, room, most) {
  const smallest = count <= 40 ? ROOM_FOR_TEXT : 1;
  return Math.max(smallest, Math.min(most, Math.floor(Math.max(room, smallest === 1 ? 520 : 0) / count)));
}

// --- the matrix -------------------------------------------------------------------------------------------------

class MatrixDrawing {
  constructor(view) {
    this.view = view;
    const { rows, columns } = view;
    const pitch = Math.min(pitchFor(rows.length, 285, 40), pitchFor(columns.length, 560, 40));
    Object.assign(this, { pitch, width: pitch * columns.length, height: pitch * rows.length });
    const left = labelWidth(rows, 74);
    const slanted = pitch >= 20; // narrower columns need upright tokens
    const above = Math.ceil(labelWidth(columns, 34) * (slanted ? 0.71 : 1)) + (slanted ? 14 : 8);

    this.canvas = element("canvas", { class: "av-cells" });
    this.marks = shape("g", { class: "av-aligned" });
    this.bands = shape("g");
    const overlay = shape("svg", { class: "av-overlay", width: this.width, height: this.height, "aria-hidden": "true" });
    overlay.append(this.marks, this.bands);
    this.board = element("div", { class: "av-board" }, [this.canvas, overlay]);
    this.board.style.cssText = `left:${left}px; top:${above}px; width:${this.width}px; height:${this.height}px`;
    this.board.classList.toggle("has-grid", pitch >= 12);
    this.board.style.setProperty("--pitch", `${pitch}px`);
    answerPointer(this.board, (event) => this.point(event), view.closing.signal);

    const placeRow = (node, i) => {
      node.style.cssText = `right:calc(100% - ${left - 6}px); top:${above + i * pitch + pitch / 2}px`;
    };
    const placeColumn = (node, j) => {
      node.style.cssText = `left:${left + j * pitch + pitch / 2}px; top:${above - 4}px`;
    };
    const { signal } = view.closing;
    this.rowAxis = new TokenAxis(rows, "av-query", pitch, placeRow, (i) => view.select(i, view.strongestColumn(i)), signal);
    this.columnAxis = new TokenAxis(columns, slanted ? "av-key is-slanted" : "av-key is-upright", pitch, placeColumn,
      (j) => view.select(view.strongestRow(j), j), signal);

    const overhang = slanted ? Math.ceil(LONGEST * 0.71) : 0; // the last slanted token leans out to the right
    this.node = element("div", { class: "av-matrix" }, [
      corner(left, above), this.board, ...this.rowAxis.nodes, ...this.columnAxis.nodes,
    ]);
    this.node.style.cssText = `width:${left + this.width + overhang}px; height:${above + this.height + 4}px`;
  }

  // The pointer chooses the cell below it. A slide show scales the page, so the board is measured as it is now.
  point(event) {
    const box = this.board.getBoundingClientRect();
    const { rows, columns } = this.view;
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows.length);
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns.length);
    this.view.select(clamp(row, rows.length), clamp(column, columns.length));
  }

  showHead() {
    const { weights, rows, columns, top, alignment } = this.view;
    paintMatrix(this.canvas, weights, rows.length, columns.length, top);
    this.marks.replaceChildren(...alignment.flatMap(([i, j]) => this.outlines(i, j)));
  }

  // A white line between two dark ones is seen on every colour of the scale.
  outlines(row, column) {
    const box = { x: column * this.pitch + 1.5, y: row * this.pitch + 1.5 };
    box.width = box.height = Math.max(1, this.pitch - 3);
    box.rx = Math.min(4, this.pitch / 5);
    return [shape("rect", { ...box, class: "av-halo" }), shape("rect", { ...box, class: "av-outline" })];
  }

  showCell(cell) {
    this.rowAxis.show(cell && cell[0]);
    this.columnAxis.show(cell && cell[1]);
    if (!cell) return this.bands.replaceChildren();
    const x = cell[1] * this.pitch;
    const y = cell[0] * this.pitch;
    const band = (name, box) => [shape("rect", { class: "av-band-halo", ...box }), shape("rect", { class: name, ...box })];
    const size = Math.max(this.pitch, 4);
    this.bands.replaceChildren(
      ...band("av-row-band", { x: 0, y, width: this.width, height: this.pitch }),
      ...band("av-column-band", { x, y: 0, width: this.pitch, height: this.height }),
      ...band("av-cell", { x, y, width: size, height: size }),
    );
  }

  scale() {
    const bar = element("canvas", { class: "av-ramp", "aria-hidden": "true" });
    paintMatrix(bar, Float32Array.from({ length: 256 }, (_, k) => k), 1, 256, 255);
    return scaleWithEnds(bar, this.view.top, "colour");
  }

  alignmentKey() {
    const sample = shape("svg", { width: 16, height: 16, class: "av-sample", "aria-hidden": "true" });
    const box = { x: 2, y: 2, width: 12, height: 12, rx: 3 };
    sample.append(shape("rect", { ...box, class: "av-halo" }), shape("rect", { ...box, class: "av-outline" }));
    return element("span", { class: "av-alignment-key" }, [sample, "true alignment"]);
  }
}

// The names of the two axes, between them.
function corner(left, above) {
  const names = [
    element("span", { class: "av-key", text: "keys →" }),
    element("span", { class: "av-query", text: "queries ↓" }),
  ];
  const node = element("div", { class: "av-corner", "aria-hidden": "true" }, names);
  node.style.cssText = `width:${left - 6}px; height:${above - 6}px`;
  return node;
}

function scaleWithEnds(picture, top, what) {
  const end = top === 1 ? "1" : `${readable(top)} (largest)`;
  return element("span", { class: "av-scale", "aria-label": `weight by ${what}, 0 to ${end}`, role: "img" },
    ["weight 0 ", picture, ` ${end}`]);
}

// --- the links --------------------------------------------------------------------------------------------------

const LINKS_WIDTH = 300;

class LinksDrawing {
  constructor(view) {
    this.view = view;
    this.side = "row"; // the selected cell is shown with all links of its row, or of its column
    const { rows, columns } = view;
    this.pitch = pitchFor(Math.max(rows.length, columns.length), 340, 28);
    const left = labelWidth(rows, 74);
    const right = labelWidth(columns, 34);
    const above = 24;
    const height = this.pitch * Math.max(rows.length, columns.length);

    this.others = shape("g", { class: "av-other-links" });
    this.chosen = shape("g");
    this.marks = shape("g", { class: "av-aligned-links" });
    const lines = shape("svg", { class: "av-lines", width: LINKS_WIDTH, height, "aria-hidden": "true" });
    lines.append(this.others, this.chosen, this.marks);
    lines.style.cssText = `left:${left}px; top:${above}px`;

    const middle = (k) => above + (k + 0.5) * this.pitch;
    const placeRow = (node, i) => {
      node.style.cssText = `right:calc(100% - ${left - 6}px); top:${middle(i)}px`;
    };
    const placeColumn = (node, j) => {
      node.style.cssText = `left:${left + LINKS_WIDTH + 6}px; top:${middle(j)}px`;
    };
    const { signal } = view.closing;
    this.rowAxis = new TokenAxis(rows, "av-query", this.pitch, placeRow, (i) => this.choose("row", i), signal);
    this.columnAxis = new TokenAxis(columns, "av-key", this.pitch, placeColumn, (j) => this.choose("column", j), signal);
    const queries = element("span", { class: "av-query av-caption", text: "queries" });
    const keys = element("span", { class: "av-key av-caption", text: "keys" });
    queries.style.cssText = `right:calc(100% - ${left - 6}px)`;
    keys.style.cssText = `left:${left + LINKS_WIDTH + 6}px`;
    this.node = element("div", { class: "av-links" },
      [queries, keys, lines, ...this.rowAxis.nodes, ...this.columnAxis.nodes]);
    this.node.style.cssText = `width:${left + LINKS_WIDTH + right}px; height:${above + height + 4}px`;
  }

  choose(side, index) {
    this.side = side;
    const { view } = this;
    if (side === "row") view.select(index, view.strongestColumn(index));
    else view.select(view.strongestRow(index), index);
  }

  showHead() {
    const { rows, columns, alignment } = this.view;
    this.others.replaceChildren(...this.lines(rows.keys(), [...columns.keys()], "av-link"));
    this.marks.replaceChildren(...alignment.flatMap(([i, j]) => trueLink(this.curve(i, j))));
  }

  showCell(cell) {
    this.rowAxis.show(cell && cell[0]);
    this.columnAxis.show(cell && cell[1]);
    this.others.classList.toggle("is-faint", Boolean(cell));
    if (!cell) return this.chosen.replaceChildren();
    const [row, column] = cell;
    const { rows, columns } = this.view;
    const [from, to] = this.side === "row" ? [[row], columns.keys()] : [rows.keys(), [column]];
    this.chosen.replaceChildren(...this.lines(from, [...to], `av-link is-of-${this.side}`));
  }

  // Lines between these rows and columns where they are strong enough to be seen, the weakest first.
  lines(rows, columns, className) {
    const seen = [];
    for (const i of rows) {
      for (const j of columns) {
        const share = this.view.weight(i, j) / this.view.top;
        if (share >= FAINTEST) seen.push({ i, j, share });
      }
    }
    return seen
      .sort((a, b) => a.share - b.share)
      .slice(-LINES_AT_MOST)
      .map(({ i, j, share }) => shape("path", {
        d: this.curve(i, j), class: className, "stroke-width": (0.5 + 9 * share).toFixed(2),
        opacity: (0.15 + 0.85 * share).toFixed(3), "data-pair": `${i} ${j}`,
      }));
  }

  curve(row, column) {
    const y = (row + 0.5) * this.pitch;
    const z = (column + 0.5) * this.pitch;
    const bend = LINKS_WIDTH / 2;
    return `M0,${y} C${bend},${y} ${LINKS_WIDTH - bend},${z} ${LINKS_WIDTH},${z}`;
  }

  scale() {
    const wedge = shape("svg", { width: 90, height: 12, class: "av-sample", "aria-hidden": "true" });
    wedge.append(shape("path", { d: "M0,5.75 L90,1.25 V10.75 L0,6.25 Z", class: "av-wedge" }));
    return scaleWithEnds(wedge, this.view.top, "line width");
  }

  alignmentKey() {
    const sample = shape("svg", { width: 32, height: 12, class: "av-sample", "aria-hidden": "true" });
    sample.append(...trueLink("M0,6 H32"));
    return element("span", { class: "av-alignment-key" }, [sample, "true alignment"]);
  }
}

// Dark dots on a white line: seen on the paper and on a link of any colour.
function trueLink(d) {
  return [shape("path", { d, class: "av-true-halo" }), shape("path", { d, class: "av-true-link" })];
}
