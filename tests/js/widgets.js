// The widgets' JavaScript as Python joins it (widgets/base.py), and its functions without a browser.
import { readFileSync } from "node:fs";
import vm from "node:vm";

// By file name; tests/test_javascript.py writes the file.
export const widgets = JSON.parse(readFileSync(process.env.WIDGETS, "utf-8"));

// A function that evaluates an expression in the scope of one widget. All there is of a page: a text is measured as
// ten pixels a character.
export function scopeOf(name) {
  const context = { measureText: (text) => ({ width: 10 * text.length }) };
  const scope = vm.createContext({ atob, TextDecoder, document: { createElement: () => ({ getContext: () => context }) } });
  vm.runInContext(widgets[name], scope);
  return (expression) => vm.runInContext(expression, scope);
}
