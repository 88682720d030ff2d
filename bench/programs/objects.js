// JSON, maps, buffers and zlib. V8's own heap lies beside malloc, which serves the buffers, zlib and the compiler.
//   objects.js ROUNDS
'use strict';
const zlib = require('zlib');
const crypto = require('crypto');

let state = 12345;
function random(limit) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >>> 8) % limit;
}

function record(number) {
  const tags = Array.from({ length: 1 + random(6) }, () => 'tag' + random(500));
  return { number, tags, name: 'n'.repeat(random(40)) + number, inner: { a: random(1000) / 7, b: [number, null, true] } };
}

const hash = crypto.createHash('sha256');
const kept = [];
const index = new Map();
for (let round = 0; round < Number(process.argv[2]); round++) {
  const records = Array.from({ length: 2000 }, (_, i) => record(round * 2000 + i));
  const text = JSON.stringify(records);
  if (JSON.stringify(JSON.parse(text)) !== text) throw new Error('JSON changed the records');
  for (const { tags, number } of records) {
    for (const tag of tags) {
      if (!index.has(tag)) index.set(tag, new Set());
      index.get(tag).add(number);
    }
  }
  for (let i = 0; i < 150; i++) {
    const buffer = Buffer.allocUnsafeSlow(100 + random(20000)).fill(i);
    buffer.write(text.slice(random(1000), 2000 + random(8000)));
    const packed = zlib.deflateSync(buffer, { level: 1 });
    if (!zlib.inflateSync(packed).equals(buffer)) throw new Error('zlib changed a buffer');
    kept[random(400)] = buffer;
    hash.update(packed);
  }
}
let pairs = 0;
for (const numbers of index.values()) pairs += numbers.size;
console.log('checksum', pairs, hash.digest('hex').slice(0, 16));
