// The heads of one tensor. In an exported page they all stand in the state, save those that were cut; in a running
// notebook the kernel sends each when it is first wanted.

const KEPT_AT_MOST = 24; // decoded heads; of 512 x 512 weights, 25 MB
const THUMBNAIL = 48; // pixels, as in Python

class HeadStore {
  constructor(part, { shape: [, perLayer, rows, columns], heads, top }, ask) {
    Object.assign(this, { part, perLayer, rows, columns, sent: heads, top, ask });
    this.known = new Map(); // number of a head: its decoded arrays, the least recently used first
    this.asked = new Set();
    this.thumbnails = new Map();
  }

  // Whether it is here, or can be asked for.
  canShow(layer, head) {
    return Boolean(this.ask) || layer * this.perLayer + head in this.sent;
  }

  // This head, or the first that is here.
  orFirst(layer, head) {
    if (this.canShow(layer, head)) return [layer, head];
    const [first] = Object.keys(this.sent);
    return [Math.floor(first / this.perLayer), first % this.perLayer];
  }

  // {weights, queries, keys} of a head, or null if the kernel has to send it first.
  get(layer, head) {
    const number = layer * this.perLayer + head;
    const arrays = this.known.get(number) || this.decode(number);
    if (!arrays) {
      this.question({ head: number });
      return null;
    }
    this.keep(number, arrays);
    return arrays;
  }

  // Ask for the first of these heads that is not here, if nothing else is awaited.
  fetch(numbers) {
    if (this.asked.size) return;
    const next = numbers.find((number) => !this.known.has(number) && !(number in this.sent));
    if (next !== undefined) this.question({ head: next });
  }

  // A head as positions in the colour scale, {values, rows, columns} of at most 48 x 48, or null.
  thumbnail(layer, head) {
    const number = layer * this.perLayer + head;
    if (!this.thumbnails.has(number) && !this.ask) {
      const arrays = this.decode(number);
      if (arrays) this.thumbnails.set(number, pooled(arrays.weights, this.rows, this.columns, this.top));
    }
    if (!this.thumbnails.has(number)) this.question({ thumbnails: true });
    return this.thumbnails.get(number) || null;
  }

  // What the kernel sends.
  arrive({ part, arrays, ...question }, buffers) {
    this.asked.delete(JSON.stringify(question));
    if ("head" in question) {
      this.keep(question.head, Object.fromEntries(arrays.map((name, k) => [name, numbers(buffers[k])])));
      return;
    }
    const rows = Math.min(this.rows, THUMBNAIL);
    const columns = Math.min(this.columns, THUMBNAIL);
    const all = new Uint8Array(buffers[0].buffer, buffers[0].byteOffset, buffers[0].byteLength);
    for (let k = 0; k * rows * columns < all.length; k++) {
      this.thumbnails.set(k, { values: all.subarray(k * rows * columns, (k + 1) * rows * columns), rows, columns });
    }
  }

  decode(number) {
    const sent = this.sent[number];
    return sent && Object.fromEntries(Object.entries(sent).map(([name, values]) => [name, numbers(values)]));
  }

  keep(number, arrays) {
    this.known.delete(number);
    this.known.set(number, arrays);
    if (this.known.size > KEPT_AT_MOST) this.known.delete(this.known.keys().next().value);
  }

  question(question) {
    const text = JSON.stringify(question);
    if (!this.ask || this.asked.has(text)) return;
    this.asked.add(text);
    this.ask({ ...question, part: this.part });
  }
}

// A pixel is the largest of the weights it stands for, so that a thin diagonal stays.
function pooled(weights, rows, columns, top) {
  const height = Math.min(rows, THUMBNAIL);
  const width = Math.min(columns, THUMBNAIL);
  const values = new Uint8Array(height * width);
  const pixel = (k, size, pixels) => Math.floor(((k + 1) * pixels - 1) / size);
  const across = Uint16Array.from({ length: columns }, (_, j) => pixel(j, columns, width));
  for (let i = 0; i < rows; i++) {
    const start = pixel(i, rows, height) * width;
    for (let j = 0; j < columns; j++) {
      const colour = colourIndex(weights[i * columns + j], top);
      if (colour > values[start + across[j]]) values[start + across[j]] = colour;
    }
  }
  return { values, rows: height, columns: width };
}
