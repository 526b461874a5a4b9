// --- WordPiece --------------------------------------------------------------------------------------------------

const UNKNOWN = "[UNK]";
const MOST_LETTERS = 100; // of a word that is not unknown, as in BERT
const SPECIAL = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/;
const CHINESE = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
const PUNCTUATION = /[\p{P}!-/:-@[-`{-~]/gu;

// BERT's words. The same as split_words and tokenize in course_utils/data/wordpiece.py.
function splitWords(text, lowercase) {
  return text.split(SPECIAL).flatMap((part, i) => {
    if (i % 2) return [part]; // a special piece stays whole
    let kept = part.replace(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu, "").replace(CHINESE, " $& ");
    if (lowercase) {
      const bare = kept.normalize("NFD").replace(/\p{Mn}/gu, "");
      kept = Array.from(bare, (letter) => letter.toLowerCase()).join(""); // together, a last sigma would differ
    }
    return kept.replace(PUNCTUATION, " $& ").split(BLANKS).filter(Boolean);
  });
}

// One step a piece: {piece, rest, tried}, where `rest` is what is left of the word, and `tried` its beginnings that
// are longer than the piece. A word that cannot be cut to its end is one step to [UNK]; then `rest` is where it fails.
function cutWord(word, pieces) {
  const letters = Array.from(word);
  const steps = [];
  if (letters.length > MOST_LETTERS) return [{ piece: UNKNOWN, rest: word, tried: [] }];
  for (let start = 0; start < letters.length;) {
    const begins = (end) => (start ? "##" : "") + letters.slice(start, end).join("");
    const tried = [];
    let end = letters.length;
    for (; end > start && !pieces.has(begins(end)); end--) tried.push(begins(end));
    if (end === start) return [{ piece: UNKNOWN, rest: begins(letters.length), tried }];
    steps.push({ piece: begins(end), rest: begins(letters.length), tried });
    start = end;
  }
  return steps;
}

// The pieces as they travel: sorted, and of each how many letters it shares with the one before (in base 36), then the
// others. The same as _packed in tokenizer_view.py.
function unpacked(packed) {
  const pieces = new Set();
  let before = [];
  for (const entry of packed.split(" ").filter(Boolean)) {
    before = [...before.slice(0, parseInt(entry[0], 36)), ...Array.from(entry.slice(1))];
    pieces.add(before.join(""));
  }
  return pieces;
}

// A step takes a piece.
class Cutting {
  constructor({ pieces, lowercase }) {
    this.lowercase = lowercase;
    this.pieces = unpacked(pieces);
    this.names = {
      none: "words", back: "one piece back", next: "next piece", all: "all pieces", done: "pieces taken",
      list: "beginnings of the rest, the longest first",
    };
    this.hint = [element("b", { class: "tv-end", text: "##" }), " inside a word",
      element("span", { class: "tv-keys", text: "← → one piece, Home, End, Esc leaves" })];
  }

  read(text) {
    this.cut = splitWords(text, this.lowercase).map((word) => ({ word, steps: cutWord(word, this.pieces) }));
    this.steps = this.cut.flatMap(({ word, steps }) => steps.map((step) => ({ word, ...step })));
    return this.steps.length;
  }

  list() {
    return [];
  }

  // The beginnings that the step has tried: those that are in no vocabulary, and the piece.
  mark(list, step) {
    const { tried, piece } = this.steps[step - 1] || { tried: [] };
    const item = (className, text) => element("li", { class: className }, [element("bdi", { text: seenInside(text) })]);
    list.replaceChildren(...tried.map((text) => item("tv-tried is-too-long", text)), ...(piece ? [item("tv-tried is-taken", piece)] : []));
  }

  words(step) {
    let left = step;
    const spoken = [];
    const words = this.cut.map(({ word, steps }) => {
      const taken = steps.slice(0, left);
      const nodes = taken.map(({ piece }, k) => {
        const now = k === left - 1;
        spoken.push(seenInside(piece));
        return element("span", { class: `tv-piece${now ? " is-merged" : ""}`, title: now ? "just taken" : null, text: seenInside(piece) });
      });
      left -= taken.length;
      const rest = taken.length ? steps[taken.length]?.rest : word;
      return rest ? [...nodes, element("span", { class: "tv-rest", text: seenInside(rest) })] : nodes;
    });
    return { words, spoken };
  }

  story(step) {
    if (!this.steps.length) return [""];
    if (!step) return [". The words are whole. Nothing is taken yet."];
    const { word, piece, rest, tried } = this.steps[step - 1];
    const shown = (text, className) => element("bdi", { class: className, text: seenInside(text) });
    const taken = shown(piece, "tv-new");
    if (tried.length === 0 && piece !== rest) return [`. A word of more than ${MOST_LETTERS} letters becomes `, taken, "."];
    if (piece === UNKNOWN && piece !== rest) return [". No piece begins ", shown(rest), ", so all of ", shown(word), " becomes ", taken, "."];
    if (piece === rest) return [". ", taken, " is a piece as it is."];
    return [". The longest piece that begins ", shown(rest), " is ", taken, `: ${counted(tried.length, "longer beginning")} ${tried.length === 1 ? "is" : "are"} no piece.`];
  }
}

// As `seen`, also after the mark.
function seenInside(piece) {
  return piece.startsWith("##") && piece.length > 2 ? `##${seen(piece.slice(2))}` : seen(piece);
}
