// The translator: a typed sentence, read and written by a Transformer that runs here, and what it looked at.
//
// State: {_content: the weights' file, as a DataView or in base64, text, step, title}. `step` words of the translation
// are written; a step beyond the last word is the last. The model is in translator_model.js, the attention is shown by
// an AttentionView inside.

const MOST_READ = 100; // words of a sentence; more are not read
const MOST_WRITTEN = 120; // words of a translation; in training none had more than 47
const LONGEST_TRAINED = 40; // words of a sentence
const SHOWN = 5; // candidates
const PACE = 160; // milliseconds a word, while it writes
const COMPLETIONS = 8;
let translators = 0; // in this page; ids must differ

class Translator extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "translator");
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    if (changed("_content")) this.load();
    const anew = changed("_content") || changed("title");
    if (anew) this.build();
    if (anew || changed("text")) this.showText();
    this.showStep();
  }

  destroy() {
    this.pause();
    this.view?.destroy();
    super.destroy();
  }

  load() {
    const { weights, about } = readWeights(fileBytes(this.state._content.file));
    this.about = about;
    this.model = new TranslatorModel({ weights, about });
    this.ids = new Map(about.source.map((word, id) => [word, id]));
    this.lexicon = about.source.slice(UNKNOWN + 1).sort();
    const words = (ids, vocabulary) => ids.map((id) => vocabulary[id]);
    this.pairs = about.pairs.map(([source, target, links]) => (
      { source: words(source, about.source), target: words(target, about.target), links }));
  }

  // --- building ---

  build() {
    const { title } = this.state;
    const { signal } = this.closing;
    this.view?.destroy();
    this.view = null;
    const id = `translator-${++translators}`;

    this.field = element("input", {
      type: "text", class: "tr-text", role: "combobox", "aria-label": "English sentence", "aria-autocomplete": "list",
      "aria-controls": id, "aria-expanded": "false", placeholder: "type an English sentence", spellcheck: "false", autocomplete: "off",
      autocapitalize: "none", enterkeyhint: "go",
    });
    this.field.addEventListener("input", () => this.complete(), { signal });
    answerKeys(this.field, {
      Enter: () => (this.offered >= 0 ? this.take(this.offered) : this.go(this.field.value)),
      ArrowDown: () => this.offer(1),
      ArrowUp: () => this.offer(-1),
    }, signal);
    this.field.addEventListener("blur", () => this.close(), { signal });
    this.offers = element("ul", { class: "tr-offers", id, role: "listbox", "aria-label": "words it knows" });
    this.offers.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("[role=option]");
      if (option) this.take([...this.offers.children].indexOf(option));
    }, { signal });

    this.picker = element("select", { "aria-label": "a sentence with a known translation" }, [
      element("option", { value: "", text: `or choose one of ${this.pairs.length} sentences, whose true translation is known …` }),
      ...groupedByLength(this.pairs).map(([name, members]) => element("optgroup", { label: name }, members.map(
        (k) => element("option", { value: k, text: this.pairs[k].source.join(" ") })))),
    ]);
    this.picker.addEventListener("change", () => {
      const { source } = this.pairs[this.picker.value];
      this.picker.value = "";
      this.go(source.join(" "));
    }, { signal });

    this.said = element("div", { class: "tr-said", role: "status" });
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

    const known = element("details", { class: "tr-known" }, [
      element("summary", { text: `The ${this.lexicon.length} words it knows` }), element("p", { text: this.lexicon.join(" ") }),
    ]);
    const field = element("div", { class: "tr-field" }, [
      element("div", { class: "tr-typing" }, [this.field, this.offers]), this.button("Translate", "translate", () => this.go(this.field.value)),
    ]);
    this.root.setAttribute("aria-label", title || "Translator");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      element("div", { class: "tr-reading" }, [field, this.picker, known]),
      this.said, this.below,
      element("div", { class: "is-hint", text: "Enter translates · ↓ chooses a word · ← → one word of the translation · Esc leaves" }),
    );
  }

  // --- reading ---

  // Offer the words that begin like the one being typed.
  complete() {
    const begun = this.field.value.slice(0, this.field.selectionStart).match(/[^\s.]*$/)[0].toLowerCase();
    const found = begun ? this.lexicon.filter((word) => word.startsWith(begun) && word !== begun) : [];
    this.offers.replaceChildren(...found.slice(0, COMPLETIONS).map(
      (word, k) => element("li", { role: "option", id: `${this.offers.id}-${k}`, text: word })));
    this.offers.hidden = !found.length;
    this.field.setAttribute("aria-expanded", String(found.length > 0));
    this.mark(-1);
  }

  close() {
    this.offers.replaceChildren();
    this.offers.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.mark(-1);
  }

  offer(by) {
    const count = this.offers.children.length;
    if (count) this.mark((Math.max(this.offered + by, by < 0 ? -1 : 0) + count) % count);
  }

  mark(chosen) {
    this.offered = chosen;
    [...this.offers.children].forEach((option, k) => option.setAttribute("aria-selected", String(k === chosen)));
    if (chosen >= 0) this.field.setAttribute("aria-activedescendant", `${this.offers.id}-${chosen}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  take(k) {
    const word = this.offers.children[k].textContent;
    const at = this.field.selectionStart;
    const before = this.field.value.slice(0, at).replace(/[^\s.]*$/, `${word} `);
    this.field.value = before + this.field.value.slice(at).replace(/^ /, "");
    this.field.setSelectionRange(before.length, before.length);
    this.complete();
  }

  // Translate a text from its first word on, one word after the other; at once, if the reader wants no motion.
  go(text) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.choose({ text, step: still ? MOST_WRITTEN : 0 });
    this.field.value = text;
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
    const { text } = this.state;
    this.pause();
    this.field.value = text.replace(/[\r\n]+/g, " "); // the field has one line
    this.close();
    const { words, left } = sentenceOf(text);
    const pair = this.pairs.find(({ source }) => source.join(" ") === words.join(" "));
    this.below.hidden = !words.length;
    this.last = 0;
    this.step = undefined;
    this.written = [];
    this.words.replaceChildren();
    if (words.length) this.translate(words, pair);
    this.said.replaceChildren(...this.says(words, left).map((line) => element("p", { text: line })));
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
    const before = this.view?.state || { part: "cross", layer: firstLayer, head: firstHead, heads: [], view: "matrix", between: "all", title: "" };
    const { layer, head } = before;
    const sides = { encoder: [source, source], decoder: [this.written, [this.about.target[BOS], ...this.written.slice(0, -1)]], cross: [this.written, source] };
    this.parts = Object.fromEntries(Object.keys(sides).map((part) => [part, this.model.attention(state, part)]));
    const content = Object.fromEntries(Object.entries(sides).map(([part, [rows, columns]]) => {
      const { shape, width, heads } = this.parts[part];
      const sent = heads.map((head) => Object.fromEntries(Object.entries(head).map(([name, values]) => [name, new DataView(values.buffer)])));
      return [part, { shape, width, rows, columns, top: 1, alignment: part === "cross" ? links : [], causal: part === "decoder",
        cell: tellingCell(heads[layer * shape[1] + head].weights, columns.length), heads: { ...sent } }];
    }));
    const shown = { ...before, _content: content, cell: content[before.part].cell };
    if (this.view) this.view.update(shown);
    else this.view = new AttentionView(this.place, shown, (changes) => this.looked(changes));
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
    } else lines.push(element("p", { text: "For this sentence no true translation is known." }));
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
    const name = (k) => `layer ${Math.floor(k / perLayer)}, head ${k % perLayer}`;
    const shown = part === "cross" ? `${rates[layer * perLayer + head].toFixed(2)} (${name(layer * perLayer + head)}), ` : "";
    this.rate.textContent = `Alignment error rate: ${shown}best of all heads ${rates[lowest].toFixed(2)} (${name(lowest)}).`;
  }

  // What it can do with these words, and what not.
  says(words, left) {
    if (!words.length) return [`Type an English sentence, or choose one. It knows ${this.lexicon.length} words; after the first letters of a word it offers those that fit.`];
    const unknown = [...new Set(words.filter((word) => !this.lexicon.includes(word)))];
    return [
      ...(unknown.length ? [`It has never read ${unknown.slice(0, 6).join(", ")}${unknown.length > 6 ? " …" : ""}: to it, ${unknown.length > 1 ? "these are" : "this is"} <unk>. All words it knows are listed above.`] : []),
      ...(words.length > LONGEST_TRAINED ? [`${words.length + left} words: in training no sentence had more than ${LONGEST_TRAINED}, so do not trust what comes.`] : []),
      ...(left ? [`Of these it reads the first ${MOST_READ}.`] : []),
      ...(this.ended ? [] : [`It wrote ${this.last} words without coming to an end.`]),
    ];
  }
}

// Of each row's strongest key, the strongest off the diagonal, as in Python: [row, column].
function tellingCell(weights, columns) {
  const rows = Array.from({ length: weights.length / columns }, (_, row) => weights.subarray(row * columns, (row + 1) * columns));
  const keys = rows.map(strongestOf);
  const row = strongest(rows.length, (k) => rows[k][keys[k]] - (keys[k] === k));
  return [row, keys[row]];
}

// The words of a text, as in training: lower case, marks by themselves, a full stop at the end; at most so many, and
// how many were left out.
function sentenceOf(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) || [];
  if (words.length && words.at(-1) !== ".") words.push(".");
  const left = Math.max(0, words.length - MOST_READ);
  return { words: words.slice(0, MOST_READ), left };
}

// The `count` largest of some numbers, as [index, value].
function best(values, count) {
  return values.map((value, k) => [k, value]).sort(([, a], [, b]) => b - a).slice(0, count);
}

// [name, indices] for pairs of similar length, the first pair by itself: it is a famous one.
function groupedByLength(pairs) {
  const groups = new Map([["Bahdanau et al. 2015, figure 3", [0]]]);
  const order = pairs.map((_, k) => k).slice(1).sort((a, b) => pairs[a].source.length - pairs[b].source.length);
  for (const k of order) {
    const least = Math.floor(pairs[k].source.length / 5) * 5;
    const name = `${Math.max(4, least)}${least % 40 ? ` to ${least + 4}` : ""} words`;
    groups.set(name, [...(groups.get(name) || []), k]);
  }
  return [...groups];
}

// The bytes of a file: from a kernel, or in base64 from an exported page.
function fileBytes(file) {
  if (file instanceof DataView) return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  const text = atob(file);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}
