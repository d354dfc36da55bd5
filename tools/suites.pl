#!/usr/bin/env perl
# Runs all test suites of the workspace, two at a time, prints what each said when it has ended, and
# at last the slowest. `cargo test` runs one after the other: while one waits for a virtual machine,
# the other CPU would idle.
#
#     tools/suites.pl [--only PATTERN] [cargo's arguments, such as --locked]
#
# A test of real time can fail because the machine stood still for seconds. So up to three tests
# that fail run once more at the end, alone; the report names them, for each such test is one to
# mend.
#
# PATTERN is a regular expression for the names of suites, such as '^attune-coop/'. A suite is a
# program of cargo's; the examples in comments together are one, too, and a short run of each fuzz
# target.
use strict;
use warnings;
use Cwd qw(getcwd);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time);

$| = 1;
my $only = @ARGV && $ARGV[0] eq "--only" ? (splice @ARGV, 0, 2)[1] : "";
my @flags = @ARGV;
my $said = tempdir(CLEANUP => 1);
# Failed tests that run once more; more than these are no accident.
my $most_again = 3;

# These take longest, so they begin first.
my @first =
    qw(attune/kernel attune/runs attune/cli attune/library attune/system attune-vm/machine fuzz
    attune-daemon/tuning);
# These reserve CPU time, of which this machine has only so much: never two of them at a time.
my %reserves = map { $_ => 1 } qw(attune/cli attune-daemon/tuning attune-load/workloads);

my @examples = (qw(cargo test --workspace --doc), @flags);
my @fuzz = qw(make --no-print-directory fuzz);
my @suites = (
    built(),
    { name => "examples in comments", run => \@examples, folder => getcwd() },
    { name => "fuzz", run => \@fuzz, folder => getcwd() },
);
@suites = grep { $_->{name} =~ /$only/ } @suites;
my %rank = map { $first[$_] => $_ } 0 .. $#first;
@suites = sort { ($rank{ $a->{name} } // @first) <=> ($rank{ $b->{name} } // @first) } @suites;

my ($started, %running, @ended);
my ($begun, $spent_before) = (time, (times)[2] + (times)[3]);
while (@suites || %running) {
    while (keys %running < 2 && defined(my $next = next_suite())) {
        start(splice @suites, $next, 1);
    }
    my $pid = waitpid(-1, 0);
    my ($status, $spent) = ($?, (times)[2] + (times)[3]);
    my $suite = delete $running{$pid} or next;
    $suite->{cpu} = $spent - $spent_before;
    $spent_before = $spent;
    finish($suite, $status);
}
my @passed_alone = try_alone();
report();
exit(grep({ $_->{failed} } @ended) ? 1 : 0);

# Builds the workspace's tests and returns a suite for each program. A warning is a failure.
sub built {
    open my $messages, "-|", qw(cargo test --workspace --no-run --message-format json), @flags
        or die "cargo: $!\n";
    my (@built, %complaints);
    while (my $line = <$messages>) {
        my $message = eval { decode_json($line) } or next;
        my $complaint = $message->{message}{rendered};
        print STDERR $complaint if defined $complaint && !$complaints{$complaint}++;
        next unless $message->{executable} && $message->{profile}{test};
        my $folder = dirname($message->{manifest_path});
        # The package's name stands there only where it is not the folder's.
        my $package = $message->{package_id} =~ m{#([^@]+)@} ? $1 : basename($folder);
        my $libraries = dirname($message->{executable});
        push @built, {
            name => "$package/$message->{target}{name}",
            run => [$message->{executable}],
            folder => $folder,
            libraries => join(":", $libraries, dirname($libraries)),
        };
    }
    close $messages or die "the tests do not build\n";
    die "the compiler warns\n" if %complaints;
    return @built;
}

# The place of a suite that may begin now.
sub next_suite {
    my $taken = grep { $reserves{ $_->{name} } } values %running;
    my @may = grep { !($taken && $reserves{ $suites[$_]{name} }) } 0 .. $#suites;
    return $may[0];
}

sub start {
    my ($suite) = @_;
    $suite->{begun} = time;
    $suite->{said} = "$said/" . ++$started;
    print "begins: $suite->{name}\n";
    $running{ launch($suite) } = $suite;
}

# Runs a suite's program, with more arguments perhaps; its process.
sub launch {
    my ($suite, @arguments) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        chdir $suite->{folder} or die "$suite->{folder}: $!\n";
        if ($suite->{libraries}) {
            # As cargo does.
            $ENV{CARGO_MANIFEST_DIR} = $suite->{folder};
            $ENV{LD_LIBRARY_PATH} = join ":", $suite->{libraries}, $ENV{LD_LIBRARY_PATH} // ();
        }
        open STDOUT, ">", $suite->{said} or die "$suite->{said}: $!\n";
        open STDERR, ">&", \*STDOUT or die "standard error: $!\n";
        exec @{ $suite->{run} }, @arguments or die "$suite->{run}[0]: $!\n";
    }
    return $pid;
}

sub finish {
    my ($suite, $status) = @_;
    $suite->{seconds} = time - $suite->{begun};
    $suite->{failed} = $status != 0;
    push @ended, $suite;
    printf "\n== %s, %.1f s\n", $suite->{name}, $suite->{seconds};
    my $text = said($suite);
    print $text;
    # The last list of a suite of Rust's that ran to its end.
    my ($failures) = $text =~ /.*^failures:\n((?:    \S+\n)+)\ntest result: FAILED/ms;
    $suite->{failures} = [ ($failures // "") =~ /(\S+)/g ];
}

sub said {
    my ($suite) = @_;
    open my $lines, "<", $suite->{said} or die "$suite->{said}: $!\n";
    local $/;
    return <$lines> // "";
}

# Runs failed tests once more, alone, if they are few and the suites name them. A suite whose tests
# pass now has not failed. The names of the tests that passed.
sub try_alone {
    my @failed = grep { $_->{failed} } @ended;
    my @names = map { @{ $_->{failures} } } @failed;
    return () if @names > $most_again || grep { !@{ $_->{failures} } } @failed;
    my @passed;
    for my $suite (@failed) {
        print "\nonce more, alone: $suite->{name}: @{ $suite->{failures} }\n";
        waitpid launch($suite, "--exact", @{ $suite->{failures} }), 0;
        $suite->{failed} = $? != 0;
        print said($suite);
        push @passed, map { "$suite->{name} $_" } @{ $suite->{failures} } if !$suite->{failed};
    }
    return @passed;
}

sub report {
    my @slowest = sort { $b->{seconds} <=> $a->{seconds} } @ended;
    printf "\n%d suites in %.0f s. The slowest, in seconds, and their CPU time:\n",
        scalar @ended, time - $begun;
    printf "%9.1f %9.1f  %s\n", @$_{qw(seconds cpu name)} for grep { defined } @slowest[0 .. 19];
    print "passed alone, and failed beside other suites: $_\n" for @passed_alone;
    print "FAILED: $_->{name}\n" for grep { $_->{failed} } @ended;
}
