// StepThrough: one attention computation, or the writing of one sentence, a step at a time.
//
// State: {_content: {kind, rows, columns, arrays, …}, query, step, title}. Of kind "attention": arrays {queries, keys,
// values} and a mask with 1 where a query may attend; of kind "decoding": the array weights [heads, T_q, T_k], the
// number of heads and the probabilities of the words, or null.
//
// The drawings are in step_through_*.js. Each is a class with a `node`, show(), which draws this.view.state, and
// legend(); `story()` gives the two lines above it, as lists of nodes; `key` is the key that they explain, and point()
// marks it and gives its node. The key that the reader has chosen, if any, is this.view.pointed.

const STEPS = {
  attention: ["q · k", "mask", "softmax", "weight × value", "sum"],
  decoding: ["look", "write"],
};

class StepThrough extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "step-through");
    answerKeys(this.root, {
      ArrowRight: () => this.go(1),
      ArrowLeft: () => this.go(-1),
      Home: () => this.go(-Infinity),
      End: () => this.go(Infinity),
      ArrowDown: () => this.turnTo(this.state.query + 1),
      ArrowUp: () => this.turnTo(this.state.query - 1),
      ",": () => this.explain(Math.max(0, this.drawing.key - 1), true),
      ".": () => this.explain(Math.min(this.drawing.key + 1, this.columns.length - 1), true),
    }, this.closing.signal);
  }

  // --- choosing ---

  // The place in the sequence of steps: those of one query, or of all words.
  get place() {
    const { query, step } = this.state;
    return this.kind === "decoding" ? query * this.steps.length + step : step;
  }

  get last() {
    return this.steps.length * (this.kind === "decoding" ? this.rows.length : 1) - 1;
  }

  go(by) {
    const place = Math.max(0, Math.min(this.last, this.place + by));
    const step = place % this.steps.length;
    const query = this.kind === "decoding" ? Math.floor(place / this.steps.length) : this.state.query;
    this.choose({ query, step });
  }

  turnTo(query) {
    if (query >= 0 && query < this.rows.length) this.choose({ query });
  }

  // Another key to explain; one chosen with keys may have to be scrolled to.
  explain(key, scroll = false) {
    this.pointed = key;
    const place = this.drawing.point();
    if (scroll) place.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.tellStory();
  }

  choose(changes) {
    const anew = Object.entries(changes).filter(([name, value]) => this.state[name] !== value);
    if (anew.length) super.choose(Object.fromEntries(anew));
  }

  // --- building ---

  build() {
    const { _content: content, title } = this.state;
    const { kind, rows, columns, arrays } = content;
    Object.assign(this, { kind, rows, columns, steps: STEPS[kind] });
    this.arrays = Object.fromEntries(Object.entries(arrays).map(([name, sent]) => [name, numbers(sent)]));
    this.tabs = this.steps.map((name, step) => {
      const tab = element("button", { type: "button", class: "st-step" }, [element("b", { text: step + 1 }), ` ${name}`]);
      tab.addEventListener("click", () => this.choose({ step }), { signal: this.closing.signal });
      return tab;
    });
    this.backward = this.button("‹", "a step back", () => this.go(-1));
    this.forward = this.button("›", "next step", () => this.go(1));
    this.count = element("span", { class: "st-count" });
    this.says = element("div", { class: "st-says" });
    this.detail = element("div", { class: "st-detail" });
    this.readout = element("div", { class: "st-readout", role: "status", "aria-live": "polite" }, [this.says, this.detail]);
    this.drawing = new { attention: ComputationDrawing, decoding: DecodingDrawing }[kind](this, content);
    this.stage = element("div", { class: "st-stage", tabindex: 0, role: "application", "aria-roledescription": "steps" },
      [this.drawing.node]);
    this.root.setAttribute("aria-label", title || "Step through");
    this.root.replaceChildren(
      element("div", { class: "st-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        element("span", { class: "st-steps", role: "group", "aria-label": "Steps" }, [this.backward, ...this.tabs, this.forward]),
        this.count,
      ]),
      this.readout, this.stage,
      element("div", { class: "st-legend" }, [
        ...this.drawing.legend(),
        element("span", { class: "is-hint", text: `← → step · Home End · ↑ ↓ ${kind === "decoding" ? "word · , . source word" : "query · , . key"} · Esc leaves` }),
      ]),
    );
  }

  // --- showing ---

  show() {
    const { query, step } = this.state;
    if (this.shownFor !== query || this.pointed >= this.columns.length) this.pointed = null;
    this.shownFor = query;
    this.tabs.forEach((tab, k) => {
      if (k === step) tab.setAttribute("aria-current", "step");
      else tab.removeAttribute("aria-current");
      tab.classList.toggle("is-done", k < step);
    });
    // not `disabled`: that would take the focus, and the next key would go to the notebook
    this.backward.setAttribute("aria-disabled", this.place === 0);
    this.forward.setAttribute("aria-disabled", this.place === this.last);
    this.drawing.show();
    this.tellStory();
  }

  tellStory() {
    const [says, detail] = this.drawing.story();
    this.says.replaceChildren(...says);
    this.detail.replaceChildren(...detail);
    const { step } = this.state;
    const where = `${this.count.textContent}, step ${step + 1} of ${this.steps.length}, ${this.steps[step]}`;
    this.stage.setAttribute("aria-label", `${where}. ${this.says.textContent} ${this.detail.textContent}`);
  }

  // --- what the drawings share ---

  word(side, index) {
    return tokenElement(this[side][index], side === "rows" ? "st-query" : "st-key");
  }
}

function total(values, part) {
  return values.reduce((sum, value, k) => sum + part(value, k), 0);
}
