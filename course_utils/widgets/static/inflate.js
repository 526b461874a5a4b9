// Unpack a text that Python's zlib has packed (RFC 1951; only blocks with Huffman codes of their own, which is what
// zlib writes for a text this long). The browser's own DecompressionStream would do it later, when a slide show has
// already measured its slides.
function inflate(base64) {
  const input = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const output = [];
  let at = 0; // in bits
  const bits = (count) => {
    let value = 0;
    for (let k = 0; k < count; k++, at++) value |= ((input[at >> 3] >> (at & 7)) & 1) << k;
    return value;
  };
  // A function that reads one symbol; the lengths of the symbols' codes determine the codes.
  const reader = (lengths) => {
    const symbols = Array.from({ length: 16 }, (_, length) => [...lengths.keys()].filter((s) => lengths[s] === length));
    return () => {
      for (let length = 1, code = 0, first = 0; ; length++) {
        code = 2 * code + bits(1);
        first *= 2;
        if (code - first < symbols[length].length) return symbols[length][code - first];
        first += symbols[length].length;
      }
    };
  };
  const codes = () => {
    const [literals, distances, count] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const short = Array(19).fill(0);
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].slice(0, count).forEach((k) => { short[k] = bits(3); });
    const read = reader(short);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const symbol = read();
      if (symbol < 16) lengths.push(symbol);
      else if (symbol === 16) lengths.push(...Array(3 + bits(2)).fill(lengths.at(-1)));
      else lengths.push(...Array(symbol === 17 ? 3 + bits(3) : 11 + bits(7)).fill(0));
    }
    return [reader(lengths.slice(0, literals)), reader(lengths.slice(literals))];
  };
  for (let last = 0; !last;) {
    last = bits(1);
    bits(2); // the kind of block
    const [literal, distance] = codes();
    for (let symbol = literal(); symbol !== 256; symbol = literal()) {
      if (symbol < 256) {
        output.push(symbol);
        continue;
      }
      // a piece that was there before: 257 to 264 are the lengths 3 to 10, then come ranges that double every four
      const wide = symbol < 265 || symbol === 285 ? 0 : (symbol - 261) >> 2;
      const length = symbol === 285 ? 258 : wide ? ((4 + ((symbol - 261) & 3)) << wide) + 3 + bits(wide) : symbol - 254;
      const far = distance();
      const more = far < 4 ? 0 : (far >> 1) - 1;
      const back = (far < 4 ? far : (2 + (far & 1)) << more) + 1 + bits(more);
      for (let k = 0; k < length; k++) output.push(output[output.length - back]);
    }
  }
  return new TextDecoder().decode(new Uint8Array(output));
}
