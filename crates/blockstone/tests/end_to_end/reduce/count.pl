#!/usr/bin/perl
# Counts the blocks of files as `blockstone reduce` does, and has no line in common with it: blocks
# are cut by `read`, and a content is the block itself, not a fingerprint of it. By hand:
#
#     perl count.pl 4096,8192,16384,32768 0,512,4096 FILE…
#
# prints a line for each grid: block size, offset, blocks, blocks of zeros, unique blocks,
# duplicates in the same file, duplicates across files, ratio. It takes as much memory as the
# contents of one grid.
use strict;
use warnings;

my ($sizes, $offsets, @files) = @ARGV;
for my $size (split /,/, $sizes) {
    count($size, $_) for split /,/, $offsets;
}

sub count {
    my ($size, $offset) = @_;
    my ($blocks, $zeros, $unique, $same, $cross) = (0, 0, 0, 0, 0);
    my $zero = "\0" x $size;
    my %holder;
    for my $file (0 .. $#files) {
        open my $in, '<:raw', $files[$file] or die "$files[$file]: $!\n";
        seek $in, $offset, 0 or die "$files[$file]: $!\n";
        while (read $in, my $block, $size) {
            $block .= "\0" x ($size - length $block);
            $blocks++;
            if ($block eq $zero) { $zeros++; next }
            # Files come one after the other: a content whose last holder is another file is new
            # to this one.
            my $last = $holder{$block};
            if (!defined $last) { $unique++ }
            elsif ($last == $file) { $same++ }
            else { $cross++ }
            $holder{$block} = $file;
        }
    }
    my $contents = $unique + ($zeros > 0 ? 1 : 0);
    my $ratio = $contents ? sprintf('%.17g', $blocks / $contents) : 'none';
    print join(' ', $size, $offset, $blocks, $zeros, $unique, $same, $cross, $ratio), "\n";
}
