// Two recurrent translators side by side: without and with attention, which run here, and what the second looked at.
//
// State: {_content: the weights' file, as a DataView or in base64, text, title}. The models are in
// two_translators_model.js, the attention is shown by an AttentionView inside.

const MODELS = ["without", "with"];

class TwoTranslators extends SentenceWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "sentence-widget two-translators");
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    if (before._content !== state._content) {
      const { weights } = this.load();
      this.models = MODELS.map((name) => new RecurrentModel(weights, name));
      this.lengths = [...new Set(this.pairs.map(({ source }) => source.length))].sort((a, b) => a - b);
    }
    const anew = before._content !== state._content || before.title !== state.title;
    if (anew) this.build();
    if (anew || before.text !== state.text) this.showText();
  }

  destroy() {
    this.view?.destroy();
    super.destroy();
  }

  go(text) {
    this.choose({ text });
    this.field.value = text;
    this.bringIntoView(this.below.querySelector(".tt-sides"));
  }

  build() {
    const { title } = this.state;
    this.view?.destroy();
    this.view = null;
    const reading = this.reading();
    this.length = this.slider("tt-length", "words in the sentence", { min: 0, max: this.lengths.length - 1 }, (k) => {
      this.choose({ text: this.pairs.find(({ source }) => source.length === this.lengths[k]).source.join(" ") });
    });
    this.sides = MODELS.map((name) => {
      const [count, bar, words] = [element("span", { class: "tt-count" }), element("i"), element("ol", { class: "tr-words", lang: "fr", "aria-label": `translation ${name} attention` })];
      const node = element("div", { class: "tt-side", role: "group", "aria-label": `${name} attention` }, [
        element("div", { class: "tt-head" }, [element("b", { text: `${name} attention` }), count]),
        element("div", { class: "tt-bar", "aria-hidden": "true" }, [bar]), words,
      ]);
      return { node, count, bar, words };
    });
    this.truth = element("div", { class: "tr-truth" });
    this.place = element("div", { class: "tt-attention" });
    this.below = element("div", { class: "tr-below" }, [
      element("div", { class: "tt-sides" }, [...this.sides.map(({ node }) => node), this.truth]), this.place,
    ]);
    this.root.setAttribute("aria-label", title || "Two translators");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      reading, this.length.node, this.said, this.below, this.known,
      element("div", { class: "is-hint", text: "Enter translates · ↓ chooses a word · ← → on the slider: a shorter or longer sentence · Esc leaves" }),
    );
  }

  // Another text: both read it and write, the differences are marked, and what was looked at is drawn.
  showText() {
    const { words, left, pair } = this.read();
    this.below.hidden = !words.length;
    const at = this.lengths.findIndex((length) => length >= words.length);
    this.length.input.value = at < 0 ? this.lengths.length - 1 : at;
    this.length.input.setAttribute("aria-valuetext", `${words.length} words`);
    this.length.value.textContent = words.length;
    const endless = words.length ? this.translate(words, pair) : [];
    this.say([...this.says(words, left), ...endless.map((name) => `The model ${name} attention wrote ${MOST_WRITTEN} words without coming to an end.`)]);
  }

  translate(words, pair) {
    const { about, sides } = this;
    const written = this.models.map((model) => model.translate(words.map((word) => this.ids.get(word) ?? UNKNOWN), MOST_WRITTEN));
    const rows = written.map(({ ids }) => ids.map((id) => about.target[id]));
    const said = rows.map((row) => row.filter((word) => word !== about.target[EOS]));
    const same = said.map((one, k) => shared(one, pair ? pair.target : said[1 - k]));
    sides.forEach(({ count, bar, words: list }, k) => {
      const right = new Set(same[k].map(([i]) => i));
      count.textContent = pair ? `${right.size} of ${pair.target.length} words right` : "";
      bar.style.width = pair ? `${(100 * right.size) / pair.target.length}%` : 0;
      list.replaceChildren(...said[k].map((word, row) => element("li", {}, [this.word(word, right.has(row), k ? row : null)])));
    });
    this.root.classList.toggle("tt-unknown", !pair);
    this.truth.replaceChildren(element("p", {}, pair
      ? ["True translation: ", element("span", { lang: "fr", text: pair.target.join(" ") })]
      : ["For this sentence no true translation is known: what differs is marked."]));
    const place = new Map(same[1].map(([row, k]) => [k, row]));
    const links = pair ? pair.links.filter(([k]) => place.has(k)).map(([k, column]) => [place.get(k), column]) : [];
    this.showAttention(rows[1], [...words, about.target[EOS]], written[1].state.weights, links);
    return MODELS.filter((_, k) => written[k].ids.at(-1) !== EOS);
  }

  // A word of a translation, marked where it differs; one of the model with attention can be looked at.
  word(word, right, row) {
    const text = element(right ? "bdi" : "del", { text: word });
    if (row === null) return element("span", { class: "tr-word" }, [text]);
    const button = element("button", { type: "button", class: "tr-word" }, [text]);
    button.addEventListener("click", () => this.view.choose({ cell: [row, this.view.strongestColumn(row)] }), { signal: this.closing.signal });
    return button;
  }

  showAttention(rows, columns, weights, links) {
    const values = stacked(weights, columns.length);
    const cell = tellingCell(values, columns.length);
    const before = this.view?.state || { part: "", layer: 0, head: 0, heads: [], view: "matrix", between: "all", title: "" };
    const content = { shape: [1, 1, rows.length, columns.length], width: 0, rows, columns, top: 1, alignment: links, causal: false,
      cell, heads: { 0: { weights: new DataView(values.buffer) } } };
    const shown = { ...before, _content: { "": content }, cell };
    if (this.view) this.view.update(shown);
    else this.view = new AttentionView(this.place, shown, () => this.looked());
    this.looked();
  }

  // The word whose row is looked at.
  looked() {
    this.sides[1].words.querySelectorAll(".tr-word").forEach((button, row) => {
      if (row === this.view.state.cell?.[0]) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }
}
