# Hashes, regular expressions and sorting.   hashes.pl ROUNDS
use strict;
use warnings;

my $rounds = shift;
my $state = 12345;

sub random {
    my $limit = shift;
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return int($state / 65536) % $limit;
}

sub word { return join '', map { chr(97 + random(26)) } 0 .. 2 + random(8) }

my @stems = map { word() } 1 .. 400;
my $checksum = 0;
for my $round (1 .. $rounds) {
    my $text = join "\n", map {
        "$_: $stems[random(400)]=" . random(1000) . "; $stems[random(400)]=" . random(1000) . " # $stems[random(400)]"
    } 1 .. 4000;

    my (%sum, %index);
    for my $line (split /\n/, $text) {
        my ($number, $rest) = $line =~ /^(\d+):\s*(.*?)\s*#/ or die "hashes.pl: a line was not recognised\n";
        while ($rest =~ /(\w+)=(\d+)/g) {
            $sum{$1} += $2;
            push @{ $index{$1}{ substr $2, 0, 1 } }, { line => $number, value => $2 };
        }
    }
    for my $key (sort { $sum{$b} <=> $sum{$a} || $a cmp $b } keys %sum) {
        my @lists = map { @{ $index{$key}{$_} } } sort keys %{ $index{$key} };
        my @best = sort { $b->{value} <=> $a->{value} || $a->{line} <=> $b->{line} } @lists;
        $checksum = ($checksum * 31 + $best[0]{line} + @best) % 1000000007;
    }
    (my $changed = $text) =~ s/(\w+)=(\d+)/"$2:" . ucfirst $1/ge;
    $checksum = ($checksum + length($changed) + ($changed =~ tr/A-Z//)) % 1000000007;
}
print "checksum $checksum\n";
