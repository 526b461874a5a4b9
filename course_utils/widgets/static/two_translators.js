// Two recurrent translators, one below the other: without and with attention, which run here, and what the second
// looked at: the English words are as bright as their weights for the French word that is chosen.
//
// State: {_content: the weights' file, as a DataView or in base64, text, title}. The models are in
// two_translators_model.js.

const MODELS = ["without", "with"];
const LEAST_SAID = 0.05; // weights below it are not said

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

  go(text) {
    this.choose({ text });
    this.field.value = text;
    this.bringIntoView(this.below);
  }

  build() {
    const { title } = this.state;
    const reading = this.reading();
    this.length = this.slider("tt-length", "words in the sentence", { min: 0, max: this.lengths.length - 1 }, (k) => {
      this.choose({ text: this.pairs.find(({ source }) => source.length === this.lengths[k]).source.join(" ") });
    });
    const words = (lang, name) => element("ol", { class: "tr-words", lang, "aria-label": name });
    const part = (name, list, ...more) => {
      const count = element("span", { class: "tt-count" });
      const head = element("div", { class: "tt-head" }, [element("b", { text: name }), count]);
      return { count, words: list, node: element("div", { class: "tt-side", role: "group", "aria-label": name }, [head, ...more, list]) };
    };
    this.english = part("English", words("en", "English sentence, word by word"));
    this.english.count.className = "tt-seen";
    this.english.count.setAttribute("role", "status");
    this.sides = MODELS.map((name) => {
      const bar = element("i");
      return { bar, ...part(`${name} attention`, words("fr", `translation ${name} attention`), element("div", { class: "tt-bar", "aria-hidden": "true" }, [bar])) };
    });
    this.truth = element("div", { class: "tr-truth" });
    this.below = element("div", { class: "tr-below" }, [this.english.node, ...this.sides.map(({ node }) => node), this.truth]);
    this.root.setAttribute("aria-label", title || "Two translators");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      reading, this.length.node, this.said, this.below, this.known,
      element("div", { class: "is-hint", text: "Enter translates · ↓ chooses a word · a French word shows what it looks at · ← → on the slider: a shorter or longer sentence · Esc leaves" }),
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
    this.root.style.setProperty("--words", words.length);
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
    this.weights = written[1].state.weights;
    this.english.words.replaceChildren(...[...words, about.target[EOS]].map((word) => element("li", {}, [element("span", { class: "tr-word", text: word })])));
    this.look(telling(same, said[1], pair));
    return MODELS.filter((_, k) => written[k].ids.at(-1) !== EOS);
  }

  // A word of a translation, marked where it differs; one of the model with attention can be looked at.
  word(word, right, row) {
    const text = element(right ? "bdi" : "del", { text: word });
    if (row === null) return element("span", { class: "tr-word" }, [text]);
    const button = element("button", { type: "button", class: "tr-word" }, [text]);
    for (const event of ["click", "focus"]) button.addEventListener(event, () => this.look(row), { signal: this.closing.signal });
    answerPointer(button, () => this.look(row), this.closing.signal);
    return button;
  }

  // What was looked at when this word was written.
  look(row) {
    const [buttons, read] = [this.sides[1].words, this.english.words].map((list) => [...list.querySelectorAll(".tr-word")]);
    const weights = this.weights[row] || [];
    buttons.forEach((button, k) => {
      if (k === row) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    read.forEach((word, k) => word.style.setProperty("--weight", weights[k] ?? 0));
    const seen = read.map((word, k) => [word.textContent, weights[k]]).filter(([, weight]) => weight >= LEAST_SAID).sort((a, b) => b[1] - a[1]);
    this.english.count.replaceChildren(...(buttons[row] ? [
      element("span", { class: "tt-query", text: buttons[row].textContent }), " looks at ",
      ...seen.slice(0, 3).flatMap(([word, weight], k) => [k ? ", " : "", element("span", { class: "tt-key", text: word }), ` ${weight.toFixed(2)}`]),
    ] : []));
  }
}

// The row to begin with: the first word that only attention got right, or that differs where the truth is not known;
// the first, if there is none.
function telling(same, words, pair) {
  const lost = new Set(same[0].map(([, k]) => k));
  const right = new Set(same[1].map(([row]) => row));
  const row = pair ? same[1].find(([, k]) => !lost.has(k))?.[0] : words.findIndex((_, k) => !right.has(k));
  return Math.max(0, row ?? 0);
}
