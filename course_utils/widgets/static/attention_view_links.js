// --- links ------------------------------------------------------------------------------------------------------

const LINKS_WIDTH = 300;
const LINKS_WIDTH_NARROW = 76; // at least, on a phone, where both columns of tokens shall be seen
const LINES_AT_MOST = 2000; // links drawn at once; the strongest are kept
const FAINTEST = 0.01; // links below this share of the scale are not drawn

// Several heads at once: six colours that stay apart for every kind of colour vision, then the same ones dashed.
const HEAD_COLOURS = ["#332288", "#b08500", "#2f9bd8", "#882255", "#117733", "#e05c8a"];
const HEAD_DASHES = [null, "7 3", "2 2"];

function headStroke(head) {
  return {
    stroke: HEAD_COLOURS[head % HEAD_COLOURS.length],
    "stroke-dasharray": HEAD_DASHES[Math.floor(head / HEAD_COLOURS.length) % HEAD_DASHES.length],
  };
}

class LinksDrawing {
  constructor(view) {
    this.view = view;
    this.side = "row"; // the selected cell is shown with all links of its row, or of its column
    const most = Math.max(view.most("row"), view.most("column"));
    this.pitch = pitchFor(most, 340, 28);
    const narrow = onPhone();
    const type = narrow ? TYPES[0] : typeFor(this.pitch);
    const left = labelWidth(view.sides.row, type, 74, view.names.row);
    const right = labelWidth(view.sides.column, type, 34, view.names.column);
    const above = 24;
    const height = this.pitch * most;

    this.others = shape("g", { class: "av-other-links" });
    this.chosen = shape("g");
    this.marks = shape("g", { class: "av-aligned-links" });
    this.svg = shape("svg", { class: "av-lines", height, "aria-hidden": "true" });
    this.svg.append(this.others, this.chosen, this.marks);
    this.svg.style.cssText = `left:${left}px; top:${above}px`;

    const middle = (k) => above + (k + 0.5) * this.pitch;
    const placeRow = (node, i) => {
      node.style.cssText = `right:calc(100% - ${left - 6}px); top:${middle(i)}px`;
    };
    const placeColumn = (node, j) => {
      node.style.cssText = `left:calc(100% - ${right - 6}px); top:${middle(j)}px`;
    };
    this.rowAxis = new TokenAxis(view, "row", "", this.pitch, placeRow, (i) => this.choose("row", i));
    this.columnAxis = new TokenAxis(view, "column", "", this.pitch, placeColumn, (j) => this.choose("column", j));
    const queries = element("span", { class: "av-query av-caption", text: view.names.row });
    const keys = element("span", { class: "av-key av-caption", text: view.names.column });
    queries.style.cssText = `right:calc(100% - ${left - 6}px)`;
    keys.style.cssText = `left:calc(100% - ${right - 6}px)`;
    this.node = element("div", { class: "av-links" },
      [queries, keys, this.svg, ...this.rowAxis.nodes, ...this.columnAxis.nodes]);
    this.node.style.cssText = `height:${above + height + 4}px`;
    setType(this.node, type);
    this.besides = left + right;
    this.setAcross(narrow ? LINKS_WIDTH_NARROW : LINKS_WIDTH);
    this.controls = view.heads > 1 ? this.headBoxes() : null;
  }

  // The distance between the two columns of tokens.
  setAcross(across) {
    this.across = across;
    this.svg.setAttribute("width", across);
    this.node.style.width = `${this.besides + across}px`;
  }

  // The columns come closer, so that `room` CSS pixels hold both: a slide was laid out for the matrix.
  fit(room) {
    const across = Math.max(LINKS_WIDTH_NARROW, room - this.besides);
    if (across >= this.across) return;
    this.setAcross(across);
    this.showHead();
    this.showCell(this.view.state.cell);
  }

  // A box for every head, beside its line.
  headBoxes() {
    const { view } = this;
    this.boxes = Array.from({ length: view.heads }, (_, head) => {
      const box = element("input", { type: "checkbox" });
      box.addEventListener("change", () => this.toggle(head), { signal: view.closing.signal });
      return box;
    });
    const labels = this.boxes.map((box, head) => {
      const sample = shape("svg", { width: 18, height: 10, "aria-hidden": "true" });
      sample.append(shape("path", { d: "M0,5 H18", class: "av-head-line", ...headStroke(head) }));
      return element("label", {}, [box, sample, element("span", { text: head })]);
    });
    return element("div", { class: "av-heads", role: "group", "aria-label": "Heads drawn as links" }, ["heads ", ...labels]);
  }

  toggle(head) {
    this.view.toggleHead(head);
    this.showBoxes(); // the last one stays
  }

  showBoxes() {
    const { drawn, store, state } = this.view;
    (this.boxes || []).forEach((box, head) => {
      box.checked = drawn.includes(head);
      box.disabled = !store.canShow(state.layer, head);
    });
  }

  choose(side, index) {
    this.side = side;
    const { view } = this;
    if (side === "row") view.select(index, view.strongestColumn(index));
    else view.select(view.strongestRow(index), index);
  }

  showHead() {
    const { rows, columns, alignment } = this.view;
    this.showBoxes();
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
    const { view } = this;
    const heads = view.drawn.map((head) => [head, view.store.get(view.state.layer, head)]).filter(([, arrays]) => arrays);
    const seen = [];
    for (const i of rows) {
      for (const j of columns) {
        heads.forEach(([head, { weights }], order) => {
          const share = weights[i * view.columns.length + j] / view.top;
          if (share >= FAINTEST) seen.push({ i, j, share, head, order });
        });
      }
    }
    const several = view.drawn.length > 1;
    this.inColour ||= several; // the last one of several keeps its colour
    // heads that agree lie side by side
    const apart = (order) => (several ? ((order + 0.5) / heads.length - 0.5) * Math.min(12, 0.6 * this.pitch) : 0);
    return seen
      .sort((a, b) => a.share - b.share)
      .slice(-LINES_AT_MOST)
      .map(({ i, j, share, head, order }) => shape("path", {
        d: this.curve(i, j, apart(order)),
        class: this.inColour ? "av-link is-of-head" : view.isPadding(i, j) ? `${className} is-padding` : className,
        "stroke-width": (0.5 + (several ? 4 : 9) * share).toFixed(2),
        opacity: (0.15 + 0.85 * share).toFixed(3), "data-pair": `${i} ${j}`,
        ...(this.inColour ? { "data-head": head, ...headStroke(head) } : {}),
      }));
  }

  curve(row, column, apart = 0) {
    const y = (row + 0.5) * this.pitch + apart;
    const z = (column + 0.5) * this.pitch + apart;
    const { across } = this;
    return `M0,${y} C${across / 2},${y} ${across / 2},${z} ${across},${z}`;
  }

  legend() {
    const { view } = this;
    const digits = view.heads > 1 ? [`0–${Math.min(9, view.heads - 1)} more heads`] : [];
    return [
      this.scale(), ...(view.alignment.length ? [this.alignmentKey()] : []), ...view.paddingKey(),
      view.hint("↑ ↓ query", "← → key", ...digits),
    ];
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
