// The mask explorer: which query may see which key, what it costs, and how many layers lead from one to another.
//
// State: {pattern, length, window, stride, causal, cell: [query, key], title}.

// Which keys k a query q may see, with length n, window w and stride s, as in mask_explorer.py; what the two numbers
// mean, if they mean something; the pattern in words; and whether it hides later keys by itself.
const PATTERNS = {
  full: {
    sees: () => true,
    says: () => "Every query sees every key.",
  },
  causal: {
    looksBack: true,
    sees: (q, k) => k <= q,
    says: () => "A query sees itself and what comes before it.",
  },
  padding: {
    window: "padding tokens",
    sees: (q, k, n, w) => k < Math.max(1, n - w),
    says: (n, w) => `Nobody sees the last ${several(Math.min(w, n - 1), "key")}: padding.`,
  },
  "sliding window": {
    window: "window",
    sees: (q, k, n, w) => Math.abs(q - k) <= w,
    says: (n, w, s, where) => `A query sees itself and ${several(w, "key")} ${where}.`,
  },
  strided: {
    looksBack: true,
    window: "window",
    stride: "stride",
    sees: (q, k, n, w, s) => k <= q && (q - k <= w || (q - k) % s === 0),
    says: (n, w, s) => `A query sees the ${several(w, "key")} before it, and every ${nth(s)} before that.`,
  },
  fixed: {
    looksBack: true,
    window: "summaries",
    stride: "block",
    sees: (q, k, n, w, s) => k <= q && (Math.floor(q / s) === Math.floor(k / s) || k % s >= s - w),
    says: (n, w, s) => `A query sees back to the start of its block of ${s}, and the last ${Math.min(w, s)} of every earlier block.`,
  },
  dilated: {
    window: "window",
    stride: "gap",
    sees: (q, k, n, w, s) => Math.abs(q - k) <= w * s && (q - k) % s === 0,
    says: (n, w, s, where) => `A query sees itself and ${several(w, "key")} ${where}, ${s} apart.`,
  },
  "global tokens": {
    window: "window",
    stride: "global tokens",
    sees: (q, k, n, w, s) => Math.abs(q - k) <= w || q < s || k < s,
    says: (n, w, s, where) => `A query sees itself and ${several(w, "key")} ${where}. Global, the first ${several(s, "position")}: sees all, seen by all.`,
  },
  "block recurrence": {
    looksBack: true,
    stride: "block",
    sees: (q, k, n, w, s) => k <= q && Math.floor(q / s) - Math.floor(k / s) <= 1,
    says: (n, w, s) => `A query sees back to the start of the block before its own; a block has ${s}.`,
  },
};
const BYTES = 4; // a score is a float32
const SIDE = 400; // CSS pixels of the matrix
const ROOM = { left: 56, top: 50 }; // for positions and names of the axes
const ROOM_FOR_TEXT = 18; // CSS pixels of a cell that can hold the number of its layer

// The mask as one row of booleans a query.
function maskOf({ pattern, length, window, stride, causal }) {
  const { sees } = PATTERNS[pattern];
  const positions = Array.from({ length }, (_, k) => k);
  return positions.map((q) => positions.map((k) => (!causal || k <= q) && sees(q, k, length, window, stride)));
}

// The shortest way from query to key on which every position sees the next, or null. The same as _path in Python.
function pathIn(mask, query, key) {
  const came = new Map(); // position: from where it was reached first
  let frontier = [query];
  while (frontier.length && !came.has(key)) {
    const reached = [];
    for (const at of frontier) {
      mask[at].forEach((seen, position) => {
        if (!seen || came.has(position)) return;
        came.set(position, at);
        reached.push(position);
      });
    }
    frontier = reached;
  }
  if (!came.has(key)) return null;
  const path = [came.get(key), key];
  while (path[0] !== query) path.unshift(came.get(path[0]));
  return path;
}

class MaskExplorer extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "mask-explorer");
  }

  update(state) {
    const before = this.state || {};
    const changed = ["pattern", "length", "window", "stride", "causal"].some((name) => before[name] !== state[name]);
    // the kernel may send a new length before its cell
    this.state = { ...state, cell: state.cell.map((index) => Math.min(index, state.length - 1)) };
    if (before.title !== state.title) this.build();
    if (changed || before.title !== state.title) this.showMask();
    this.showCell();
  }

  build() {
    const { title } = this.state;
    const { signal } = this.closing;
    this.select = element("select", {}, Object.keys(PATTERNS).map((text) => element("option", { text })));
    this.select.addEventListener("change", () => this.choose({ pattern: this.select.value }), { signal });
    this.sliders = { length: this.size("length", 4), window: this.size("window", 0), stride: this.size("stride", 1) };
    this.box = element("input", { type: "checkbox" });
    this.box.addEventListener("change", () => this.choose({ causal: this.box.checked }), { signal });
    this.hides = element("label", { class: "me-control" }, [element("span", { text: "causal" }), this.box]);

    this.seen = shape("path", { class: "me-seen" });
    this.ticks = shape("g", { class: "me-ticks" });
    this.marks = shape("g");
    const size = { width: SIDE, height: SIDE };
    const board = shape("svg", {
      class: "me-board", viewBox: `${-ROOM.left} ${-ROOM.top} ${ROOM.left + SIDE + 4} ${ROOM.top + SIDE + 4}`, "aria-hidden": "true",
    }, [
      shape("text", { class: "me-key", x: SIDE / 2, y: 16 - ROOM.top, text: "key position →" }),
      shape("text", { class: "me-query", transform: `translate(${16 - ROOM.left} ${SIDE / 2}) rotate(-90)`, text: "← query position" }),
      this.ticks, shape("rect", { class: "me-paper", ...size }), this.seen, this.marks,
    ]);
    this.paper = board.querySelector(".me-paper");
    this.stage = element("div", { class: "me-stage", tabindex: 0, role: "application", "aria-roledescription": "mask" }, [board]);
    answerPointer(board, (event) => event.buttons && this.point(event), signal); // pressed: a pair that is chosen stays
    const move = (down, right) => () => this.go(this.state.cell[0] + down, this.state.cell[1] + right);
    answerKeys(this.stage, {
      ArrowUp: move(-1, 0), ArrowDown: move(1, 0), ArrowLeft: move(0, -1), ArrowRight: move(0, 1),
      Home: () => this.go(this.state.cell[0], 0), End: () => this.go(this.state.cell[0], this.state.length - 1),
    }, signal);

    this.says = element("p", { class: "me-says" });
    this.bar = element("i");
    this.counts = element("dl", { class: "me-counts" });
    this.readout = element("div", { class: "me-readout", role: "status" });
    this.root.setAttribute("aria-label", title || "Mask explorer");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      element("div", { class: "me-sides" }, [
        this.stage,
        element("div", { class: "me-panel" }, [
          element("label", { class: "me-control" }, [element("span", { text: "pattern" }), this.select]),
          ...Object.values(this.sliders).map(({ node }) => node), this.hides,
          this.says, this.counts, element("div", { class: "me-bar" }, [this.bar]), this.readout,
          element("div", { class: "is-hint", text: "click a cell, or ← → ↑ ↓ Home End · Esc leaves" }),
        ]),
      ]),
    );
  }

  // A slider for the trait `name`; what it is called depends on the pattern.
  size(name, min) {
    const { input, label, value, node } = this.slider("me-control", name, { min }, (number) => this.choose({ [name]: number }));
    const show = (number, max, called) => {
      input.max = Math.max(max, number);
      input.value = number;
      label.textContent = called || name;
      value.textContent = number;
      node.classList.toggle("is-unused", !called);
    };
    return { node, show };
  }

  // The pointer chooses the cell below it. A slide show scales the page, so the board is measured as it is now.
  point(event) {
    const box = this.paper.getBoundingClientRect();
    const { length } = this.state;
    this.go(Math.floor(((event.clientY - box.top) / box.height) * length),
      Math.floor(((event.clientX - box.left) / box.width) * length));
  }

  go(query, key) {
    const [row, column] = this.state.cell;
    const inside = (index) => Math.max(0, Math.min(this.state.length - 1, index));
    const cell = [inside(query), inside(key)];
    if (cell[0] !== row || cell[1] !== column) this.choose({ cell });
  }

  showMask() {
    const { pattern, length, window, stride, causal } = this.state;
    const { says, looksBack, ...called } = PATTERNS[pattern];
    this.mask = maskOf(this.state);
    this.pitch = SIDE / length;
    this.select.value = pattern;
    this.sliders.length.show(length, 64, "length");
    this.sliders.window.show(window, length, called.window);
    this.sliders.stride.show(stride, length, called.stride);
    this.box.checked = causal;
    this.hides.classList.toggle("is-unused", Boolean(looksBack));
    const where = causal ? "before it" : "on either side";
    this.says.textContent = says(length, window, stride, where) + (causal && !looksBack ? " Later keys are hidden." : "");

    const gap = this.pitch > 10 ? 1 : 0.5;
    const side = (this.pitch - gap).toFixed(2);
    const squares = this.mask.flatMap((row, q) => row.map((seen, k) => (seen
      ? `M${(k * this.pitch + gap / 2).toFixed(2)},${(q * this.pitch + gap / 2).toFixed(2)}h${side}v${side}h-${side}z` : "")));
    this.seen.setAttribute("d", squares.join(""));
    const every = [1, 2, 4, 8].find((step) => step * this.pitch >= 25);
    this.ticks.replaceChildren(...this.mask.flatMap((_, k) => (k % every ? [] : [
      shape("text", { class: "me-key", x: (k + 0.5) * this.pitch, y: -8, text: k }),
      shape("text", { class: "me-query me-end", x: -8, y: (k + 0.5) * this.pitch + 6, text: k }),
    ])));

    const pairs = this.mask.flat().filter(Boolean).length;
    const share = pairs / length ** 2;
    const count = (name, number, rest) => [element("dt", { text: name }), element("dd", {}, [element("b", { text: number }), ` ${rest}`])];
    this.counts.replaceChildren(
      ...count("pairs", pairs, `of ${length ** 2} (${Math.round(100 * share)} %)`),
      ...count("memory", bytes(BYTES * pairs), `of ${bytes(BYTES * length ** 2)}, if only these are stored`),
    );
    this.bar.style.width = `${100 * share}%`;
  }

  showCell() {
    const [query, key] = this.state.cell;
    const path = pathIn(this.mask, query, key);
    const { pitch } = this;
    const size = Math.max(pitch - 1, 9); // a hop is seen in a small cell too
    const box = (q, k) => ({ x: (k + 0.5) * pitch - size / 2, y: (q + 0.5) * pitch - size / 2, width: size, height: size });
    const hops = path ? path.slice(1).map((to, k) => [path[k], to]) : [];
    const number = ([q, k], layer) => (pitch < ROOM_FOR_TEXT ? []
      : [shape("text", { x: (k + 0.5) * pitch, y: (q + 0.5) * pitch + 6, text: hops.length - layer })]);
    this.marks.replaceChildren(
      shape("rect", { class: "me-row", x: 0, y: query * pitch, width: SIDE, height: pitch }),
      shape("rect", { class: "me-column", x: key * pitch, y: 0, width: pitch, height: SIDE }),
      ...hops.flatMap((hop, layer) => [shape("rect", { class: "me-hop", ...box(...hop) }), ...number(hop, layer)]),
      shape("rect", { class: this.mask[query][key] ? "me-cell" : "me-cell is-masked", ...box(query, key) }),
    );
    const says = `query ${query} ${this.mask[query][key] ? "sees" : "does not see"} key ${key}`;
    this.readout.replaceChildren(...story(says, path));
    this.stage.setAttribute("aria-label", this.readout.textContent);
  }
}

// What the selected cell says, as nodes.
function story(says, path) {
  if (!path) return [`${says}, and `, element("b", { text: "no number of layers" }), " brings it there."];
  const layers = path.length - 1;
  const way = path.length > 9 ? [...path.slice(0, 5), "…", ...path.slice(-3)] : path;
  return [`${says}. It gets there in `, element("b", { text: several(layers, "layer") }), ": ", element("span", { class: "me-way", text: way.join(" ← ") })];
}

function bytes(number) {
  return number < 1024 ? `${number} B` : `${(number / 1024).toFixed(1)} KiB`;
}

function several(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function nth(number) {
  return number === 1 ? "one" : `${number}${{ 1: "st", 2: "nd", 3: "rd" }[Math.floor(number / 10) === 1 ? 0 : number % 10] || "th"}`;
}
