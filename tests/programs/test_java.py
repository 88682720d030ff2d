"""The Java virtual machine: its heap is its own, but its compilers, collectors, threads and buffers use malloc."""

from __future__ import annotations

import subprocess
import unittest
from pathlib import Path

from programs import ProgramTest, environment

SOURCE = r"""
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Load {
    /** What a thread does again and again; the answer depends on its number only. */
    static long round(int seed) throws Exception {
        Random random = new Random(seed);
        CRC32 sum = new CRC32();
        byte[] data = new byte[60000];
        for (int i = 0; i < 60; i++) {
            random.nextBytes(data);
            Arrays.fill(data, 0, random.nextInt(data.length), (byte) i);
            Deflater deflater = new Deflater(i % 9 + 1);
            deflater.setInput(data);
            deflater.finish();
            byte[] packed = new byte[70000];
            int size = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, size);
            byte[] back = new byte[data.length];
            if (inflater.inflate(back) != data.length || !Arrays.equals(back, data)) throw new Error("inflate");
            inflater.end();
            ByteBuffer direct = ByteBuffer.allocateDirect(1 + random.nextInt(200000));
            while (direct.hasRemaining()) direct.put((byte) direct.position());
            direct.flip();
            sum.update(direct);
            sum.update(packed, 0, size);
            Map<String, List<Integer>> map = new TreeMap<>();
            for (int j = 0; j < 3000; j++) map.computeIfAbsent("k" + random.nextInt(500), k -> new ArrayList<>()).add(j);
            sum.update(map.toString().getBytes("UTF-8"));
        }
        return sum.getValue();
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<String>> answers = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            final int seed = i;
            answers.add(pool.submit(() -> {
                long first = round(seed);
                while (System.nanoTime() < end) if (round(seed) != first) throw new Error("rounds differ");
                return seed + ":" + first;
            }));
        }
        for (Future<String> answer : answers) System.out.println(answer.get());
        pool.shutdown();
    }
}
"""

NATIVE_JAVA = r"""
import java.util.concurrent.*;

public class Native {
    static native long fill(int size, int seed);      // malloc here, free in another thread
    static native long sumAndFree(long block, int size);

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        ArrayBlockingQueue<long[]> queue = new ArrayBlockingQueue<>(500);
        ExecutorService pool = Executors.newFixedThreadPool(8);
        CompletionService<Long> ends = new ExecutorCompletionService<>(pool);
        final int count = 400_000;
        for (int thread = 0; thread < 4; thread++) {
            final int number = thread;
            ends.submit(() -> {
                byte[][] garbage = new byte[100][];
                for (int i = number; i < count; i += 4) {
                    int size = 1 + (int) (i * 2654435761L % 6000);
                    garbage[i % 100] = new byte[size];
                    queue.put(new long[] {fill(size, i), size});
                }
                return 0L;
            });
            ends.submit(() -> {
                long sum = 0;
                for (int i = number; i < count; i += 4) {
                    long[] block = queue.take();
                    sum += sumAndFree(block[0], (int) block[1]);
                }
                return sum;
            });
        }
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += ends.take().get();
        pool.shutdown();
        System.out.println(sum);
    }
}
"""

NATIVE_C = r"""
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
JNIEXPORT jlong JNICALL Java_Native_fill(JNIEnv *env, jclass owner, jint size, jint seed)
{
    (void)env; (void)owner;
    unsigned char *block = malloc((size_t)size);
    if (block == NULL) abort();
    for (jint i = 0; i < size; i++) block[i] = (unsigned char)(seed + i);
    return (jlong)(intptr_t)block;
}
JNIEXPORT jlong JNICALL Java_Native_sumAndFree(JNIEnv *env, jclass owner, jlong address, jint size)
{
    (void)env; (void)owner;
    unsigned char *block = (unsigned char *)(intptr_t)address;
    jlong sum = 0;
    for (jint i = 0; i < size; i++) sum += block[i] == (unsigned char)(block[0] + i) ? block[i] : 1000000000;
    free(block);
    return sum;
}
"""

THREADS = r"""
import java.nio.ByteBuffer;
import java.util.*;
import java.util.zip.*;

public class Threads {
    static final long[] sums = new long[64];

    /** A deflater made in one thread and ended in the next: its memory is freed by another thread than its maker. */
    static class Hop extends Thread {
        final int number;
        final Deflater old;
        Deflater made;
        Hop(int number, Deflater old) { this.number = number; this.old = old; }
        public void run() {
            byte[] out = new byte[5000];
            made = new Deflater(number % 9 + 1);
            made.setInput(new byte[1 + number * 31 % 4000]);
            made.finish();
            int size = made.deflate(out);
            CRC32 sum = new CRC32();
            sum.update(out, 0, size);
            ByteBuffer direct = ByteBuffer.allocateDirect(1 + number * 7919 % 100000);
            direct.put(direct.capacity() - 1, (byte) number);
            sum.update(direct);
            sums[number % 64] += sum.getValue();
            if (old != null) old.end();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Deflater[] kept = new Deflater[8];
        for (int i = 0; i < 3000; i += 8) {
            Hop[] hops = new Hop[8];
            for (int j = 0; j < 8; j++) (hops[j] = new Hop(i + j, kept[(j + 1) % 8])).start();
            for (int j = 0; j < 8; j++) { hops[j].join(); kept[j] = hops[j].made; }
        }
        System.out.println(Arrays.toString(sums));
    }
}
"""


class Java(ProgramTest):
    packages = ("default-jdk-headless", "gcc")
    programs = ("/usr/bin/java", "/usr/bin/javac", "gcc")
    version = ("/usr/bin/java", "-version")

    def program(self, name: str, source: str, collector: str, *arguments: str) -> None:
        (self.directory / f"{name}.java").write_text(source)
        javac = ["/usr/bin/javac", f"{name}.java"]
        subprocess.run(javac, cwd=self.directory, env=environment(False), check=True)
        command = ["/usr/bin/java", f"-XX:+Use{collector}", "-Xmx512m", "-cp", ".", name, *arguments]
        result = self.compare(command, served="java", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertNotEqual(result.stdout, b"")

    def load(self, collector: str) -> None:
        self.program("Load", SOURCE, collector, "30")

    def test_g1(self) -> None:
        """8 threads for 30 s: deflaters, direct buffers, maps; G1 collector"""
        self.load("G1GC")

    def test_parallel(self) -> None:
        """the same with the parallel collector"""
        self.load("ParallelGC")

    def test_short_threads(self) -> None:
        """3,000 short threads; each ends the deflater that another one made"""
        self.program("Threads", THREADS, "G1GC")

    def test_native(self) -> None:
        """JNI: 4 threads malloc and fill 400,000 blocks, 4 others check and free them, while objects are collected"""
        (self.directory / "Native.java").write_text(NATIVE_JAVA)
        (self.directory / "native.c").write_text(NATIVE_C)
        include = Path("/usr/bin/javac").resolve().parents[1] / "include"
        library = self.directory / "libnative.so"
        gcc = ["gcc", "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{include}/linux", "native.c", "-o", str(library)]
        for command in (["/usr/bin/javac", "Native.java"], gcc):
            subprocess.run(command, cwd=self.directory, env=environment(False), check=True)
        command = ["/usr/bin/java", "-Xmx128m", "-cp", ".", "Native", str(library)]
        result = self.compare(command, served="java", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])

    def test_compiler(self) -> None:
        """javac on 300 generated classes, the class files compared"""
        for i in range(300):
            (self.directory / f"C{i}.java").write_text(
                f"public class C{i}<T extends Comparable<T>> {{ java.util.Map<String, java.util.List<T>> m = new"
                f" java.util.HashMap<>(); int f(int x) {{ return switch (x % 3) {{ case 0 -> {i}; case 1 -> m.size();"
                f" default -> new C{(i + 1) % 300}<String>().f(x - 1); }}; }} }}\n"
            )
        compile_all = "rm -f *.class && /usr/bin/javac *.java && sha256sum *.class"
        result = self.compare(["sh", "-c", compile_all], served="javac", cwd=self.directory)
        self.assertEqual(result.stdout.count(b".class"), 300)


if __name__ == "__main__":
    unittest.main()
