// --- a sentence being written -----------------------------------------------------------------------------------

const ROOM = 1020; // CSS pixels for all words of a side, if they can be made to fit
const LINKS = 110; // height of the links
const BAR = 74; // height of a weight of 1
const FAINTEST = 0.01; // links below this weight are not drawn

// The source above, the words so far below, and links from the word being written to what it looks at.
class DecodingDrawing {
  constructor(view, { heads, probabilities }) {
    Object.assign(this, { view, heads, probabilities });
    const { rows, columns, arrays: { weights } } = view;
    // what head h gives from a word to a source word
    this.weight = (h, i, j) => weights[(h * rows.length + i) * columns.length + j];
    const every = Array.from({ length: heads }, (_, h) => h);
    this.means = rows.map((_, i) => columns.map((__, j) => total(every, (h) => this.weight(h, i, j)) / heads));

    this.sources = columns.map((token, j) => this.source(token, j));
    this.targets = rows.map((_, i) => {
      const word = element("span", { class: "st-word st-query" });
      word.addEventListener("click", () => view.turnTo(i), { signal: view.closing.signal });
      return word;
    });
    const [source, target] = [columns, rows].map((tokens) => new WordLine(tokens));
    const width = Math.min(ROOM, Math.max(source.width, target.width));
    this.decimals = source.width <= ROOM ? 4 : 2; // as many as a column has room for
    this.places = { row: target.middles(width), column: source.middles(width) };
    this.trail = shape("g");
    this.links = shape("g");
    const lines = shape("svg", {
      class: "st-lines", viewBox: `0 0 ${width} ${LINKS}`, height: LINKS, preserveAspectRatio: "none", "aria-hidden": "true",
    }, [this.trail, this.links]);
    const line = (words, className, nodes) => {
      const node = element("div", { class: `st-line ${className}` }, nodes);
      node.style.cssText = `width:${100 * Math.min(1, words.width / width)}%; grid-template-columns:${words.columns}`;
      return node;
    };
    const board = element("div", { class: "st-board" },
      [line(source, "st-source", this.sources.map(({ node }) => node)), lines, line(target, "st-target", this.targets)]);
    board.style.width = `${width}px`;
    // paper does not step
    const all = element("ol", { class: "st-all" }, rows.map((_, i) =>
      element("li", {}, [...this.writes(i), " It looked at ", ...this.looks(i), "."])));
    this.node = element("div", {}, [board, all]);
    view.root.style.width = `${Math.max(700, width + 40)}px`; // of one size, whatever the lines above say
  }

  // One source word below its weight as a bar, and the weight of each head.
  source(token, j) {
    const { view, heads } = this;
    const [share, bar] = [element("span", { class: "st-share" }), element("i", { class: "st-bar-up" })];
    const cells = heads > 1 ? Array.from({ length: heads }, () => element("i", { class: "st-head-cell" })) : [];
    const word = tokenElement(token, "st-word st-key");
    const node = element("div", { class: "st-column" }, [element("span", { class: "st-tower" }, [share, bar]), ...cells, word]);
    answerPointer(node, () => view.explain(j), view.closing.signal);
    return { node, share, bar, cells, word };
  }

  show() {
    const { view, means } = this;
    const { query, step } = view.state;
    const written = query + step; // words that are there
    this.sources.forEach(({ share, bar, cells, word }, j) => {
      const weight = means[query][j];
      bar.style.height = `${(BAR * weight).toFixed(1)}px`;
      share.textContent = weight >= 0.005 ? weight.toFixed(this.decimals) : "";
      word.classList.toggle("is-looked-at", weight >= 0.1);
      cells.forEach((cell, h) => {
        const colour = 6 * colourIndex(this.weight(h, query, j), 1);
        cell.style.background = `#${CIVIDIS.slice(colour, colour + 6)}`;
      });
    });
    this.targets.forEach((word, i) => {
      if (i < written) showToken(word, view.rows[i]);
      else word.replaceChildren(i === query ? "?" : "");
      word.classList.toggle("is-current", i === query);
      word.classList.toggle("is-there", i < written);
    });
    this.trail.replaceChildren(...means.slice(0, query).map((row, i) => this.link("st-then", i, strongestOf(row), 1.5)));
    if (this.linked !== query) { // else they would appear again
      this.links.replaceChildren(...means[query].flatMap((weight, j) => (weight < FAINTEST ? []
        : [this.link("st-now", query, j, 0.5 + 9 * weight, 0.2 + 0.8 * weight)])));
    }
    this.linked = query;
    view.count.textContent = `word ${query + 1} of ${view.rows.length}`;
    this.point();
  }

  // The source word that is explained: the one chosen, or the strongest.
  get key() {
    return this.view.pointed ?? strongestOf(this.means[this.view.state.query]);
  }

  // Only a choice is marked: without one, several words are read off.
  point() {
    this.sources.forEach(({ node }, j) => node.classList.toggle("is-current", j === this.view.pointed));
    return this.sources[this.key].node;
  }

  link(className, row, column, width, opacity = 1) {
    const [x, u] = [this.places.row[row], this.places.column[column]];
    return shape("path", {
      class: className, d: `M${x},${LINKS} C${x},${LINKS / 2} ${u},${LINKS / 2} ${u},0`, "stroke-width": width.toFixed(2),
      opacity: opacity.toFixed(2), "data-pair": `${row} ${column}`,
    });
  }

  story() {
    const { view } = this;
    const { query, step } = view.state;
    const looks = this.looks(query, view.pointed);
    const before = view.rows.slice(Math.max(0, query - 6), query).map(visible).join(" ");
    const soFar = query ? [`Written so far: ${query > 6 ? "… " : ""}${before}. `] : ["Nothing is written yet. "];
    return [
      step === 0 ? [...soFar, "Which word comes next?"] : this.writes(query),
      [step === 0 ? "It looks at " : "It looked at ", ...looks],
    ];
  }

  writes(query) {
    const p = this.probabilities?.[query];
    const probability = p === undefined ? [] : [", with the probability ", element("b", { text: readable(p) })];
    return ["The decoder writes ", this.view.word("rows", query), ...probability, "."];
  }

  // The source words that a word looks at most, or one of them, with their weights.
  looks(query, one = null) {
    const weights = this.means[query];
    const order = weights.map((_, j) => j).sort((x, y) => weights[y] - weights[x]);
    const read = one === null ? order.slice(0, 3).filter((j, k) => k === 0 || weights[j] >= 0.05) : [one];
    return read.flatMap((j, k) => [k ? ", " : "", this.view.word("columns", j), " ", element("b", { text: readable(weights[j]) })]);
  }

  legend() {
    const line = (className, width, text) => {
      const sample = shape("svg", { width: 28, height: 10, "aria-hidden": "true" });
      sample.append(shape("path", { class: className, d: "M0,5 H28", "stroke-width": width }));
      return element("span", { class: "st-sample" }, [sample, ` ${text}`]);
    };
    const ramp = this.heads > 1 ? [element("span", { class: "st-sample" }, ["each of the heads: 0 ", colourRamp("st-ramp"), " 1"])] : [];
    return [
      line("st-now", 5, this.heads > 1 ? "where it looks: mean of the heads" : "where it looks"), ...ramp,
      line("st-then", 1.5, "where earlier words looked most"),
    ];
  }
}

// Words beside each other, each as wide as it needs.
class WordLine {
  constructor(tokens) {
    this.widths = tokens.map((token) => Math.max(48, Math.min(150, textWidth(visible(token), "bold 15px system-ui, sans-serif") + 18)));
    this.width = total(this.widths, (width) => width);
  }

  get columns() {
    return this.widths.map((width) => `minmax(0, ${width.toFixed(1)}fr)`).join(" ");
  }

  // Where the middle of each word is, if the line stands in the middle of so many pixels.
  middles(room) {
    const scale = Math.min(1, room / this.width);
    let at = (room - this.width * scale) / 2;
    return this.widths.map((width) => {
      at += width * scale;
      return Number((at - (width * scale) / 2).toFixed(1));
    });
  }
}
