import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { sayTheSame } from "./translations.js";
import { scopeOf } from "./widgets.js";

const scope = scopeOf("two_translators");
const [readWeights, RecurrentModel, shared] = scope("[readWeights, RecurrentModel, shared]");
const { weights } = readWeights(new Uint8Array(readFileSync(process.env.TRANSLATOR)));
const model = new RecurrentModel(weights, process.env.NAME);

test("words, logits and weights are PyTorch's", () => sayTheSame(model, ({ weights }) => weights.flatMap((row) => [...row])));

test("shared words are found in their order", () => {
  const found = (a, b) => Array.from(shared(a.split(" "), b.split(" ")), ([i, j]) => `${i}${j}`).join(" ");
  assert.equal(found("a b c", "a b c"), "00 11 22");
  assert.equal(found("a x c d", "b a c"), "01 22");
  assert.equal(found("a b", "b a").split(" ").length, 1);
  assert.equal(found("a", "b"), "");
});
