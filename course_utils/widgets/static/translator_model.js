// The Transformer that the translator runs: lesson 04's, in plain JavaScript. The encoder reads a sentence at once, the
// decoder writes one word a step and keeps the keys and values of those before. A vector is a Float32Array, a sentence
// a list of them; names of weights are those of course_utils/transformer.py.

class TranslatorModel extends WritingModel {
  constructor({ weights, about }) {
    super();
    Object.assign(this, { weights, heads: about.n_heads, layers: about.n_layers });
    this.width = weights["source_embed.weight"].shape[1];
  }

  // Ids of the source, which end in EOS: what the decoder needs of them, and what the encoder looked at.
  encode(ids) {
    let x = ids.map((id, position) => this.embed("source_embed", id, position));
    const seen = [];
    for (let layer = 0; layer < this.layers; layer++) {
      const name = `encoder.layers.${layer}`;
      const past = this.project(`${name}.self_attention`, x.map((one) => this.norm(`${name}.norm_1`, one)));
      const looks = x.map((one) => this.attend(`${name}.self_attention`, this.norm(`${name}.norm_1`, one), past));
      x = looks.map(({ output }, k) => this.feedForward(name, "norm_2", added(x[k], output)));
      seen.push({ looks, keys: past.keys });
    }
    const top = x.map((one) => this.norm("encoder.norm", one));
    const each = (one) => Array.from({ length: this.layers }, (_, layer) => one(`decoder.layers.${layer}`));
    const memory = each((name) => this.project(`${name}.cross_attention`, top));
    return { memory, past: each(() => ({ keys: [], values: [] })), encoder: seen, decoder: each(() => []), cross: each(() => []) };
  }

  // Read one word more of the target: logits for the next one. The state, as encode() gives it, grows.
  step(id, state) {
    let x = this.embed("target_embed", id, state.past[0].keys.length);
    for (let layer = 0; layer < this.layers; layer++) {
      const name = `decoder.layers.${layer}`;
      const past = state.past[layer];
      const normed = this.norm(`${name}.norm_1`, x);
      const { keys, values } = this.project(`${name}.self_attention`, [normed]);
      past.keys.push(...keys);
      past.values.push(...values);
      const back = this.attend(`${name}.self_attention`, normed, past);
      x = added(x, back.output);
      const over = this.attend(`${name}.cross_attention`, this.norm(`${name}.norm_2`, x), state.memory[layer]);
      x = this.feedForward(name, "norm_3", added(x, over.output));
      state.decoder[layer].push(back);
      state.cross[layer].push(over);
    }
    return linear(this.norm("decoder.norm", x), this.weights["target_embed.weight"]);
  }

  // The weights, queries and keys of one part, "encoder", "decoder" or "cross", for the attention view.
  attention({ encoder, decoder, cross, past, memory }, part) {
    const layers = { encoder, decoder: decoder.map((looks, k) => ({ looks, keys: past[k].keys })),
      cross: cross.map((looks, k) => ({ looks, keys: memory[k].keys })) }[part];
    const [rows, columns, size] = [layers[0].looks.length, layers[0].keys.length, this.width / this.heads];
    const heads = layers.flatMap(({ looks, keys }) => Array.from({ length: this.heads }, (_, head) => {
      const own = (vector) => vector.subarray(head * size, (head + 1) * size);
      return {
        weights: stacked(looks.map(({ weights }) => weights[head]), columns),
        queries: stacked(looks.map(({ query }) => own(query)), size),
        keys: stacked(keys.map(own), size),
      };
    }));
    return { shape: [this.layers, this.heads, rows, columns], width: size, heads };
  }

  // --- the parts ---

  embed(table, id, position) {
    const { values } = this.weights[`${table}.weight`];
    return Float32Array.from({ length: this.width }, (_, k) => {
      const angle = position / 10000 ** ((k - (k % 2)) / this.width);
      return values[id * this.width + k] * Math.sqrt(this.width) + (k % 2 ? Math.cos(angle) : Math.sin(angle));
    });
  }

  linear(name, x) {
    return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`].values);
  }

  norm(name, x) {
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const [scale, shift] = [this.weights[`${name}.weight`].values, this.weights[`${name}.bias`].values];
    return x.map((value, k) => ((value - mean) / Math.sqrt(variance + 1e-5)) * scale[k] + shift[k]);
  }

  project(name, xs) {
    return { keys: xs.map((x) => this.linear(`${name}.W_k`, x)), values: xs.map((x) => this.linear(`${name}.W_v`, x)) };
  }

  // One query over all keys: what comes out, the query, and for each head the weights.
  attend(name, x, { keys, values }) {
    const query = this.linear(`${name}.W_q`, x);
    const size = this.width / this.heads;
    const mixed = new Float32Array(this.width);
    const weights = Array.from({ length: this.heads }, (_, head) => {
      const scores = keys.map((key) => {
        let score = 0;
        for (let k = head * size; k < (head + 1) * size; k++) score += query[k] * key[k];
        return score / Math.sqrt(size);
      });
      const shares = softened(scores);
      values.forEach((value, j) => {
        for (let k = head * size; k < (head + 1) * size; k++) mixed[k] += shares[j] * value[k];
      });
      return shares;
    });
    return { output: this.linear(`${name}.W_o`, mixed), query, weights };
  }

  feedForward(name, norm, x) {
    const inside = this.linear(`${name}.feed_forward.0`, this.norm(`${name}.${norm}`, x));
    return added(x, this.linear(`${name}.feed_forward.2`, inside.map((value) => Math.max(0, value))));
  }
}
