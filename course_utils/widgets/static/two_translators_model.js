// One of the two recurrent translators: lesson 02's, in plain JavaScript. A GRU reads the sentence from each end; a GRU
// writes. Without attention it gets the readers' last states at every step; with it, it looks back at all of them.
// Names of weights are those of course_utils/seq2seq.py.

class RecurrentModel extends WritingModel {
  constructor(weights, name) {
    super();
    this.weights = Object.fromEntries(Object.entries(weights).filter(([key]) => key.startsWith(`${name}.`))
      .map(([key, tensor]) => [key.slice(name.length + 1), tensor]));
    this.attends = "decoder.combine.weight" in this.weights;
  }

  // Ids of the source, which end in EOS: the states, their keys, the summary, and the decoder's first state.
  encode(ids) {
    const words = ids.map((id) => this.row("encoder.embed", id));
    const forwards = this.read(words, "");
    const backwards = this.read(words.toReversed(), "_reverse").toReversed();
    const states = forwards.map((state, j) => joined(state, backwards[j]));
    const summary = joined(forwards.at(-1), backwards[0]);
    const keys = this.attends ? states.map((state) => this.linear("decoder.score.W_k", state)) : [];
    return { states, keys, summary, state: this.linear("bridge", summary).map(Math.tanh), weights: [] };
  }

  // Read one word more of the target: logits for the next one. `memory` is as encode() gives it; it goes on.
  step(id, memory) {
    const word = this.row("embed", id);
    memory.state = this.gru("decoder.rnn", "", this.attends ? word : joined(word, memory.summary), memory.state);
    return this.linear("output", this.attends ? this.look(memory) : memory.state);
  }

  // The state asks, every key answers; what is found is mixed with the state.
  look({ states, keys, state, weights }) {
    const query = this.linear("decoder.score.W_q", state);
    const scores = keys.map((key) => this.linear("decoder.score.v", added(query, key).map(Math.tanh))[0]);
    const shares = softened(scores);
    weights.push(shares);
    const context = new Float32Array(state.length);
    states.forEach((value, j) => value.forEach((number, k) => { context[k] += shares[j] * number; }));
    return this.linear("decoder.combine", joined(state, context)).map(Math.tanh);
  }

  // All states of one reader, from the first word it reads.
  read(words, direction) {
    let state = new Float32Array(this.weights["encoder.rnn.weight_hh_l0"].shape[1]);
    return words.map((word) => (state = this.gru("encoder.rnn", direction, word, state)));
  }

  // A step of a GRU as PyTorch has it: reset, update and new state, one below the other in each matrix.
  gru(name, direction, x, state) {
    const part = (kind) => this.weights[`${name}.${kind}_l0${direction}`];
    const given = linear(x, part("weight_ih"), part("bias_ih").values);
    const kept = linear(state, part("weight_hh"), part("bias_hh").values);
    const open = (k) => 1 / (1 + Math.exp(-given[k] - kept[k]));
    const n = state.length;
    return state.map((old, k) => {
      const fresh = Math.tanh(given[2 * n + k] + open(k) * kept[2 * n + k]);
      return fresh + open(n + k) * (old - fresh);
    });
  }

  row(table, id) {
    const { shape: [, width], values } = this.weights[`${table}.weight`];
    return values.subarray(id * width, (id + 1) * width);
  }

  linear(name, x) {
    return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]?.values);
  }
}

function joined(x, y) {
  return Float32Array.of(...x, ...y);
}

// Which words two sentences share, in their order: [index in a, index in b] of a longest common subsequence.
function shared(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) found.push([i++, j++]);
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return found;
}
