"""node: V8's own heap lies beside malloc, which serves buffers, the compiler, the event loop and the workers."""

from __future__ import annotations

import shutil
import unittest

from programs import ProgramTest, run

WORKERS = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib');
function work(seed) {
  const hash = crypto.createHash('sha256'), kept = [];
  for (let i = 0; i < 3000; i++) {
    const buffer = Buffer.allocUnsafeSlow(1 + (i * 7919 * (seed + 1)) % 40000).fill(i % 251);
    const packed = zlib.deflateSync(buffer, { level: 1 });
    if (!zlib.inflateSync(packed).equals(buffer)) throw new Error('inflate');
    kept[i % 100] = packed; hash.update(packed);
  }
  return hash.digest('hex') + kept.length;
}
if (isMainThread) {
  const answers = [];
  let left = 8;
  for (let i = 0; i < 8; i++) {
    const worker = new Worker(process.argv[1], { workerData: i });
    worker.on('message', text => { answers[i] = text; });
    worker.on('exit', () => { if (--left === 0) console.log(answers.join('\n'), work(99)); });
  }
} else parentPort.postMessage(work(workerData));
"""

STOPPED = r"""
const { Worker, isMainThread, parentPort } = require('worker_threads');
const crypto = require('crypto');
async function main() {
  const hash = crypto.createHash('sha256');
  for (let round = 0; round < 40; round++) {
    const workers = Array.from({ length: 4 }, () => new Worker(process.argv[1]));
    // A worker hands over a buffer and goes on allocating until it is stopped in the middle. It keeps away from zlib:
    // node 20 aborts, with any malloc, when a worker is stopped while it makes a stream.
    const buffers = await Promise.all(workers.map(w => new Promise(done => w.once('message', done))));
    const ends = await Promise.all(workers.map(w => w.terminate()));
    for (const buffer of buffers) hash.update(buffer);
    hash.update(ends.join());
  }
  console.log(hash.digest('hex'));
}
if (isMainThread) main();
else {
  const first = new Uint8Array(300000).fill(7);
  parentPort.postMessage(first, [first.buffer]);
  const kept = [];
  for (let i = 0; ; i++) {
    kept[i % 300] = Buffer.allocUnsafeSlow(1 + i * 7919 % 40000).fill(i % 251);
    crypto.createHash('sha256').update(kept[i * 31 % kept.length] ?? 'none').digest();
  }
}
"""

BUILD = r"""
const fs = require('fs'), path = require('path'), vm = require('vm'), { execFileSync } = require('child_process');
let out = '';
for (let i = 0; i < 400; i++) {
  const source = `export const f${i} = (a) => { class C${i} { #x = a; get x() { return this.#x ** ${i}; } } return new C${i}(); };\n`;
  fs.writeFileSync(path.join(process.argv[2], `m${i}.mjs`), source.repeat(1));
  out += `import { f${i} } from './m${i}.mjs';\n`;
}
out += 'console.log([' + Array.from({ length: 400 }, (_, i) => `f${i}(1.001).x.toFixed(6)`).join() + '].join());';
fs.writeFileSync(path.join(process.argv[2], 'main.mjs'), out);
process.stdout.write(execFileSync(process.execPath, [path.join(process.argv[2], 'main.mjs')]));
for (let i = 0; i < 300; i++) vm.runInNewContext(`var x${i} = Array.from({length: ${i * 10}}, (_, j) => 'k' + j).join()`);
console.log('done');
"""


class Node(ProgramTest):
    title = "Node.js"
    packages = ("nodejs",)
    programs = ("/usr/bin/node",)
    version = ("/usr/bin/node", "--version")

    def script(self, text: str, *arguments: str) -> None:
        path = self.directory / "script.js"
        path.write_text(text)
        result = self.compare(["/usr/bin/node", str(path), *arguments], served="node", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])

    def test_workers(self) -> None:
        """8 worker threads that fill, compress and hash buffers"""
        self.script(WORKERS)

    def test_stopped_workers(self) -> None:
        """160 worker threads stopped while they allocate, each after handing a buffer to the main thread"""
        self.script(STOPPED)

    def test_modules(self) -> None:
        """400 modules written, loaded and run in a child; 300 contexts"""
        self.script(BUILD, str(self.directory))


class Npm(ProgramTest):
    title = "TypeScript (npm)"
    packages = ("nodejs",) if shutil.which("npm") else ("nodejs", "npm")  # some nodejs packages bring npm along
    programs = ("/usr/bin/node", "npm")
    version = ("npm", "--version")

    def test_typescript_build(self) -> None:
        """npm install typescript rollup; 150 generated sources compiled and bundled, the bundles compared"""
        (self.directory / "package.json").write_text('{"name": "t", "version": "1.0.0", "type": "module"}')
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "typescript@5.4", "rollup@3"]
        done = run(install, preload=False, cwd=self.directory)
        self.assertEqual(done.status, 0, done.stderr[-1000:])
        source = self.directory / "src"
        source.mkdir()
        names = range(150)
        for i in names:
            (source / f"m{i}.ts").write_text(
                f"interface I{i}<T> {{ value: T; next?: I{i}<T>; }}\n"
                f"export function f{i}<T extends number | string>(x: T): I{i}<T> {{ return {{ value: x }}; }}\n"
                f"export type M{i} = {{ [K in keyof I{i}<number>]?: Partial<Record<K, string>> }};\n"
            )
        main = "".join(f"import {{ f{i} }} from './m{i}.js';\n" for i in names)
        (source / "main.ts").write_text(
            main + "console.log([" + ", ".join(f"f{i}({i}).value" for i in names) + "].join());\n"
        )
        compile_all = (
            "rm -rf out bundle.js && node_modules/.bin/tsc --strict --target es2020 --module es2020 --outDir out"
            " src/main.ts && node_modules/.bin/rollup -i out/main.js -o bundle.js --silent && cat bundle.js && node bundle.js"
        )
        result = self.compare(["sh", "-c", compile_all], served="node", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stdout[-1000:] + result.stderr[-1000:])


if __name__ == "__main__":
    unittest.main()
