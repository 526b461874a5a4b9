// The tokenizer view: byte-pair encoding on a typed text, merge by merge.
//
// State: {_merges: "left right" a line, in the order learnt, text, step, title}.

const END = "</w>"; // joined to the last character of a word
const LONGEST = 400; // characters of a text, as in Python

// Do the first `steps` merges on the words of a text: again and again the pair learnt first, at its leftmost place.
// The same merge at several places in succession is one step. Gives the words as lists of pieces {text, seam}, where
// seam is the length of the left part of a piece that the last step has merged, and `used`, {rank, places} of each
// step. The same as _segment in tokenizer_view.py.
function segment(text, ranks, steps = Infinity) {
  const blanks = /[\p{White_Space}\x1c-\x1f]+/u; // what Python's split() takes for blanks
  const words = text.split(blanks).filter(Boolean).map((word) => Array.from(word, (character) => ({ text: character })));
  for (const word of words) word.at(-1).text += END;
  const used = [];
  for (;;) {
    let best = { rank: Infinity };
    for (const word of words) {
      for (let i = 0; i + 1 < word.length; i++) {
        const rank = ranks.get(`${word[i].text} ${word[i + 1].text}`);
        if (rank < best.rank) best = { rank, word, i };
      }
    }
    const { rank, word, i } = best;
    if (used.at(-1)?.rank !== rank) {
      if (rank === Infinity || used.length === steps) return { words, used };
      used.push({ rank, places: 0 });
      for (const piece of words.flat()) piece.seam = 0;
    }
    const [left, right] = word.slice(i, i + 2);
    word.splice(i, 2, { text: left.text + right.text, seam: left.text.length });
    used.at(-1).places += 1;
  }
}

class TokenizerView extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "tokenizer-view");
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    if (changed("_merges") || changed("title")) this.build();
    if (changed("_merges") || changed("title") || changed("text")) this.showText();
    this.showStep();
  }

  build() {
    const { _merges: merges, title } = this.state;
    this.merges = merges.split("\n").filter(Boolean).map((line) => line.split(" "));
    this.ranks = new Map(this.merges.map((pair, rank) => [pair.join(" "), rank]));
    const { signal } = this.closing;

    const typing = { type: "text", class: "tv-text", "aria-label": "text to split", placeholder: "type a word" };
    this.field = element("input", { ...typing, maxlength: LONGEST, dir: "auto", spellcheck: "false", autocomplete: "off" });
    this.field.addEventListener("input", () => {
      const text = this.field.value;
      this.choose({ text, step: segment(text, this.ranks).used.length });
    }, { signal });

    this.slider = element("input", { type: "range", min: 0, "aria-label": "merges done" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)), { signal });
    this.count = element("span", { class: "tv-count" });
    const controls = element("div", { class: "tv-controls" }, [
      this.button("«", "characters", () => this.go(0)),
      this.button("‹", "one merge back", () => this.go(this.step - 1)),
      this.slider,
      this.button("›", "next merge", () => this.go(this.step + 1)),
      this.button("»", "all merges", () => this.go(this.last)),
      this.count,
    ]);
    this.readout = element("div", { class: "tv-readout", role: "status" });
    this.pieces = element("div", { class: "tv-words" });
    this.list = element("ol", { class: "tv-used", "aria-label": "merges that the text uses" });
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
      element("div", { class: "is-hint" }, [
        endMark(), " end of a word", element("span", { class: "tv-keys", text: "← → one merge, Home, End, Esc leaves" }),
      ]),
    );
  }

  go(step) {
    if (step >= 0 && step <= this.last && step !== this.step) this.choose({ step });
  }

  // The field, and all merges that the text uses: one may be chosen with the pointer (with keys, the slider does).
  showText() {
    const { text } = this.state;
    if (this.field.value !== text) this.field.value = text;
    this.used = segment(text, this.ranks).used;
    this.last = this.used.length;
    this.slider.max = this.last;
    this.list.replaceChildren(...this.used.map(({ rank }, k) => {
      const button = this.button("", `merge ${rank + 1} of ${this.merges.length}`, () => this.go(k + 1));
      button.removeAttribute("aria-label"); // its text says it
      button.tabIndex = -1;
      button.append(element("span", { class: "tv-rank", text: `${rank + 1} ` }), ...this.pair(rank));
      return element("li", {}, [button]);
    }));
  }

  showStep() {
    const { text, step } = this.state;
    this.step = Math.min(step, this.last); // the kernel may send a new text before its step
    const { words } = segment(text, this.ranks, this.step);
    const count = words.flat().length;
    this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", `${this.step} of ${this.last}`);
    this.count.textContent = `step ${this.step} of ${this.last}`;
    this.pieces.replaceChildren(...words.map((word) => element("span", { class: "tv-word", dir: "auto" }, word.map(pieceNode))));
    this.stage.setAttribute("aria-label", `${counted(count, "piece")}: ${words.flat().map((piece) => plain(piece.text)).join(" ")}`);
    this.readout.replaceChildren(element("b", { class: "tv-pieces", text: counted(count, "piece") }), ...this.story());
    [...this.list.children].forEach((item, k) => {
      item.classList.toggle("is-done", k < this.step);
      item.firstChild.setAttribute("aria-current", k === this.step - 1 ? "step" : "false");
    });
  }

  // What the last step did. (Full stops, because a dot is the end of a word.)
  story() {
    if (!this.last) return [this.state.text.trim() ? ". No two neighbours here were learnt as a pair." : ""];
    if (!this.step) return [". Nothing is merged yet."];
    const { rank, places } = this.used[this.step - 1];
    const where = places > 1 ? ` at ${places} places` : "";
    const end = this.step === this.last ? " No learnt pair is left." : "";
    return [`. Merge ${rank + 1} of ${this.merges.length}: `, ...this.pair(rank), " → ",
      element("span", { class: "tv-new" }, written(this.merges[rank].join(""))), `${where}.${end}`];
  }

  pair(rank) {
    const [left, right] = this.merges[rank].map((piece) => element("bdi", {}, written(piece)));
    return [left, " + ", right];
  }
}

function pieceNode({ text, seam }) {
  if (!seam) return element("span", { class: "tv-piece" }, written(text));
  const halves = [text.slice(0, seam), text.slice(seam)];
  return element("span", { class: "tv-piece is-merged", title: "just merged" },
    halves.map((half) => element("span", { class: "tv-half" }, written(half))));
}

// A piece as nodes: the end mark as a dot.
function written(piece) {
  return piece.endsWith(END) ? [seen(piece.slice(0, -END.length)), endMark()] : [seen(piece)];
}

function plain(piece) {
  return piece.endsWith(END) ? `${seen(piece.slice(0, -END.length))}·` : seen(piece);
}

// An accent by itself gets a circle to stand on; a piece of invisible characters is written as their numbers.
function seen(piece) {
  if (/^\p{M}/u.test(piece)) return `◌${piece}`;
  const number = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return /^[\p{Cf}\p{Cc}]+$/u.test(piece) ? Array.from(piece, number).join(" ") : piece;
}

function endMark() {
  return element("span", { class: "tv-end", title: `end of a word, written ${END}`, text: "·" });
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
