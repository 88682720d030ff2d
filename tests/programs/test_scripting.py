"""Interpreters, each on a script in its own language whose output must not differ."""

from __future__ import annotations

import unittest

from programs import ProgramTest

PERL_SCRIPT = r"""
use strict; use warnings; use List::Util qw(sum reduce); use Digest::SHA qw(sha256_hex); use Storable qw(dclone);
my %h; for my $i (1 .. 200000) { push @{$h{$i % 5003}}, "value $i" x ($i % 5 + 1); }
my $copy = dclone(\%h);
my $text = join ',', map { "$_=" . join '|', @{$copy->{$_}} } sort { $a <=> $b } keys %$copy;
(my $changed = $text) =~ s/(\d+)/sprintf "%x", $1/ge;
my @words = sort { $a cmp $b } grep { length > 6 } split /\W+/, $changed;
print length $text, ' ', sha256_hex($changed), ' ', scalar @words, "\n";
for (1 .. 30) { my $pid = fork // die; if (!$pid) { my @a = map { "x" x $_ } 1 .. 2000; exit(@a % 7); } waitpid $pid, 0; print $? >> 8; }
print "\n"; my $big = ''; $big .= chr(65 + $_ % 26) x 997 for 1 .. 20000; print length $big, ' ', sha256_hex($big), "\n";
$SIG{ALRM} = sub { my %x = map { $_ => "s$_" } 1 .. 50; };
use Time::HiRes qw(ualarm); ualarm(2000, 2000); my @l;
for (1 .. 300000) { push @l, [$_, "s" x ($_ % 100)] } ualarm 0; print scalar @l, "\n";
"""

RUBY_SCRIPT = r"""
require 'digest'; require 'json'; require 'set'
GC.stress = false
h = Hash.new { |hash, k| hash[k] = [] }
200_000.times { |i| h[i % 5003] << "value #{i}" * (i % 5 + 1) }
text = JSON.generate(h.sort.to_h); raise unless JSON.parse(text).size == 5003
puts text.size, Digest::SHA256.hexdigest(text.gsub(/\d+/) { |d| d.to_i.to_s(16) })
threads = 8.times.map { |t| Thread.new { (1..20_000).map { |i| (i * t).to_s * 3 }.to_set.size } }
p threads.map(&:value)
GC.compact if GC.respond_to?(:compact)
GC.stress = true; a = (1..300).map { |i| "s" * i }; GC.stress = false; p a.sum(&:size)
10.times { |i| Process.wait(fork { exit((1..1000).map { |x| x.to_s }.size % (i + 3)) }); print $?.exitstatus }
puts; puts (2**20000).to_s.size, (1..400).map { |i| Rational(1, i) }.sum
"""

PHP_SCRIPT = r"""
$h = []; for ($i = 0; $i < 300000; $i++) $h[$i % 5003][] = str_repeat("value $i", $i % 5 + 1);
ksort($h); $text = json_encode($h); if (json_decode($text, true) != $h) exit(3);
echo strlen($text), ' ', hash('sha256', preg_replace_callback('/\d+/', fn($m) => dechex($m[0]), substr($text, 0, 900000))), "\n";
class Node { public $l, $r; } function tree($d) { $n = new Node; if ($d) { $n->l = tree($d - 1); $n->r = tree($d - 1); } return $n; }
function count_nodes($n) { return $n === null ? 0 : 1 + count_nodes($n->l) + count_nodes($n->r); }
for ($i = 0; $i < 8; $i++) echo count_nodes(tree(15)), ' '; echo gc_collect_cycles() >= 0, "\n";
$s = ''; for ($i = 0; $i < 2000000; $i++) $s .= chr(65 + $i % 26); echo strlen($s), md5($s), "\n";
usort($h, fn($a, $b) => strcmp($a[0], $b[0])); echo md5(serialize($h)), "\n";
"""

LUA_SCRIPT = r"""
local h = {} for i = 1, 400000 do local k = i % 5003; h[k] = h[k] or {}; table.insert(h[k], ("value " .. i):rep(i % 5 + 1)) end
local keys = {} for k in pairs(h) do keys[#keys + 1] = k end table.sort(keys)
local parts = {} for _, k in ipairs(keys) do parts[#parts + 1] = k .. '=' .. table.concat(h[k], '|') end
local text = table.concat(parts, ','):gsub('%d+', function(d) return string.format('%x', d) end)
local sum = 0 for i = 1, #text, 7 do sum = (sum * 31 + text:byte(i)) % 4294967291 end print(#text, sum)
collectgarbage('generational') local function tree(d) if d == 0 then return {} end return {tree(d - 1), tree(d - 1)} end
local function count(t) local n = 1 for _, c in ipairs(t) do n = n + count(c) end return n end
for i = 1, 10 do io.write(count(tree(14)), ' ') end collectgarbage('incremental') collectgarbage()
local co = {} for i = 1, 2000 do co[i] = coroutine.wrap(function() local s = '' for j = 1, 50 do s = s .. j coroutine.yield(#s) end end) end
local total = 0 for j = 1, 50 do for i = 1, 2000 do total = total + co[i]() end end print(total)
"""


PERL_THREADS = r"""
use strict; use warnings; use threads; use threads::shared; use Thread::Queue;
my %data = map { $_ => [("text $_") x ($_ % 9 + 1)] } 1 .. 3000;      # each thread gets a copy of all this
my $jobs = Thread::Queue->new(1 .. 400); $jobs->end; my %answers :shared;
my @threads = map { threads->create(sub {
    while (defined(my $n = $jobs->dequeue)) {
        $data{$n} = [map { "$n x $_" x 3 } 1 .. 200]; my $text = join ',', @{$data{$n}}; $text =~ s/(\d+)/$1 + $n/ge;
        lock %answers; $answers{$n} = length($text) . substr $text, -9;
    } return [map { "returned $_" } 1 .. 500] }) } 1 .. 8;
my $returned = 0; $returned += @{$_->join} for @threads;
for my $round (1 .. 25) { $_->join for map { threads->create(sub { my @l = values %data; scalar @l }) } 1 .. 4 }
print "$returned\n", map { "$_ $answers{$_}\n" } sort { $a <=> $b } keys %answers;
"""


class Perl(ProgramTest):
    packages = ("perl",)
    programs = ("perl",)
    version = ("perl", "-e", "print $^V")

    def test_script(self) -> None:
        """hashes, regular expressions, sorting, 30 forks, a string of 20 MB, a signal handler that allocates"""
        self.assertEqual(self.compare(["perl", "-e", PERL_SCRIPT], served="perl").status, 0)

    def test_threads(self) -> None:
        """8 interpreter threads with a queue, then 100 short ones: each copies all data and ends freeing it"""
        result = self.compare(["perl", "-e", PERL_THREADS], served="perl")
        self.assertEqual(result.status, 0, result.stderr[-1000:])
        self.assertEqual(result.stdout.count(b"\n"), 401)


class Ruby(ProgramTest):
    packages = ("ruby",)
    programs = ("ruby",)
    version = ("ruby", "--version")

    def test_script(self) -> None:
        """hashes, JSON, 8 threads, GC.stress, compaction, forks, big numbers"""
        self.assertEqual(self.compare(["ruby", "-e", RUBY_SCRIPT], served="ruby").status, 0)


class PHP(ProgramTest):
    packages = ("php-cli",)
    programs = ("php",)
    version = ("php", "--version")

    def php(self, **zend: str) -> None:
        command = ["env", *[f"{name}={value}" for name, value in zend.items()], "php", "-n"]
        command += ["-d", "memory_limit=-1", "-r", PHP_SCRIPT]
        result = self.compare(command, served="php")
        self.assertEqual(result.status, 0, result.stdout[-500:])

    def test_script(self) -> None:
        """arrays, JSON, trees, strings, sorting; Zend's own allocator on top"""
        self.php()

    def test_script_without_its_own_allocator(self) -> None:
        """the same with USE_ZEND_ALLOC=0: each request comes to malloc"""
        self.php(USE_ZEND_ALLOC="0")


class Lua(ProgramTest):
    packages = ("lua5.4",)
    programs = ("lua5.4",)
    version = ("lua5.4", "-v")

    def test_script(self) -> None:
        """tables, strings, trees under both collectors, 2,000 coroutines"""
        self.assertEqual(self.compare(["lua5.4", "-e", LUA_SCRIPT], served="lua5.4").status, 0)


if __name__ == "__main__":
    unittest.main()
