// The tokenizer view: a typed text in pieces, one step after the other.
//
// State: {_content, text, step, title}. The content is {kind: "bpe", merges: "left right" a line, in the order learnt}
// or {kind: "wordpiece", pieces, as unpacked() reads them, lowercase}. The two ways are classes in tokenizer_view_*.js.

const LONGEST = 400; // characters of a text, as in Python
const BLANKS = /[\p{White_Space}\x1c-\x1f]+/u; // what Python's split() takes for blanks

class TokenizerView extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "tokenizer-view");
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    const anew = changed("_content") || changed("title");
    if (anew) this.build();
    if (anew || changed("text")) this.showText();
    this.showStep();
  }

  build() {
    const { _content: content, title } = this.state;
    this.way = new { bpe: Merging, wordpiece: Cutting }[content.kind](content, this);
    const { names } = this.way;
    const { signal } = this.closing;

    const typing = { type: "text", class: "tv-text", "aria-label": "text to split", placeholder: "type a word" };
    this.field = element("input", { ...typing, maxlength: LONGEST, dir: "auto", spellcheck: "false", autocomplete: "off" });
    this.field.addEventListener("input", () => {
      const text = this.field.value;
      this.choose({ text, step: this.way.read(text) });
    }, { signal });

    this.slider = element("input", { type: "range", min: 0, "aria-label": names.done });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)), { signal });
    this.count = element("span", { class: "tv-count" });
    const controls = element("div", { class: "tv-controls" }, [
      this.button("«", names.none, () => this.go(0)),
      this.button("‹", names.back, () => this.go(this.step - 1)),
      this.slider,
      this.button("›", names.next, () => this.go(this.step + 1)),
      this.button("»", names.all, () => this.go(this.last)),
      this.count,
    ]);
    this.readout = element("div", { class: "tv-readout", role: "status" });
    this.pieces = element("div", { class: "tv-words" });
    this.list = element("ol", { class: "tv-used", "aria-label": names.list });
    this.stage = element("div", { class: "tv-stage", tabindex: 0, role: "group" }, [this.pieces, this.list]);
    const stepping = element("div", {}, [controls, this.readout, this.stage]);
    answerKeys(stepping, {
      ArrowLeft: () => this.go(this.step - 1),
      ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0),
      End: () => this.go(this.last),
    }, signal);

    this.root.setAttribute("aria-label", title || "Tokenizer view");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      this.field,
      stepping,
      element("div", { class: "is-hint" }, this.way.hint),
    );
  }

  go(step) {
    if (step >= 0 && step <= this.last && step !== this.step) this.choose({ step });
  }

  showText() {
    const { text } = this.state;
    if (this.field.value !== text) this.field.value = text;
    this.last = this.way.read(text);
    this.slider.max = this.last;
    this.list.replaceChildren(...this.way.list());
  }

  showStep() {
    this.step = Math.min(this.state.step, this.last); // the kernel may send a new text before its step
    const { words, spoken } = this.way.words(this.step);
    this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", `${this.step} of ${this.last}`);
    this.count.textContent = `step ${this.step} of ${this.last}`;
    this.pieces.replaceChildren(...words.map((word) => element("span", { class: "tv-word", dir: "auto" }, word)));
    const count = counted(spoken.length, "piece");
    this.stage.setAttribute("aria-label", `${count}: ${spoken.join(" ")}`);
    this.readout.replaceChildren(element("b", { class: "tv-pieces", text: count }), ...this.way.story(this.step));
    this.way.mark(this.list, this.step);
  }
}

// An accent by itself gets a circle to stand on; a piece of invisible characters is written as their numbers.
function seen(piece) {
  if (/^\p{M}/u.test(piece)) return `◌${piece}`;
  const number = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return /^[\p{Cf}\p{Cc}]+$/u.test(piece) ? Array.from(piece, number).join(" ") : piece;
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
