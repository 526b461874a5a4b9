import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { cases, sayTheSame } from "./translations.js";
import { scopeOf } from "./widgets.js";

const scope = scopeOf("translator");
const [readWeights, half, softened, TranslatorModel] = scope("[readWeights, half, softened, TranslatorModel]");
const file = readWeights(new Uint8Array(readFileSync(process.env.TRANSLATOR)));
const model = new TranslatorModel(file);

test("numbers of 16 bits are read", () => {
  assert.deepEqual([0x3c00, 0xc000, 0x0001, 0x3555, 0x8000].map(half), [1, -2, 2 ** -24, (1 + 0x155 / 1024) / 4, -0]);
});

test("words, logits and weights are PyTorch's", () => {
  sayTheSame(model, (state) => model.attention(state, "cross").heads.flatMap(({ weights }) => [...weights]));
});

test("every row of every attention is a softmax of queries and keys", () => {
  const { state } = model.translate(cases[0].source, 120);
  for (const part of ["encoder", "decoder", "cross"]) {
    const { shape: [, , rows, columns], width, heads } = model.attention(state, part);
    assert.equal(heads.length, 8);
    for (const { weights, queries, keys } of heads) {
      for (let i = 0; i < rows; i++) {
        const open = part === "decoder" ? i + 1 : columns;
        const scores = Array.from({ length: open }, (_, j) => {
          let sum = 0;
          for (let k = 0; k < width; k++) sum += queries[i * width + k] * keys[j * width + k];
          return sum / Math.sqrt(width);
        });
        const shares = softened(scores);
        for (let j = 0; j < columns; j++) assert.ok(Math.abs(weights[i * columns + j] - (shares[j] ?? 0)) < 1e-6);
      }
    }
  }
});

test("a sentence is lower case, marks stand alone, and it ends in a full stop", () => {
  const words = (text) => Array.from(scope("sentenceOf")(text).words);
  assert.deepEqual(words("The Man, who slept"), ["the", "man", ",", "who", "slept", "."]);
  assert.deepEqual(words("été 1992."), ["été", "1992", "."]);
  assert.deepEqual(words(" \n"), []);
  const { words: read, left } = scope("sentenceOf")("a ".repeat(120));
  assert.deepEqual([read.length, left], [100, 21]);
});

test("the alignment error rate counts links without a partner, none to <eos>", () => {
  const rate = scope("alignmentErrorRate");
  const weights = new Float32Array([0.9, 0.1, 0, 0.2, 0.1, 0.7, 0.8, 0.1, 0.1]); // links 0-0, none, 2-0
  assert.equal(rate(weights, 3, [[0, 0], [1, 1], [2, 1]]), 1 - 2 / 5);
});
