// What the two translators share: a field for an English sentence that offers the words it knows, sentences to choose,
// and what is said about words that the model cannot translate. State: {_content: the weights' file, text, …}.

const MOST_READ = 100; // words of a sentence; more are not read
const MOST_WRITTEN = 120; // words of a translation; in training none had more than 47
const LONGEST_TRAINED = 40; // words of a sentence
const COMPLETIONS = 8;
let fields = 0; // in this page; ids must differ

class SentenceWidget extends CourseWidget {
  // The file: its vocabularies and known pairs are kept, its weights handed on.
  load() {
    const { weights, about } = readWeights(fileBytes(this.state._content.file));
    this.about = about;
    this.ids = new Map(about.source.map((word, id) => [word, id]));
    this.lexicon = about.source.slice(UNKNOWN + 1).sort();
    const words = (ids, vocabulary) => ids.map((id) => vocabulary[id]);
    this.pairs = about.pairs.map(([source, target, links]) => (
      { source: words(source, about.source), target: words(target, about.target), links }));
    return { weights, about };
  }

  // Where one types or chooses a sentence; the words it knows are for the end. go(text) is the subclass's.
  reading() {
    const { signal } = this.closing;
    const id = `sentence-${++fields}`;

    this.field = element("input", {
      type: "text", class: "tr-text", role: "combobox", "aria-label": "English sentence", "aria-autocomplete": "list",
      "aria-controls": id, "aria-expanded": "false", placeholder: "type an English sentence", spellcheck: "false", autocomplete: "off",
      autocapitalize: "none", enterkeyhint: "go",
    });
    this.field.addEventListener("input", () => this.complete(), { signal });
    // who comes with the pointer to a sentence that stands there wants another one; a second press sets the caret
    let came = true;
    this.field.addEventListener("click", () => {
      if (came && this.field.value === this.state.text) this.field.select();
      came = false;
    }, { signal });
    this.field.addEventListener("blur", () => { came = true; }, { signal });
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
      element("option", { value: "", text: `or one of ${this.pairs.length} examples …` }),
      ...groupedByLength(this.pairs).map(([name, members]) => element("optgroup", { label: name }, members.map(
        (k) => element("option", { value: k, text: this.pairs[k].source.join(" ") })))),
    ]);
    this.picker.addEventListener("change", () => {
      const { source } = this.pairs[this.picker.value];
      this.picker.value = "";
      this.go(source.join(" "));
    }, { signal });

    this.known = element("details", { class: "tr-known" }, [
      element("summary", { text: `The ${this.lexicon.length} words it knows` }), element("p", { text: this.lexicon.join(" ") }),
    ]);
    const typing = element("div", { class: "tr-field" }, [
      element("div", { class: "tr-typing" }, [this.field, this.offers]), this.button("Translate", "translate", () => this.go(this.field.value)),
    ]);
    this.said = element("div", { class: "tr-said", role: "status" });
    return element("div", { class: "tr-reading" }, [typing, this.picker]);
  }

  // The words of the text, and the known pair with the same words, if there is one; the field shows the text.
  read() {
    const { text } = this.state;
    this.field.value = text.replace(/[\r\n]+/g, " "); // the field has one line
    this.close();
    const { words, left } = sentenceOf(text);
    return { words, left, pair: this.pairs.find(({ source }) => source.join(" ") === words.join(" ")) };
  }

  say(lines) {
    this.said.replaceChildren(...lines.map((line) => element("p", { text: line })));
  }

  // After the reader has asked for a translation: what was said of it, and its words, may lie below the screen.
  bringIntoView(words) {
    if (matchMedia("(pointer: coarse)").matches) this.field.blur(); // takes the keyboard off the screen
    for (const node of [words, this.said]) node.scrollIntoView({ block: "nearest" });
  }

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

  // What it can do with these words, and what not.
  says(words, left) {
    if (!words.length) return [`Type an English sentence, or choose one. It knows ${this.lexicon.length} words; after the first letters of a word it offers those that fit.`];
    const unknown = [...new Set(words.filter((word) => !this.lexicon.includes(word)))];
    return [
      ...(unknown.length ? [`It has never read ${unknown.slice(0, 6).join(", ")}${unknown.length > 6 ? " …" : ""}: to it, ${unknown.length > 1 ? "these are" : "this is"} <unk>.`] : []),
      ...(words.length > LONGEST_TRAINED ? [`${words.length + left} words: in training no sentence had more than ${LONGEST_TRAINED}, so do not trust what comes.`] : []),
      ...(left ? [`Of these it reads the first ${MOST_READ}.`] : []),
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
