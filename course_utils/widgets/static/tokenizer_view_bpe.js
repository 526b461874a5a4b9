// --- byte-pair encoding -----------------------------------------------------------------------------------------

const END = "</w>"; // joined to the last character of a word

// Do the first `steps` merges on the words of a text: again and again the pair learnt first, at its leftmost place.
// The same merge at several places in succession is one step. Gives the words as lists of pieces {text, seam}, where
// seam is the length of the left part of a piece that the last step has merged, and `used`, {rank, places} of each
// step. The same as _segment in tokenizer_view.py.
function segment(text, ranks, steps = Infinity) {
  const words = text.split(BLANKS).filter(Boolean).map((word) => Array.from(word, (character) => ({ text: character })));
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

// A step is a merge.
class Merging {
  constructor({ merges }, view) {
    this.view = view;
    this.merges = merges.split("\n").filter(Boolean).map((line) => line.split(" "));
    this.ranks = new Map(this.merges.map((pair, rank) => [pair.join(" "), rank]));
    this.names = {
      none: "characters", back: "one merge back", next: "next merge", all: "all merges", done: "merges done",
      list: "merges that the text uses",
    };
    this.hint = [endMark(), " end of a word", element("span", { class: "tv-keys", text: "← → one merge, Home, End, Esc leaves" })];
  }

  // Takes a text; gives its number of steps.
  read(text) {
    this.text = text;
    this.used = segment(text, this.ranks).used;
    return this.used.length;
  }

  // All merges that the text uses: one may be chosen with the pointer (with keys, the slider does).
  list() {
    return this.used.map(({ rank }, k) => {
      const button = this.view.button("", `merge ${rank + 1} of ${this.merges.length}`, () => this.view.go(k + 1));
      button.removeAttribute("aria-label"); // its text says it
      button.tabIndex = -1;
      button.append(element("span", { class: "tv-rank", text: `${rank + 1} ` }), ...this.pair(rank));
      return element("li", {}, [button]);
    });
  }

  mark(list, step) {
    [...list.children].forEach((item, k) => {
      item.classList.toggle("is-done", k < step);
      item.firstChild.setAttribute("aria-current", k === step - 1 ? "step" : "false");
    });
  }

  // The words after so many steps as lists of nodes, and their pieces in words.
  words(step) {
    const { words } = segment(this.text, this.ranks, step);
    return { words: words.map((word) => word.map(pieceNode)), spoken: words.flat().map((piece) => plain(piece.text)) };
  }

  // What the last step did. (Full stops, because a dot is the end of a word.)
  story(step) {
    const last = this.used.length;
    if (!last) return [this.text.trim() ? ". No two neighbours here were learnt as a pair." : ""];
    if (!step) return [". Nothing is merged yet."];
    const { rank, places } = this.used[step - 1];
    const where = places > 1 ? ` at ${places} places` : "";
    const end = step === last ? " No learnt pair is left." : "";
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

function endMark() {
  return element("span", { class: "tv-end", title: `end of a word, written ${END}`, text: "·" });
}
