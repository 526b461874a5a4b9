// What PyTorch says about sentences; tests/test_javascript.py writes the files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const cases = JSON.parse(readFileSync(process.env.TRANSLATIONS, "utf-8"));
const expected = new Float32Array(new Uint8Array(readFileSync(process.env.LOGITS)).buffer);

// The model writes PyTorch's words, from its logits, and looked where it looked: `weightsOf` takes the weights, one row
// after the other, from what the model has kept.
export function sayTheSame(model, weightsOf) {
  let at = 0;
  let furthest = 0;
  for (const { source, target, weights } of cases) {
    const { ids, logits, state } = model.translate(source, 120);
    assert.deepEqual([...ids], target);
    const looked = weightsOf(state);
    assert.equal(looked.length, weights.length);
    assert.ok(looked.every((share, k) => Math.abs(share - weights[k]) < 1e-4));
    for (const row of logits) for (const value of row) furthest = Math.max(furthest, Math.abs(value - expected[at++]));
  }
  console.log(`${cases.length} sentences, ${at} logits, largest difference ${furthest.toExponential(1)}`);
  assert.equal(at, expected.length);
  assert.ok(furthest < 1e-3);
}
