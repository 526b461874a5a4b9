// What both translators compute with: the file of weights, and vectors, which are Float32Arrays.

const [BOS, EOS, UNKNOWN] = [1, 2, 3]; // ids, as in course_utils/data/text.py

// A safetensors file: eight bytes with the length of a JSON header, the header, then numbers of 16 bits.
function readWeights(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const { __metadata__: { about }, ...header } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const weights = {};
  for (const [name, { shape, data_offsets: [from, to] }] of Object.entries(header)) {
    const values = new Float32Array((to - from) / 2);
    for (let k = 0; k < values.length; k++) values[k] = half(view.getUint16(start + from + 2 * k, true));
    weights[name] = { shape, values };
  }
  return { weights, about: JSON.parse(about) };
}

// A finite number of 16 bits: sign, five bits of exponent, ten of fraction.
function half(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  const size = exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  return bits & 0x8000 ? -size : size;
}

// A subclass has encode(ids), which gives a state, and step(id, state), which gives logits for the next word.
class WritingModel {
  // Always the most probable word, until the end or for `most` words: ids, the logits of each step, and the state.
  translate(source, most) {
    const state = this.encode([...source, EOS]);
    const ids = [];
    const logits = [];
    while (ids.at(-1) !== EOS && ids.length < most) {
      logits.push(this.step(ids.at(-1) ?? BOS, state));
      ids.push(strongestOf(logits.at(-1)));
    }
    return { ids, logits, state };
  }
}

// The matrix times the vector, plus the bias.
function linear(x, { shape: [rows, columns], values }, bias) {
  const y = new Float32Array(rows);
  for (let i = 0; i < rows; i++) {
    let sum = bias ? bias[i] : 0;
    for (let k = 0, at = i * columns; k < columns; k++, at++) sum += values[at] * x[k];
    y[i] = sum;
  }
  return y;
}

function added(x, y) {
  return x.map((value, k) => value + y[k]);
}

// A softmax.
function softened(scores) {
  const top = Math.max(...scores);
  const shares = Array.from(scores, (score) => Math.exp(score - top));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

// Rows one after the other, each filled up with zeros: a causal query has no weight for what comes later.
function stacked(rows, columns) {
  const values = new Float32Array(rows.length * columns);
  rows.forEach((row, k) => values.set(row, k * columns));
  return values;
}

// The share of true and found links that have no partner: each target word is linked to the source word with its
// largest weight, and to none if that is the last, <eos>. As in course_utils/metrics.py.
function alignmentErrorRate(weights, columns, links) {
  const found = [];
  for (let row = 0; row < weights.length / columns; row++) {
    const column = strongestOf(weights.subarray(row * columns, (row + 1) * columns));
    if (column < columns - 1) found.push(`${row} ${column}`);
  }
  const hits = links.filter(([row, column]) => found.includes(`${row} ${column}`)).length;
  return 1 - (2 * hits) / (found.length + links.length);
}

// The bytes of a file: from a kernel, or in base64 from an exported page.
function fileBytes(file) {
  if (file instanceof DataView) return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  const text = atob(file);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}
