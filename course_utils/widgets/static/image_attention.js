// The image attention: a word, or a patch of the picture itself, and the region of the picture it looks at.
//
// State: {_content: {image, pixels, grid, rows, asks, framed, shape, weights}, layer, head, cell, title}. The image is a
// data URL of `pixels` = [height, width]; its patches lie in `grid` = [rows, columns]; `rows` are the words that ask,
// none if the patches do, and `asks` what stands above them; `framed` has the patches that each query frames; weights
// are [layers, heads, T_q, T_k] = `shape`, and `sums` those of their rows.

const BOARD = { width: 350, height: 340 }; // CSS pixels that a picture may take
const ALONE = { width: 620, height: 546 }; // the same, if there is one picture, and words ask
const TILES = 240; // CSS pixels for the small pictures of all heads, either way
const FULL = 0.92; // side of the largest square in its patch
const SPECK = 1.5; // CSS pixels; a smaller square is not drawn
const INSET = 6; // CSS pixels between a chosen patch's edge and its frame, less in small patches: an outline stays seen
const ANSWER = " → "; // what stands after it in a word shows only while the word is chosen

class ImageAttention extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "image-attention");
    const turn = (layer, head) => () => this.turnTo(this.state.layer + layer, this.state.head + head);
    answerKeys(this.root, { "[": turn(0, -1), "]": turn(0, 1), "{": turn(-1, 0), "}": turn(1, 0) }, this.closing.signal);
  }

  build() {
    const { _content: content, title } = this.state;
    const [height, width] = content.pixels;
    const { signal } = this.closing;
    [this.layers, this.heads, this.queries, this.keys] = content.shape;
    [this.down, this.across] = content.grid;
    this.words = content.rows;
    [this.all, this.sums] = [content.weights, content.sums].map(numbers);
    const several = this.layers * this.heads > 1;
    const alone = this.words.length > 0 && !several;
    const { width: wide, height: high } = alone ? ALONE : BOARD;
    const scale = Math.min(wide / width, high / height);
    this.size = { width: scale * width, height: scale * height };
    this.pitch = { x: this.size.width / this.across, y: this.size.height / this.down };
    this.unit = this.down === height && this.across === width ? "pixel" : "patch";
    this.coarse = scale >= 3; // a picture of few pixels keeps its edges

    this.squares = shape("path", { class: "ia-squares" });
    this.framed = shape("path", { class: "ia-framed" });
    this.frames = { asks: this.frame("ia-query"), self: this.frame("ia-query"), key: this.frame("ia-key") };
    this.looks = this.board("looks", "what it looks at", [this.squares, this.framed, this.frames.self, this.frames.key]);
    answerPointer(this.looks.svg, (event) => this.readOff(this.pointed(this.looks, event)), signal);
    this.walk(this.looks.stage, this.across, this.keys, () => this.state.cell[1], (key) => this.readOff(key));
    this.asks = this.words.length ? this.sentence() : this.board("asks", "who asks", [this.frames.asks]);
    if (!this.words.length) {
      const press = (event) => event.buttons && this.select(this.pointed(this.asks, event)); // pressed: who is chosen stays
      answerPointer(this.asks.svg, press, signal);
    }
    const step = this.words.length ? 1 : this.across;
    this.walk(this.asks.stage, step, this.queries, () => this.state.cell[0], (query) => this.select(query));
    this.stage = this.asks.stage;

    this.readout = element("div", { class: "ia-readout", role: "status" });
    const head = (text, className, ...nodes) => element("div", { class: "ia-side" }, [element("div", { class: className, text }), ...nodes]);
    this.root.setAttribute("aria-label", title || "Attention over a picture");
    const asking = head(this.words.length ? content.asks || "which word asks: click it" : `which ${this.unit} asks: click it`, "ia-asking", this.asks.stage);
    const looking = element("div", { class: "ia-looking", text: "what it looks at: point at it" });
    if (content.framed.some((patches) => patches.length)) asking.append(element("div", { class: "ia-outlined", text: "outlined in green: what the word names" }));
    const hint = element("div", { class: "is-hint", text: `← → ↑ ↓ Home End${several ? " · [ ] head" : ""}${this.layers > 1 ? " · { } layer" : ""} · Esc leaves` });
    if (alone) asking.append(looking, this.readout, hint); // all height is the picture's
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      element("div", { class: "ia-sides" }, [
        asking,
        element("div", { class: "ia-side" }, alone ? [this.looks.stage] : [looking, this.looks.stage]),
        ...(several ? [head("every head: layer ↓ head →", "ia-every", this.grid())] : []),
      ]),
      ...(alone ? [] : [this.readout, hint]),
    );
  }

  // The picture with marks on it, as a stage that can have the focus.
  board(name, says, marks) {
    const { width, height } = this.size;
    const picture = shape("image", { class: "ia-picture", href: this.state._content.image, width, height, preserveAspectRatio: "none" });
    picture.classList.toggle("is-coarse", this.coarse);
    const svg = shape("svg", { viewBox: `-3 -3 ${width + 6} ${height + 6}`, width: width + 6, "aria-hidden": "true" },
      [picture, ...marks]);
    const stage = element("div", { class: `ia-stage ia-${name}`, tabindex: 0, role: "application", "aria-roledescription": says }, [svg]);
    return { svg, stage, picture };
  }

  frame(className) {
    const { x: width, y: height } = this.pitch;
    const inset = Math.min(INSET, Math.min(width, height) / 10);
    const inside = { x: inset, y: inset, width: width - 2 * inset, height: height - 2 * inset };
    return shape("g", { class: `ia-frame ${className}` }, [shape("rect", inside), shape("rect", inside)]);
  }

  // The words that ask, as a stage.
  sentence() {
    this.spans = this.words.map((word, query) => {
      const span = tokenElement(word.split(ANSWER)[0], "ia-word");
      span.addEventListener("click", () => this.select(query), { signal: this.closing.signal });
      return span;
    });
    const says = { tabindex: 0, role: "application", "aria-roledescription": "words" };
    return { stage: element("div", { class: "ia-stage ia-words", ...says }, this.spans) };
  }

  // A small picture of every head, one row a layer.
  grid() {
    this.painted = undefined; // the query for which the tiles are drawn
    const ratio = this.down / this.across;
    const room = Math.min(TILES / this.heads, TILES / this.layers / ratio);
    const width = Math.max(16, Math.min(110, room)) - 4;
    this.tiles = Array.from({ length: this.layers * this.heads }, (_, k) => {
      const [layer, head] = [Math.floor(k / this.heads), k % this.heads];
      const label = `layer ${layer}, head ${head}`;
      const tile = element("canvas", { class: "ia-tile", role: "img", "aria-label": label, title: label });
      tile.style.cssText = `width:${width}px; height:${width * ratio}px`;
      tile.addEventListener("click", () => this.turnTo(layer, head), { signal: this.closing.signal });
      return tile;
    });
    const grid = element("div", { class: "ia-tiles" }, this.tiles);
    grid.style.gridTemplateColumns = `repeat(${this.heads}, max-content)`;
    return grid;
  }

  // --- choosing ---

  // Arrows, Home and End in a stage; up and down go `step` further.
  walk(stage, step, count, now, go) {
    const move = (by) => () => go(Math.max(0, Math.min(count - 1, now() + by)));
    const jump = (by) => () => now() + by >= 0 && now() + by < count && go(now() + by); // stays in its column
    answerKeys(stage, {
      ArrowLeft: move(-1), ArrowRight: move(1), ArrowUp: jump(-step), ArrowDown: jump(step), Home: move(-count), End: move(count),
    }, this.closing.signal);
  }

  // The patch below the pointer. A slide show scales the page, so the board is measured as it is now.
  pointed({ picture }, event) {
    const box = picture.getBoundingClientRect();
    const within = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    return within((event.clientY - box.top) / box.height, this.down) * this.across
      + within((event.clientX - box.left) / box.width, this.across);
  }

  select(query) {
    if (query !== this.state.cell[0]) this.choose({ cell: [query, strongestOf(this.weights(this.state.layer, this.state.head, query))] });
  }

  readOff(key) {
    const [query, before] = this.state.cell;
    if (key !== before) this.choose({ cell: [query, key] });
  }

  turnTo(layer, head) {
    if (layer < 0 || layer >= this.layers || head < 0 || head >= this.heads) return;
    if (layer === this.state.layer && head === this.state.head) return;
    const query = this.state.cell[0];
    this.choose({ layer, head, cell: [query, strongestOf(this.weights(layer, head, query))] });
  }

  // --- showing ---

  weights(layer, head, query) {
    const start = ((layer * this.heads + head) * this.queries + query) * this.keys;
    return this.all.subarray(start, start + this.keys);
  }

  show() {
    const { layer, head, cell: [query, key] } = this.state;
    const weights = this.weights(layer, head, query);
    const top = weights[strongestOf(weights)];
    const { x, y } = this.pitch;
    this.squares.setAttribute("d", Array.from(weights, (weight, k) => {
      const side = FULL * Math.sqrt(weight / (top || 1));
      if (side * Math.min(x, y) < SPECK) return "";
      const [left, above] = this.corner(k).map((edge, axis) => edge + (axis ? y : x) * (1 - side) / 2);
      return `M${left.toFixed(2)},${above.toFixed(2)}h${(side * x).toFixed(2)}v${(side * y).toFixed(2)}h${(-side * x).toFixed(2)}z`;
    }).join(""));
    this.framed.setAttribute("d", this.outline(this.state._content.framed[query]));
    this.put(this.frames.key, key);
    this.frames.self.classList.toggle("is-hidden", this.words.length > 0);
    if (this.words.length) this.spans.forEach((span, k) => {
      span.classList.toggle("is-current", k === query);
      if (this.words[k].includes(ANSWER)) showToken(span, k === query ? this.words[k] : this.words[k].split(ANSWER)[0]);
    });
    else [this.frames.asks, this.frames.self].forEach((frame) => this.put(frame, query));
    this.tiles?.forEach((tile, k) => {
      const [l, h] = [Math.floor(k / this.heads), k % this.heads];
      tile.classList.toggle("is-current", l === layer && h === head);
      if (this.painted === query) return; // another key, or another head: the small pictures stay
      const values = this.weights(l, h, query);
      paintMatrix(tile, values, this.down, this.across, values[strongestOf(values)] || 1);
    });
    this.painted = query;
    this.readAloud(layer, head, query, key, weights, top);
  }

  readAloud(layer, head, query, key, weights, top) {
    const asks = this.words.length ? tokenElement(this.words[query], "ia-asking") : element("span", { class: "ia-asking", text: this.patch(query) });
    const where = this.layers * this.heads > 1 ? [`layer ${layer}, head ${head}: `] : [];
    const sum = this.sums[(layer * this.heads + head) * this.queries + query]; // exact: 16 bits of each weight add up
    const number = (weight) => this.words.length ? weight.toFixed(2) : readable(weight); // among many pixels they are small
    const rest = sum < 0.99995 ? ` Elsewhere, not on the picture: ${number(1 - sum)}.` : "";
    const looks = top ? [" looks at ", element("span", { class: "ia-looking", text: this.patch(key) }), " with ",
      element("b", { text: number(weights[key]) }), `. The largest square is ${number(top)}.${rest}`]
      : [" looks at nothing in the picture."];
    this.readout.replaceChildren(...where, asks, ...looks);
    this.asks.stage.setAttribute("aria-label", this.readout.textContent);
    this.looks.stage.setAttribute("aria-label", this.readout.textContent);
  }

  // The sides of these patches that are not between two of them.
  outline(patches) {
    const inside = new Set(patches);
    const { x, y } = this.pitch;
    return patches.map((k) => {
      const [[left, top], column] = [this.corner(k), k % this.across];
      const beside = (by) => column + by >= 0 && column + by < this.across && inside.has(k + by);
      return (inside.has(k - this.across) ? "" : `M${left},${top}h${x}`) + (inside.has(k + this.across) ? "" : `M${left},${top + y}h${x}`)
        + (beside(-1) ? "" : `M${left},${top}v${y}`) + (beside(1) ? "" : `M${left + x},${top}v${y}`);
    }).join("");
  }

  corner(k) {
    return [(k % this.across) * this.pitch.x, Math.floor(k / this.across) * this.pitch.y];
  }

  put(frame, k) {
    frame.setAttribute("transform", `translate(${this.corner(k).join(" ")})`);
  }

  patch(k) {
    return `row ${Math.floor(k / this.across)}, column ${k % this.across}`;
  }
}
