// The decoding tree: a beam search that grows by one word a step.
//
// State: {_content: {nodes, best, sampling}, step, node, title}. A node is {id, parent, word, log_prob, score, step,
// kept, finished, greedy, sampled, row}: columns are steps, and `row` is the place in the column (the beam first, then
// by log-probability). `sampling`, which may be missing, is {temperature, top_k, top_p}, each of which may be, too.
// `node` is the selected one; only nodes up to `step` are shown.

const ROOM = 1045; // CSS pixels for all columns, if they can be made to fit
const ROOM_BELOW = 312; // and for all rows: as high as the stage
const TYPES = [16, 15, 14, 13]; // sizes of a node's numbers; its word is 3 larger
const WORD_WIDTHS = [74, 100]; // a word has at least this, and at most
const SMALLEST_WORD = 11; // type of a word that is too long for its node
const PADDING = 9; // of a node, with its border
const GAPS = [10, 40]; // between two columns
const GAP_Y = 12;
const LONGEST = 75; // characters of a path in the line above the tree
const MARGIN = 11; // for badges and rings around the nodes
const SIGNS = { left: "‹", right: "›", up: "⌃", down: "⌄" }; // where there is more of the tree than can be seen
const SAMPLING = { temperature: "temperature", top_k: "top-k", top_p: "top-p" };

class DecodingTree extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "decoding-tree");
    answerKeys(this.root, {
      ArrowRight: () => this.go(this.state.step + 1),
      ArrowLeft: () => this.go(this.state.step - 1),
      Home: () => this.go(0),
      End: () => this.go(this.last),
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
    }, this.closing.signal);
  }

  // --- the tree ---

  // The nodes from the root to this one.
  path(id) {
    const nodes = [];
    for (let at = id; at !== null; at = this.nodes[at].parent) nodes.unshift(this.nodes[at]);
    return nodes;
  }

  // What a step selects: the first of its column, and at the last step the best hypothesis.
  leader(step) {
    return step === this.last ? this.best : this.columns[step][0].id;
  }

  // Outputs, best score first: leaves of the beam that have ended or were cut, of greedy decoding and of samples.
  outputs() {
    const parents = new Set(this.nodes.map((node) => node.parent));
    const lastOfBeam = Math.max(...this.nodes.filter((node) => node.kept).map((node) => node.step));
    const isOutput = (node) => !parents.has(node.id)
      && ((node.kept && (node.finished || node.step === lastOfBeam)) || node.greedy || node.sampled > 0);
    return this.nodes.filter(isOutput).sort((a, b) => b.score - a.score);
  }

  // --- choosing ---

  go(step) {
    const to = Math.max(0, Math.min(this.last, step));
    if (to !== this.state.step) this.choose({ step: to, node: this.leader(to) });
    this.follow();
  }

  // Up and down in the column of the selected node.
  move(by) {
    const { step, row } = this.nodes[this.state.node];
    const next = this.columns[step][row + by];
    if (next) this.select(next.id);
    this.follow();
  }

  // Select a node; one further on takes the step along.
  select(id) {
    if (id === this.state.node) return;
    this.choose({ node: id, step: Math.max(this.state.step, this.nodes[id].step) });
  }

  // Scroll the stage, never the page, until the selected node can be seen.
  follow() {
    const { offsetLeft: x, offsetTop: y } = this.boxes[this.state.node];
    const { stage } = this;
    const within = (now, from, size, room) => Math.max(Math.min(now, from - MARGIN), from + size + MARGIN - room);
    stage.scrollLeft = within(stage.scrollLeft, x, this.width, stage.clientWidth);
    stage.scrollTop = within(stage.scrollTop, y, this.height, stage.clientHeight);
  }

  // --- building ---

  build() {
    const { nodes, best, sampling = {} } = this.state._content;
    Object.assign(this, { nodes, best, sampling, last: Math.max(...nodes.map((node) => node.step)) });
    this.columns = Array.from({ length: this.last + 1 }, () => []);
    for (const node of nodes) this.columns[node.step][node.row] = node;

    const back = () => this.go(this.state.step - 1);
    const next = () => this.go(this.state.step + 1);
    this.backward = [this.button("⇤", "to the start", () => this.go(0)), this.button("‹", "a step back", back)];
    this.forward = [this.button("›", "next step", next), this.button("⇥", "to the end", () => this.go(this.last))];
    this.count = element("span", { class: "dt-count" });
    this.readout = element("div", { class: "dt-readout", role: "status", "aria-live": "polite" });
    this.stage = element("div", { class: "dt-stage", tabindex: 0, role: "application" }, [this.drawing()]);
    this.stage.setAttribute("aria-roledescription", "decoding tree");
    keepFromNotebook(this.stage);
    this.signs = Object.entries(SIGNS).map(([side, text]) => element("span", { class: `dt-more is-${side}`, text, "aria-hidden": "true" }));
    this.watch();
    this.list = element("div", { class: "dt-outputs", role: "group", "aria-label": "Outputs by score" });
    this.rows = this.outputs().map((node) => this.output(node));
    this.list.append(...this.rows.map(({ row }) => row));

    const title = this.state.title;
    this.root.setAttribute("aria-label", title || "Decoding tree");
    this.root.replaceChildren(
      element("div", { class: "dt-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        element("span", { class: "dt-buttons", role: "group", "aria-label": "Steps" },
          [...this.backward, this.count, ...this.forward]),
      ]),
      this.readout, element("div", { class: "dt-frame" }, [this.stage, ...this.signs]), this.list, this.legend(),
    );
  }

  // Signs at the stage's edges say on which sides it scrolls; a hidden slide has no size yet.
  watch() {
    const { stage, signs } = this;
    const look = () => {
      const more = { left: stage.scrollLeft, up: stage.scrollTop };
      more.right = stage.scrollWidth - stage.clientWidth - more.left;
      more.down = stage.scrollHeight - stage.clientHeight - more.up;
      Object.keys(SIGNS).forEach((side, k) => { signs[k].hidden = more[side] < 2; });
    };
    this.sizes?.disconnect();
    this.sizes = new ResizeObserver(look);
    this.sizes.observe(stage);
    stage.addEventListener("scroll", look, { signal: this.closing.signal });
  }

  destroy() {
    this.sizes.disconnect();
    super.destroy();
  }

  drawing() {
    const rows = Math.max(...this.columns.map((column) => column.length));
    const labels = this.nodes.map((node) => [visible(node.word), ...(node.parent === null ? ["", ""] : this.numbers(node))]);
    const layout = treeLayout(labels, this.last + 1, rows, textWidth);
    Object.assign(this, layout);
    const width = MARGIN * 2 + this.last * this.pitch + this.width;
    const height = MARGIN * 2 + (rows - 1) * this.pitchY + this.height;
    this.boxes = this.nodes.map((node) => this.box(node));
    this.edges = this.nodes.map((node) => this.edge(node));
    const lines = shape("svg", { class: "dt-lines", width, height, "aria-hidden": "true" });
    // the faint ones first, samples and the greedy path on top
    const rank = (id) => [this.nodes[id].kept, this.nodes[id].sampled, this.nodes[id].greedy].findLastIndex(Boolean);
    const order = this.edges.map((_, id) => id).sort((a, b) => rank(a) - rank(b));
    lines.append(...order.map((id) => this.edges[id]));
    const board = element("div", { class: "dt-board" }, [lines, ...this.boxes]);
    board.style.cssText = `width:${width}px; height:${height}px; --type:${this.type}px; --node:${this.height}px`;
    return board;
  }

  box(node) {
    const word = tokenElement(node.word, "dt-word"), size = this.type + 3;
    const needed = textWidth(visible(node.word).slice(0, 100), `bold ${size}px system-ui, sans-serif`);
    const share = (this.width - PADDING) / needed;
    if (share < 1) word.style.fontSize = `${Math.max(SMALLEST_WORD, size * share).toFixed(1)}px`;
    const box = element("div", { class: "dt-node" }, [word]);
    box.style.cssText = `left:${MARGIN + node.step * this.pitch}px; top:${MARGIN + node.row * this.pitchY}px; width:${this.width}px`;
    if (node.parent !== null) {
      const [share, logProb] = this.numbers(node);
      box.append(element("span", { class: "dt-numbers" }, [`${share} `, element("b", { text: logProb })]));
    }
    if (node.greedy && node.parent !== null) box.append(element("span", { class: "dt-badge dt-greedy", text: "g" }));
    if (node.sampled && node.parent !== null) {
      box.append(element("span", { class: "dt-badge dt-sampled", text: `×${node.sampled}` }));
    }
    box.classList.toggle("is-kept", node.kept);
    box.classList.toggle("is-finished", node.finished);
    box.dataset.node = node.id;
    answerPointer(box, () => this.select(node.id), this.closing.signal);
    return box;
  }

  edge(node) {
    const edge = shape("g", { class: "dt-edge", "data-node": node.id });
    if (node.parent === null) return edge;
    const from = this.nodes[node.parent];
    const x = MARGIN + from.step * this.pitch + this.width;
    const u = MARGIN + node.step * this.pitch;
    const [y, v] = [from, node].map(({ row }) => MARGIN + row * this.pitchY + this.height / 2);
    const d = `M${x},${y} C${(x + u) / 2},${y} ${(x + u) / 2},${v} ${u},${v}`;
    edge.append(shape("path", { class: "dt-line", d, "stroke-width": (1 + 5 * this.probability(node)).toFixed(2) }));
    if (node.greedy) edge.append(shape("path", { class: "dt-halo", d }), shape("path", { class: "dt-greedy-line", d }));
    // below the edge, which may be greedy's, too
    if (node.sampled) edge.append(shape("path", { class: "dt-sampled-line", d, transform: "translate(0 5)" }));
    edge.classList.toggle("is-kept", node.kept);
    return edge;
  }

  // What a node says below its word.
  numbers(node) {
    return [percent(this.probability(node)), signed(node.log_prob)];
  }

  // Of the word, given the words before it.
  probability(node) {
    return node.parent === null ? 1 : Math.exp(node.log_prob - this.nodes[node.parent].log_prob);
  }

  // One output below the tree; it appears when it is complete.
  output(node) {
    const words = this.path(node.id).slice(1).filter(({ finished }) => !finished).map(({ word }) => visible(word));
    const marks = [
      ...(node.id === this.best ? ["★ best"] : []),
      ...(node.greedy ? ["greedy"] : []),
      ...(node.sampled ? [`sampled ×${node.sampled}`] : []),
      ...(node.kept || node.sampled ? [] : ["not in the beam"]),
      ...(node.finished ? [] : ["cut"]),
    ];
    const button = element("button", { type: "button", class: "dt-output", title: words.join(" "), "data-node": node.id }, [
      element("span", { class: "dt-score" }, [element("b", { text: signed(node.score) }), ` = ${division(node)}`]), " ",
      element("bdi", { class: "dt-sentence", text: words.join(" ") }), " ",
      element("span", { class: "dt-marks", text: marks.join(" · ") }),
    ]);
    button.addEventListener("click", () => this.select(node.id), { signal: this.closing.signal });
    return { node, row: button };
  }

  legend() {
    const sample = (className, text) => element("span", { class: "dt-sample" },
      [element("span", { class: `dt-swatch ${className}`, "aria-hidden": "true" }), text]);
    const badge = (className, mark, text) => element("span", { class: "dt-sample" },
      [element("span", { class: `dt-badge ${className}`, text: mark, "aria-hidden": "true" }), text]);
    const drawn = Object.keys(this.sampling).map((name) => `${SAMPLING[name]} ${this.sampling[name]}`).join(", ");
    return element("div", { class: "dt-legend" }, [
      element("span", { text: "62%: p of the word" }), element("span", { text: "−1.93: log p of the path" }),
      sample("is-kept", "in the beam"), sample("", "pruned"), sample("is-kept is-finished", "ended"),
      ...(this.nodes.some(({ greedy }) => greedy) ? [badge("dt-greedy", "g", "greedy")] : []),
      ...(this.nodes.some(({ sampled }) => sampled) ? [badge("dt-sampled", "×2", drawn ? `sampled: ${drawn}` : "sampled")] : []),
      element("span", { class: "is-hint", text: "← → step · ↑ ↓ node · Esc leaves" }),
    ]);
  }

  // --- showing ---

  show() {
    const { step, node } = this.state;
    const selected = new Set(this.path(node).map(({ id }) => id));
    const won = new Set(step === this.last ? this.path(this.best).map(({ id }) => id) : []);
    for (const { id, step: at } of this.nodes) {
      for (const drawn of [this.boxes[id], this.edges[id]]) {
        drawn.classList.toggle("is-hidden", at > step);
        drawn.classList.toggle("is-on-path", selected.has(id));
        drawn.classList.toggle("is-best", won.has(id));
        drawn.classList.toggle("is-current", id === node);
      }
    }
    for (const { node: output, row } of this.rows) {
      row.classList.toggle("is-hidden", output.step > step);
      row.classList.toggle("is-best", won.has(output.id));
      row.setAttribute("aria-pressed", output.id === node);
    }
    // a list that scrolls must be reached by key, also while none of its buttons is there
    if (this.rows.some(({ node: output }) => output.step <= step)) this.list.removeAttribute("tabindex");
    else this.list.tabIndex = 0;
    this.count.textContent = `step ${step} of ${this.last}`;
    // not `disabled`: that would take the focus, and the next key would go to the notebook
    for (const button of this.backward) button.setAttribute("aria-disabled", step === 0);
    for (const button of this.forward) button.setAttribute("aria-disabled", step === this.last);
    this.read(this.nodes[node]);
  }

  read(node) {
    const written = this.path(node.id).slice(0, -1).map(({ word }) => visible(word)).join(" ");
    const letters = [...written];
    const seen = letters.length <= LONGEST ? written : `…${letters.slice(-LONGEST).join("")}`; // its end matters
    const before = element("span", { class: "dt-before", text: seen });
    const line = element("div", { class: "dt-path" }, [before, " ", tokenElement(node.word, "dt-last")]);
    const parts = [];
    if (node.parent !== null) {
      const p = readable(this.probability(node));
      const from = signed(this.nodes[node.parent].log_prob);
      parts.push(
        `p = ${p}`, `log p = ${from} + log ${p} = ${signed(node.log_prob)}`,
        `score = ${division(node)} = ${signed(node.score)}`,
        node.kept ? (node.finished ? "in the beam, ended" : "in the beam") : "not in the beam",
        ...(node.greedy ? ["greedy"] : []),
        ...(node.sampled ? [`in ${node.sampled} sample${node.sampled > 1 ? "s" : ""}`] : []),
        ...(node.id === this.best && this.state.step === this.last ? ["★ best"] : []),
      );
    } else {
      parts.push("the start: nothing is written yet");
    }
    this.readout.replaceChildren(line, element("div", { class: "dt-facts", text: parts.join(" · ") }));
    this.readout.dataset.node = node.id;
    this.stage.setAttribute("aria-label", `${this.count.textContent}. ${line.textContent}. ${parts.join(", ")}`);
  }
}

// The largest type with which all columns and rows fit, and the sizes that follow from it; the smallest, if none does.
// `labels` are the nodes' words and numbers. A long word gets smaller type, and is cut
// where that is not enough; a number never.
function treeLayout(labels, columns, rows, widthOf) {
  const layouts = TYPES.map((type) => {
    const font = (size, weight = "bold") => `${weight} ${size}px system-ui, sans-serif`;
    const even = (text) => text.replace(/\d/g, "0"); // digits of one width
    const word = Math.max(...labels.map(([text]) => widthOf(text.slice(0, 100), font(type + 3))));
    const number = Math.max(...labels.map(([, share, logProb]) => widthOf(`${even(share)} `, font(type, "normal")) + widthOf(even(logProb), font(type))));
    const narrowest = Math.max(number, WORD_WIDTHS[0]) + PADDING;
    const share = ROOM / columns;
    const width = Math.ceil(Math.max(narrowest, Math.min(share - GAPS[0], Math.min(word, WORD_WIDTHS[1]) + PADDING)));
    const pitch = width + Math.floor(Math.max(GAPS[0], Math.min(GAPS[1], share - width)));
    const height = Math.ceil(1.2 * (2 * type + 3)) + 3;
    return { type, width, pitch, height, pitchY: height + GAP_Y };
  });
  const fits = ({ width, pitch, height, pitchY }) => (columns - 1) * pitch + width <= ROOM
    && 2 * MARGIN + (rows - 1) * pitchY + height <= ROOM_BELOW;
  return layouts.find(fits) || layouts.at(-1);
}

// The log-probability and the length penalty that the score is made of.
function division({ log_prob: logProb, score }) {
  return `${signed(logProb)} / ${(score ? logProb / score : 1).toFixed(2)}`;
}

function percent(share) {
  if (share > 0 && share < 0.01) return "<1%";
  return `${Math.round(100 * share)}%`;
}
