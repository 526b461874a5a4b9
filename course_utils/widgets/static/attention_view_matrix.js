// --- tokens along an axis ---------------------------------------------------------------------------------------

const TYPES = [13, 20]; // sizes of a token, in CSS pixels: as large as its row allows
const LONGEST = 8.5; // times its size; longer tokens end in an ellipsis
const EVEN = 0.1; // share by which weights may differ from 1 / columns and still be called nearly uniform
const ROOM_FOR_TEXT = 13; // with less between two tokens, only the selected one is written

// The tokens of one side of the view, "row" or "column". `place(node, index)` puts a node at its position;
// `answer(index)` is called when the pointer chooses a token.
class TokenAxis {
  constructor(view, side, className, pitch, place, answer) {
    const tokens = side === "row" ? view.rows : view.columns;
    const all = pitch >= ROOM_FOR_TEXT;
    Object.assign(this, { tokens, place, all });
    const classes = `av-token ${side === "row" ? "av-query" : "av-key"} ${className}`.trim();
    this.nodes = (all ? tokens : tokens.slice(0, 1)).map((token) => tokenElement(token, classes));
    this.nodes.forEach((node, index) => {
      place(node, index);
      if (all) answerPointer(node, () => answer(index), view.closing.signal);
    });
    if (all) for (const index of view.padding[side === "row" ? 0 : 1]) this.nodes[index].classList.add("is-padding");
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

// The size of tokens that stand `pitch` CSS pixels apart.
function typeFor(pitch) {
  return Math.max(TYPES[0], Math.min(TYPES[1], Math.floor(0.85 * pitch)));
}

function setType(node, type) {
  node.style.setProperty("--type", `${type}px`);
  node.style.setProperty("--longest", `${LONGEST * type}px`);
}

// Room for the longest token of some sides, at least `least` CSS pixels, and for the name of the axis.
function labelWidth(sides, type, least, name = "") {
  const font = `bold ${type}px system-ui, sans-serif`;
  const widths = sides.flatMap((tokens) => tokens.slice(0, 600)).map((token) => textWidth(visible(token).slice(0, 100), font) + 12);
  const named = textWidth(name, "italic 13px system-ui, sans-serif") + 8;
  return Math.ceil(Math.max(named, Math.min(LONGEST * type, Math.max(least, ...widths))));
}


// Distance between two tokens: as large as fits `room`, no larger than `most`, no smaller than legible text needs
// up to 40 tokens, and for longer axes as small as one pixel, in `long` pixels at least.
function pitchFor(count, room, most, long = 520) {
  const smallest = count <= 40 ? ROOM_FOR_TEXT : 1;
  return Math.max(smallest, Math.min(most, Math.floor(Math.max(room, smallest === 1 ? long : 0) / count)));
}

// A narrow screen. What is drawn for it keeps its size when the screen is turned, until another view is chosen.
function onPhone() {
  return matchMedia("(max-width: 480px)").matches;
}

// --- the matrix -------------------------------------------------------------------------------------------------

class MatrixDrawing {
  constructor(view) {
    this.view = view;
    const { rows, columns } = view;
    const [mostRows, mostColumns] = [view.most("row"), view.most("column")];
    const narrow = onPhone();
    const [down, across, long] = view.state.room || [285, narrow ? 190 : 560, 520];
    const pitch = Math.min(pitchFor(mostRows, down, 40, long), pitchFor(mostColumns, across, 40, long));
    Object.assign(this, { pitch, width: pitch * columns.length, height: pitch * rows.length });
    const type = narrow ? TYPES[0] : typeFor(pitch);
    const left = labelWidth(view.sides.row, type, 74, `${view.names.row} ↓`);
    // closer slanted lines would run into each other: upright, then, and where there is no room for the last one's end
    const slanted = !narrow && Math.SQRT1_2 * pitch >= type;
    const above = Math.ceil(labelWidth(view.sides.column, type, 34) * (slanted ? 0.71 : 1)) + (slanted ? type : 8);

    this.canvas = element("canvas", { class: "av-cells" });
    this.marks = shape("g", { class: "av-aligned" });
    this.uniform = element("span", { class: "av-uniform" });
    this.bands = shape("g");
    const overlay = shape("svg", { class: "av-overlay", width: this.width, height: this.height, "aria-hidden": "true" });
    overlay.append(this.marks, this.bands);
    this.board = element("div", { class: "av-board" }, [this.canvas, ...paddingOver(view), overlay]);
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
    this.rowAxis = new TokenAxis(view, "row", "", pitch, placeRow, (i) => view.select(i, view.strongestColumn(i)));
    this.columnAxis = new TokenAxis(view, "column", slanted ? "is-slanted" : "is-upright", pitch, placeColumn,
      (j) => view.select(view.strongestRow(j), j));

    const overhang = slanted ? above : 0; // the last slanted token leans out to the right
    this.node = element("div", { class: "av-matrix" }, [
      corner(view.names, left, above), this.board, ...this.rowAxis.nodes, ...this.columnAxis.nodes,
    ]);
    this.node.style.cssText = `width:${left + mostColumns * pitch + overhang}px; height:${above + mostRows * pitch + 4}px`;
    setType(this.node, type);
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
    const { weights, rows, columns, top, alignment, causal } = this.view;
    paintMatrix(this.canvas, weights, rows.length, columns.length, top);
    this.board.classList.toggle("has-masked", causal);
    if (causal) clearMasked(this.canvas);
    this.uniform.textContent = isUniform(weights, columns.length) ? `nearly uniform: each weight is close to 1/${columns.length}` : "";
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

  legend() {
    const { view } = this;
    return [this.scale(), this.uniform, ...(view.alignment.length ? [this.alignmentKey()] : []), ...view.maskedKey(), ...view.paddingKey(), view.hint("arrows move")];
  }

  scale() {
    return scaleWithEnds(colourRamp("av-ramp"), this.view.top, "colour");
  }

  alignmentKey() {
    const sample = shape("svg", { width: 16, height: 16, class: "av-sample", "aria-hidden": "true" });
    const box = { x: 2, y: 2, width: 12, height: 12, rx: 3 };
    sample.append(shape("rect", { ...box, class: "av-halo" }), shape("rect", { ...box, class: "av-outline" }));
    return element("span", { class: "av-alignment-key" }, [sample, "true alignment"]);
  }
}

// Whether no weight is far from that of an even distribution: then the brightest colour says nothing.
function isUniform(weights, columns) {
  return columns > 1 && weights.every((weight) => Math.abs(weight * columns - 1) < EVEN);
}

// Of a causal matrix, let what lies below the canvas be seen after the diagonal.
function clearMasked(canvas) {
  const context = canvas.getContext("2d");
  for (let row = 0; row < canvas.height; row++) context.clearRect(row + 1, row, canvas.width, 1);
}

// The names of the two axes, between them.
function corner(names, left, above) {
  const node = element("div", { class: "av-corner", "aria-hidden": "true" }, [
    element("span", { class: "av-key", text: `${names.column} →` }),
    element("span", { class: "av-query", text: `${names.row} ↓` }),
  ]);
  node.style.cssText = `width:${left - 6}px; height:${above - 6}px`;
  return node;
}

// One rectangle over every run of neighbouring rows and columns of the matrix that are padding.
function paddingOver({ rows, columns, padding }) {
  const runs = (marked, count) => {
    const found = [];
    for (const k of marked) {
      if (found.at(-1)?.end === k) found.at(-1).end++;
      else found.push({ start: k, end: k + 1 });
    }
    return found.map(({ start, end }) => [`${(100 * start) / count}%`, `${(100 * (end - start)) / count}%`]);
  };
  const stripe = (style) => {
    const node = element("div", { class: "av-padded" });
    node.style.cssText = style;
    return node;
  };
  return [
    ...runs(padding[0], rows.length).map(([start, size]) => stripe(`left:0; width:100%; top:${start}; height:${size}`)),
    ...runs(padding[1], columns.length).map(([start, size]) => stripe(`top:0; height:100%; left:${start}; width:${size}`)),
  ];
}

function scaleWithEnds(picture, top, what) {
  const end = top === 1 ? "1" : `${readable(top)} (largest)`;
  return element("span", { class: "av-scale", "aria-label": `weight by ${what}, 0 to ${end}`, role: "img" },
    ["weight 0 ", picture, ` ${end}`]);
}

