"""Small programs of every day's work, and those of other trades: each on something that takes it a while."""

from __future__ import annotations

import unittest

from programs import ProgramTest

DATA = r"""
seq 1 200000 | awk '{ print $1, $1 * 7919 % 10007, "text" $1 % 97 }' > data
mkdir -p tree; for i in $(seq 1 300); do seq $i $((i * 3)) > tree/f$i; done
"""


class Everyday(ProgramTest):
    """A shell script on generated files, whose output is compared."""

    def script(self, text: str, *, served: str) -> None:
        result = self.compare(["bash", "-ec", f"rm -rf *; {DATA}\n{text}"], served=served, cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertNotEqual(result.stdout, b"")


class Compressors(Everyday):
    title = "gzip, bzip2, xz, zstd, tar"
    packages = ("gzip", "bzip2", "xz-utils", "zstd", "tar")
    version = ("xz", "--version")

    def test_round_trips(self) -> None:
        """archives packed with 4 threads, unpacked, compared"""
        self.script(
            "tar --sort=name --mtime=@0 --owner=0 --group=0 -cf t.tar tree data; for p in 'gzip -n' bzip2 'xz -T4 -3' 'zstd -q -T4 -19';"
            " do $p -c < t.tar > t.packed; sha256sum < t.packed; ${p%% *} -dc < t.packed | cmp - t.tar; done; tar -xOf t.tar | md5sum",
            served="xz",
        )


class Text(Everyday):
    title = "coreutils, awk, sed, grep, find, diff"
    packages = ("coreutils", "gawk", "sed", "grep", "findutils", "diffutils")
    version = ("sort", "--version")

    def test_pipelines(self) -> None:
        """sort with threads and temporary files, join, awk with maps, sed, grep -P, find, diff"""
        self.script(
            "sort --parallel=4 -S 2M -k2,2n -k3 data | md5sum; gawk '{ a[$2] = a[$2] $1; n[$3]++ } END { for (k in n) s += n[k] * length(a[k]); print s }' data;"
            " sed -E 's/([0-9]+) ([0-9]+)/\\2-\\1/; s/text//g' data | sort | uniq -c | sort -rn | head -3; grep -cP '(\\d)\\1{2}' data;"
            " find tree -type f -name 'f*' | sort | xargs md5sum | md5sum; sort data > s; diff data s | wc -l; comm -12 <(head -5000 s) s | wc -l",
            served="sort",
        )


class OpenSSL(Everyday):
    title = "OpenSSL"
    packages = ("openssl",)
    version = ("openssl", "version")

    def test_certificates(self) -> None:
        """keys, certificates, signatures and ciphers of many kinds, verified"""
        self.script(
            "for i in 1 2 3 4; do openssl req -x509 -newkey rsa:2048 -nodes -keyout k$i -out c$i -days 9 -subj /CN=t$i 2>/dev/null;"
            " openssl dgst -sha256 -sign k$i -out s data; openssl x509 -in c$i -pubkey -noout > p; openssl dgst -sha256 -verify p -signature s data; done;"
            " for c in aes-256-cbc chacha20 camellia-128-ctr; do openssl enc -$c -pbkdf2 -S 0011223344556677 -pass pass:x -in data -out e;"
            " sha256sum < e; openssl enc -d -$c -pbkdf2 -S 0011223344556677 -pass pass:x -in e | cmp - data; done",
            served="openssl",
        )


class Rsync(Everyday):
    title = "rsync"
    packages = ("rsync",)
    programs = ("rsync",)
    version = ("rsync", "--version")

    def test_copies(self) -> None:
        """300 files copied, changed and copied again by checksums"""
        self.script(
            "rsync -a tree/ copy/; for i in $(seq 1 5 300); do echo more >> tree/f$i; done; rsync -ac --delete --no-whole-file tree/ copy/;"
            " diff -r tree copy && find copy -type f | sort | xargs cat | md5sum",
            served="rsync",
        )


class Vim(Everyday):
    title = "Vim"
    packages = ("vim-nox",)
    programs = ("vim",)
    version = ("vim", "--version")

    def test_batch(self) -> None:
        """regular expressions, undo, sorting and a script over 200,000 lines"""
        self.script(
            "vim -es -u NONE -N data -c '%s/\\v(\\d+) (\\d+)/\\2 \\1/' -c 'g/97$/m0' -c 'undo' -c 'sort n' -c 'w! o'"
            " -c 'let d = {} | for i in range(60000) | let d[i % 977] = get(d, i % 977, \"\") . i | endfor'"
            " -c 'call writefile([string(len(join(values(d), \",\")))], \"p\")' -c 'qa!' < /dev/null; md5sum < o; cat p",
            served="vim",
        )


class R(Everyday):
    title = "R"
    packages = ("r-base-core",)
    programs = ("Rscript",)
    version = ("R", "--version")

    def test_script(self) -> None:
        """data frames, regressions, sorting, strings, lists, garbage collection"""
        self.script(
            "cat > x.R <<'END'\nset.seed(7); d <- data.frame(a = runif(2e5), b = sample(1e4, 2e5, TRUE)); d$c <- d$a * 3 + rnorm(2e5)\n"
            "print(coef(lm(c ~ a, d))); print(head(aggregate(c ~ b, d, mean), 3)); s <- paste0('k', d$b); print(length(unique(s)))\n"
            "l <- lapply(1:20000, function(i) list(i, as.character(i), rnorm(5))); print(sum(sapply(l, function(x) x[[1]])))\n"
            "for (i in 1:20) { m <- matrix(runif(1e6), 1000); gc() }; print(round(sum(solve(crossprod(m[, 1:200]))), 6))\n"
            "print(nchar(paste(rep(s, 3), collapse = '')))\nEND\nRscript --vanilla x.R",
            served="R",
        )


class Octave(Everyday):
    title = "GNU Octave"
    packages = ("octave",)
    programs = ("octave-cli",)
    version = ("octave-cli", "--version")

    def test_script(self) -> None:
        """matrices, cells, structures, strings, sparse solves"""
        self.script(
            'octave-cli --norc --eval \'rand("seed", 7); a = magic(300); b = a * a; printf("%.6g\\n", trace(b)); c = cell(1, 20000);'
            ' for i = 1:20000, c{i} = repmat("x", 1, mod(i, 50)); end; printf("%d\\n", numel([c{:}])); s = struct();'
            ' for i = 1:3000, s.(sprintf("f%d", i)) = 1:mod(i, 99); end; printf("%d\\n", sum(structfun(@numel, s)));'
            ' e = ones(20000, 1); m = spdiags([e -3*e e], -1:1, 20000, 20000); printf("%.9g\\n", sum(m \\ e)); printf("%.6g\\n", norm(inv(hilb(8))))\'',
            served="octave-cli",
        )


class Gnuplot(Everyday):
    title = "gnuplot"
    packages = ("gnuplot-nox",)
    programs = ("gnuplot",)
    version = ("gnuplot", "--version")

    def test_plots(self) -> None:
        """surfaces, fits and 200,000 points as SVG and text"""
        self.script(
            "gnuplot -e \"set terminal svg; set output 'a.svg'; set isosamples 150; splot sin(x)*cos(y); set output 'b.svg';"
            " plot 'data' using 1:2 every 9 with dots; f(x) = a*x + b; fit f(x) 'data' using 1:2 via a, b; set terminal dumb;"
            " set output 'c.txt'; plot f(x)\" 2> /dev/null; sed 's/<title>.*//' a.svg b.svg c.txt | md5sum",
            served="gnuplot",
        )


class Tmux(Everyday):
    title = "tmux"
    packages = ("tmux",)
    programs = ("tmux",)
    version = ("tmux", "-V")

    def test_windows(self) -> None:
        """20 windows with history, resized and captured"""
        self.script(
            "export TERM=xterm; t='tmux -S sock -f /dev/null'; $t -D & sleep 1; $t new-session -d -x 100 -y 30 'seq 1 3000; sleep 60';"
            ' for i in $(seq 1 20); do $t new-window -d "seq $i 2000; sleep 60"; done; sleep 2;'
            " for i in $(seq 0 20); do $t resize-window -t :$i -x $((60 + i)) -y 40; $t capture-pane -p -S -500 -t :$i | md5sum; done; $t kill-server",
            served="tmux: server",
        )


if __name__ == "__main__":
    unittest.main()
