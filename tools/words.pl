#!/usr/bin/env perl
# Finds what the style guide in CONTRIBUTING.md forbids and a program can see:
#
#     tools/words.pl [FILE..]     these files, or all under version control; ends 1 on a finding
#
#  - a bare "who", "whom" or "whoever": one that begins a sentence or a clause and follows no noun
#  - a sentence that begins with "Of", "Nor" or "For whom"
#  - a line of more than 100 columns (tables, addresses and recorded output aside)
#
# It reads pages, comments and strings. Perl and not awk: columns are characters, and Debian's awk
# counts bytes.
use strict;
use warnings;
use utf8;
use open qw(:std :utf8);

my $COLUMNS = 100;
# Words after which "who" stands for a person or thread that nobody has named.
my $BEFORE = 'and|but|so|or|for|that|of|by|to|when|if|while|as|says?|tells?|told|knows?|asks?|with'
    . '|from|because|since|where|than|then|is|are|was|decides?|only|not|in|on|until|before|after'
    . '|about|carr(?:y|ies)|gives?|matters?|measures?|meets?|names?';
# Lines that stay wide, each by its beginning, and why.
my %WIDE = (
    # The snapshot of the test shows this text, and places in it.
    'language/tests/lower/ir.rs' => '    data { threadref current; queue RQ; pqueue sleeping inc',
);
my $found = 0;

sub report {
    my ($file, $line, $text) = @_;
    print "$file:$line: $text\n";
    $found++;
}

# Judges one piece of prose: a list of [line number, text] that belong together.
sub judge {
    my ($file, @pieces) = @_;
    my ($text, @starts) = ('');
    for my $piece (@pieces) {
        push @starts, [length $text, $piece->[0]];
        $text .= "$piece->[1] ";
    }
    my $line_at = sub {
        my ($position, $line) = (shift, 0);
        for (@starts) { $line = $_->[1] if $_->[0] <= $position }
        return $line;
    };
    my $begin = qr/(?:^|[.!?:;]["'*)]*\s+|\()["'*]*/;
    while ($text =~ /$begin\K(Who(?:m|ever)?|who(?:m|ever)?|Of|Nor|For whom)\s(?=[a-z"`])/g) {
        my ($word, $position) = ($1, $-[1]);
        my ($sentence) = substr($text, $position) =~ /^([^.!?]*[.!?]?)/;
        next if $sentence =~ /\?$/;
        report($file, $line_at->($position), 'begins with: ' . substr($sentence, 0, 60));
    }
    while ($text =~ /(?:,|\b(?:$BEFORE))\s+(?:who|whom|whoever)\s(?=[a-z])/gi) {
        report($file, $line_at->($+[0] - 2), 'bare: ' . substr($text, $-[0], 60));
    }
}

# Pages: paragraphs, list items, headings and the cells of tables.
sub read_page {
    my ($file, @lines) = @_;
    my ($fence, @open) = (0);
    my $end = sub { judge($file, @open) if @open; @open = () };
    for my $index (0 .. $#lines) {
        my ($number, $line) = ($index + 1, $lines[$index]);
        my $block = $line =~ /^(?: {4}|\t)/ && !@open;
        if ($line =~ /^```/) { $fence = !$fence; $end->() }
        elsif ($fence || $block || $line !~ /\S/) { $end->() }
        elsif ($line =~ /^\s*\|/) {
            $end->();
            judge($file, [$number, s/^\s+|\s+$//gr]) for split /\|/, $line;
        }
        else {
            $end->() if $line =~ /^\s*(?:[-*]|\d+\.)\s|^#/;
            push @open, [$number, $line =~ s/^\s*(?:(?:[-*]|\d+\.|#+|>)\s+)?//r];
        }
    }
    $end->();
}

# C, Rust and schedulers: runs of comments, and each string.
sub read_code {
    my ($file, $text) = @_;
    my ($number, $last, @open) = (1, 0);
    my $end = sub { judge($file, @open) if @open; @open = () };
    my $piece = qr{
        (//[^\n]*|/\*.*?\*/)                # a comment
        | (?:r(\#*)"(.*?)"\g2)              # a raw string
        | "((?:[^"\\]|\\.)*)"               # a string
        | '(?:[^'\\\n]|\\.)'                # a character
    }xs;
    while ($text =~ /$piece/g) {
        my ($comment, $raw, $string, $begin, $after) = ($1, $3, $4, $-[0], $+[0]);
        $number += substr($text, $last, $begin - $last) =~ tr/\n//;
        $end->() if substr($text, $last, $begin - $last) =~ /\S|\n\s*\n/;
        $last = $begin;
        $end->() unless defined $comment;
        my $line = $number;
        for (split /\n/, $comment // $raw // $string // '') {
            my $prose = defined $comment ? s{^\s*(?:///?!?|//!|/\*+|\*(?!/))\s?|\s*\*/$}{}gr : $_;
            $prose =~ s/^\s+|\\n|\s*\\$//g;
            if ($prose =~ /\S/) { push @open, [$line, $prose] } else { $end->() }
            $line++;
        }
        $end->() unless defined $comment;
        $number += substr($text, $begin, $after - $begin) =~ tr/\n//;
        $last = $after;
    }
    $end->();
}

# Shell, TOML, make: runs of comments.
sub read_script {
    my ($file, @lines) = @_;
    my @open;
    for my $index (0 .. $#lines) {
        if ($lines[$index] =~ /^\s*#+!?\s?(.*\S)/) { push @open, [$index + 1, $1]; next }
        judge($file, @open) if @open;
        @open = ();
    }
    judge($file, @open) if @open;
}

for my $file (@ARGV ? @ARGV : split /\n/, qx(git ls-files)) {
    next if -l $file || !-f $file || $file =~ m{Cargo\.lock$|/(seeds|corpus|snapshots|golden)/};
    next if $file !~ /\.(md|rs|c|h|sched|subsched|sh|pl|toml|py)$/ && $file !~ m{(^|/)Makefile$};
    open my $in, '<', $file or die "$file: $!\n";
    my @lines = <$in>;
    close $in;
    chomp @lines;
    for my $index (0 .. $#lines) {
        my $line = $lines[$index];
        next if length $line <= $COLUMNS || $line =~ m{://|^!\[} || $file =~ /\.md$/ && $line =~ /^\s*\|/;
        next if exists $WIDE{$file} && index($line, $WIDE{$file}) == 0;
        report($file, $index + 1, length($line) . ' columns');
    }
    if ($file =~ /\.md$/) { read_page($file, @lines) }
    elsif ($file =~ /\.(rs|c|h|sched|subsched)$/) { read_code($file, join("\n", @lines)) }
    else { read_script($file, @lines) }
}
print STDERR "$found to mend\n" if $found;
exit($found ? 1 : 0);
