// The translator: a typed sentence, read and written by a Transformer that runs here, and what it looked at.
//
// State: {_content: the weights' file, as a DataView or in base64, text, step, title}. `step` words of the translation
// are written; a step beyond the last word is the last. The model is in translator_model.js, the attention is shown by
// an AttentionView inside.

const SHOWN = 5; // candidates
const PACE = 160; // milliseconds a word, while it writes
const ROOM_ON_A_SLIDE = [360, 360, 360]; // of the map, in CSS pixels: for its rows, its columns, either if too many for text
// Sentences that it gets wrong: the name of the mistake, the text, and what it did (tests hold this against the model).
const FAILURES = [
  ["new word", "the students read a newspaper .",
    "It wrote “the students read the students”: it has no way to say that it does not know a word."],
  ["odd order", "house the sees queen old the .",
    "The grammar has no such order. It wrote “the house sees the old queen”, fluent French for words that say nothing."],
  ["too long", "the old queen sees the house and the doctors read a letter and the children sleep near the hospital and he visits a small country and the government signed the agreement and a man wrote the book and they were not seen and the students work .",
    "It reads well to its end, but “a man wrote” and “were not seen” are gone, and nothing in it says so."],
];

class Translator extends SentenceWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "sentence-widget translator");
    this.watcher = new ResizeObserver(() => this.showRoom()); // what is drawn before the slides begin is on one later
    this.watcher.observe(this.root);
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    if (changed("_content")) this.model = new TranslatorModel(this.load());
    const anew = changed("_content") || changed("title");
    if (anew) this.build();
    if (anew || changed("text")) this.showText();
    this.showStep();
  }

  destroy() {
    this.pause();
    this.watcher.disconnect();
    this.view?.destroy();
    super.destroy();
  }

  // --- building ---

  build() {
    const { title } = this.state;
    const { signal } = this.closing;
    this.view?.destroy();
    this.view = null;
    const reading = this.reading();
    reading.append(element("div", { class: "tr-failures", role: "group", "aria-label": "Sentences it gets wrong" }, [
      element("span", { text: "See it fail:" }), ...FAILURES.map(([name, text]) => this.button(name, `${name}: ${text}`, () => this.go(text))),
    ]));
    this.words = element("ol", { class: "tr-words", "aria-label": "translation", lang: "fr" });
    this.slider = element("input", { type: "range", min: 0, "aria-label": "words written" });
    this.slider.addEventListener("input", () => this.goTo(Number(this.slider.value)), { signal });
    this.count = element("span", { class: "tr-count" });
    this.stepping = element("div", { class: "tr-stepping" }, [
      this.button("«", "no word written", () => this.goTo(0)),
      this.button("‹", "one word back", () => this.goTo(this.step - 1)),
      this.slider,
      this.button("›", "one word more", () => this.goTo(this.step + 1)),
      this.button("»", "all words", () => this.goTo(this.last)),
      this.count,
    ]);
    this.candidates = element("ol", { class: "tr-candidates" });
    this.chose = element("div", { class: "tr-chose" });
    this.truth = element("div", { class: "tr-truth" });
    this.place = element("div", { class: "tr-attention" });
    const writing = element("div", { class: "tr-writing" }, [
      this.words, this.stepping, element("div", { class: "tr-beside" }, [element("div", { class: "tr-next" }, [this.chose, this.candidates]), this.truth]),
    ]);
    answerKeys(writing, {
      ArrowLeft: () => this.goTo(this.step - 1),
      ArrowRight: () => this.goTo(this.step + 1),
      Home: () => this.goTo(0),
      End: () => this.goTo(this.last),
    }, signal);
    this.below = element("div", { class: "tr-below" }, [writing, this.place]);

    this.root.setAttribute("aria-label", title || "Translator");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      reading, this.said, this.below, this.known,
      element("div", { class: "is-hint", text: "Enter translates · ↓ chooses a word · ← → one word of the translation · Esc leaves" }),
    );
  }

  // Translate a text from its first word on, one word after the other; at once, if the reader wants no motion.
  go(text) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.choose({ text, step: still ? MOST_WRITTEN : 0 });
    this.field.value = text;
    this.bringIntoView(this.words);
    if (!still) this.play();
  }

  play() {
    this.pause();
    if (this.step >= this.last) return;
    this.timer = setTimeout(() => {
      this.choose({ step: this.step + 1 });
      this.play();
    }, PACE);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  goTo(step) {
    this.pause();
    if (step >= 0 && step <= this.last && step !== this.step) this.choose({ step });
  }

  // --- showing ---

  // Another text: read it, write all of it, and draw what was looked at.
  showText() {
    this.pause();
    const { words, left, pair } = this.read();
    this.below.hidden = !words.length;
    this.last = 0;
    this.step = undefined;
    this.written = [];
    this.words.replaceChildren();
    if (words.length) this.translate(words, pair);
    const endless = words.length && !this.ended ? [`It wrote ${this.last} words without coming to an end.`] : [];
    const why = FAILURES.filter(([, text]) => text === this.state.text).map(([, , line]) => line);
    this.say([...this.says(words, left), ...endless, ...why]);
  }

  translate(words, pair) {
    const { model, about } = this;
    const { ids, logits, state } = model.translate(words.map((word) => this.ids.get(word) ?? UNKNOWN), MOST_WRITTEN);
    this.last = ids.length;
    this.written = ids.map((id) => about.target[id]);
    this.logits = logits;
    this.ended = ids.at(-1) === EOS;
    const output = this.written.slice(0, this.ended ? -1 : undefined);
    this.right = pair && output.join(" ") === pair.target.join(" ");
    const links = this.right ? pair.links : [];
    this.buttons = this.written.map((word, k) => {
      const button = element("button", { type: "button", class: "tr-word" }, [element("bdi", { text: word })]);
      button.addEventListener("click", () => this.lookAt(k), { signal: this.closing.signal });
      return button;
    });
    this.words.replaceChildren(...this.buttons.map((button) => element("li", {}, [button])));
    this.slider.max = this.last;
    this.showAttention([...words, about.target[EOS]], state, links);
    this.showTruth(pair, links);
  }

  showAttention(source, state, links) {
    const [firstLayer, firstHead] = this.about.head;
    const before = this.view?.state || { part: "cross", layer: firstLayer, head: firstHead, heads: [], view: "matrix", title: "" };
    const { layer, head } = before;
    const sides = { encoder: [source, source], decoder: [this.written, [this.about.target[BOS], ...this.written.slice(0, -1)]], cross: [this.written, source] };
    this.parts = Object.fromEntries(Object.keys(sides).map((part) => [part, this.model.attention(state, part)]));
    const content = Object.fromEntries(Object.entries(sides).map(([part, [rows, columns]]) => {
      const { shape, width, heads } = this.parts[part];
      const sent = heads.map((head) => Object.fromEntries(Object.entries(head).map(([name, values]) => [name, new DataView(values.buffer)])));
      return [part, { shape, width, rows, columns, top: 1, alignment: part === "cross" ? links : [], causal: part === "decoder",
        cell: tellingCell(heads[layer * shape[1] + head].weights, columns.length), heads: { ...sent } }];
    }));
    const shown = { ...before, _content: content, cell: content[before.part].cell, room: this.room };
    if (this.view) this.view.update(shown);
    else this.view = new AttentionView(this.place, shown, (changes) => this.looked(changes));
  }

  get room() {
    return this.root.closest(".reveal") ? ROOM_ON_A_SLIDE : undefined;
  }

  showRoom() {
    if (this.view && this.view.state.room !== this.room) this.view.update({ ...this.view.state, room: this.room });
  }

  // The reader chose something in the attention: a row that is not yet written takes the step along.
  looked(changes) {
    const { part, cell } = this.view.state;
    if (changes.cell && part !== "encoder" && cell[0] >= this.step) return this.goTo(cell[0] + 1);
    this.showWord();
    return this.showRates();
  }

  // Look at a word again, or write up to it.
  lookAt(word) {
    if (word >= this.step || this.view.state.part === "encoder") return this.goTo(word + 1);
    this.select(word);
    return this.showWord();
  }

  showStep() {
    const step = Math.min(this.state.step, this.last); // the kernel may send a new text before its step
    const moved = this.step === undefined ? step < this.last : step !== this.step;
    this.step = step;
    this.slider.value = step;
    this.slider.setAttribute("aria-valuetext", step ? `${step} of ${this.last}: ${this.written[step - 1]}` : "nothing written");
    this.count.textContent = `word ${step} of ${this.last}`;
    if (!this.last) return;
    this.buttons.forEach((button, k) => button.classList.toggle("is-written", k < step));
    this.root.style.setProperty("--written", `${(100 * step) / this.last}%`);
    const { part, cell } = this.view.state;
    if (moved && part !== "encoder" && cell?.[0] !== step - 1) this.select(step - 1);
    this.showWord();
    this.showRates();
  }

  // In the attention, the row of a word and the strongest key of it; before the first word, none.
  select(row) {
    const { view } = this;
    view.update({ ...view.state, cell: row < 0 ? null : [row, view.strongestColumn(row)] });
  }

  // The word that is looked at: the attention's row, or the last word written.
  showWord() {
    const { part, cell } = this.view.state;
    const row = Math.min(part === "encoder" || !cell ? this.step : cell[0] + 1, this.step) - 1;
    this.root.dataset.part = part;
    this.buttons.forEach((button, k) => (k === row ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current")));
    const button = this.buttons[row];
    if (button) this.words.scrollTop = button.offsetTop - this.words.clientHeight / 2;
    if (row < 0) {
      this.chose.textContent = "Nothing is written yet.";
      this.candidates.replaceChildren();
      return;
    }
    this.chose.replaceChildren("candidates for word ", element("b", { text: String(row + 1) }));
    this.candidates.replaceChildren(...best(softened(this.logits[row]), SHOWN).map(([id, share]) => {
      const bar = element("span", { class: "tr-bar" }, [element("i")]);
      bar.firstChild.style.width = `${100 * share}%`;
      return element("li", {}, [element("bdi", { class: "tr-candidate", lang: "fr", text: this.about.target[id] }), bar, element("span", { class: "tr-share", text: narrow(share) })]);
    }));
  }

  showTruth(pair, links) {
    this.rate = element("span", { class: "tr-rate" });
    const lines = [];
    if (pair) {
      lines.push(element("p", {}, ["True translation: ", this.right ? "the same words." : element("span", { lang: "fr", text: pair.target.join(" ") })]));
      if (!links.length) lines.push(element("p", { class: "is-hint", text: "Its words differ, so its alignment does not fit these rows." }));
    } else lines.push(element("p", { text: "No true translation is known: fluent French may be wrong." }));
    if (links.length) lines.push(element("p", {}, [this.rate]));
    this.truth.replaceChildren(...lines);
    this.links = links;
  }

  // How far the head that is shown, and the best of all, are from the true alignment.
  showRates() {
    if (!this.links.length) return;
    const { heads, shape: [, perLayer, , columns] } = this.parts.cross;
    const { layer, head, part } = this.view.state;
    const words = this.ended ? this.last - 1 : this.last;
    const rates = heads.map(({ weights }) => alignmentErrorRate(weights.subarray(0, words * columns), columns, this.links));
    const lowest = strongest(rates.length, (k) => -rates[k]);
    const shown = part === "cross" ? `${rates[layer * perLayer + head].toFixed(2)}, ` : "";
    this.rate.textContent = `Alignment error rate: ${shown}lowest ${rates[lowest].toFixed(2)} (layer ${Math.floor(lowest / perLayer)}, head ${lowest % perLayer}).`;
  }
}

// The `count` largest of some numbers, as [index, value].
function best(values, count) {
  return values.map((value, k) => [k, value]).sort(([, a], [, b]) => b - a).slice(0, count);
}
