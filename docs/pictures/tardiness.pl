#!/usr/bin/env perl
# Draws docs/pictures/tardiness.svg from the tables of docs/measured/coop.md:
#
#     docs/pictures/tardiness.pl >docs/pictures/tardiness.svg
#
# Left: the tardiness that 99 of 100 timers stay below. Right: the CPU time that is lost.
use strict;
use warnings;

my $page = do { local (@ARGV, $/) = ($0 =~ s{pictures/[^/]*$}{measured/coop.md}r); <> };

# A number out of the page, or the end: a figure that moved must not be drawn from memory.
sub figure {
    my ($what, $pattern) = @_;
    $page =~ $pattern or die "measured/coop.md has no $what\n";
    return $1;
}

my $many = qr{[\d.]+ / ([\d.]+) / [\d.]+ \|};
my $timerfd = qr{\| in a timerfd[^\n]*\|};
my $advised = qr{\n\| \| hogs' share, useful CPU \|(?:[^|\n]*\|){3} [\d.]+, ([\d.]+) %};
my @bars = (
    ['fair class', figure('fair class', qr/\| fair class \| $many 98/),
        figure('fair class', qr/\| fair class \| [\d.\/ ]+ \| ([\d.]+) % \| 15/), '#888'],
    ['fair class, slices of 0.1 ms', figure('short slices', qr/0\.1 ms \| $many 94/),
        figure('short slices', qr/0\.1 ms \| [\d.\/ ]+ \| ([\d.]+) % \| 10/), '#888'],
    ['coop --implicit, program unchanged',
        figure('timerfd', qr/$timerfd (0\.31) \/ [\d.]+ \| 0\.5/),
        figure('timerfd', qr/$timerfd$advised/), '#2a9d5c'],
    ['coop, program cooperates', figure('coop', qr/\| `coop` \| $many 98/),
        figure('coop', qr/\| `coop` \| [\d.\/ ]+ \| ([\d.]+) % \| 0\.82/), '#2a9d5c'],
);

my ($left, $width, $gap, $height, $top) = (250, 250, 90, 26, 62);
my $most = 8;
my $most_lost = 8;
my $title = 'Eight players beside four programs that compute, one CPU';
my $source = 'Load generator attune-load, deterministic virtual machine, kernel 7.2.13: '
    . 'attune lab run coop-many coop-implicit';
my $right = $left + $width + $gap;
my $whole = $right + 130 + 60;
my $bottom = $top + @bars * $height + 34;
print <<"HEAD";
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $whole $bottom"
     width="$whole" height="$bottom" font-family="sans-serif" font-size="13">
<title>$title</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="22" font-size="15" font-weight="bold">$title</text>
<text x="$left" y="50" fill="#555">how late a timer is served (ms, 99 of 100)</text>
<text x="$right" y="50" fill="#555">CPU time lost</text>
HEAD
for my $row (0 .. $#bars) {
    my ($name, $late, $useful, $colour) = @{$bars[$row]};
    my $y = $top + $row * $height;
    my $base = $y + 15;
    my $lost = sprintf '%.1f', 100 - $useful;
    my $wide = sprintf '%.1f', $late / $most * $width;
    my $wide_lost = sprintf '%.1f', $lost / $most_lost * 130;
    my ($end, $end_lost) = ($left + $wide + 6, $right + $wide_lost + 6);
    my $before = $left - 10;
    print <<"ROW";
<text x="$before" y="$base" text-anchor="end">$name</text>
<rect x="$left" y="$y" width="$wide" height="20" fill="$colour"/>
<text x="$end" y="$base">$late</text>
<rect x="$right" y="$y" width="$wide_lost" height="20" fill="$colour"/>
<text x="$end_lost" y="$base">$lost %</text>
ROW
}
my $foot = $bottom - 10;
print <<"FOOT";
<text x="10" y="$foot" font-size="11" fill="#555">$source</text>
</svg>
FOOT
