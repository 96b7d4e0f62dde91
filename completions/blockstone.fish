# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_blockstone_global_optspecs
    string join \n json q/quiet color= runs-dir= h/help V/version
end

function __fish_blockstone_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_blockstone_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_blockstone_using_subcommand
    set -l cmd (__fish_blockstone_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c blockstone -n "__fish_blockstone_needs_command" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_needs_command" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_needs_command" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_needs_command" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_needs_command" -s V -l version -d 'Print version'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "calibrate" -d 'Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "cal" -d 'Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "run" -d 'Run the SLOB method on a miniature database instance: what a database gets from a storage'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "teardown" -d 'Remove what a killed run left in a database server'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "flash" -d 'Simulate a flash device: what garbage collection does to writes and reads, and when'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "reduce" -d 'Count how far an array would shrink files: deduplication, compression, and what stops them'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "watch" -d 'Watch a host: processors, disks, memory, network, databases\' processes; live, recorded, replayed'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "report" -d 'Show a recording again, or write its HTML report anew'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "compare" -d 'Compare two recordings: faster, slower, or difference not established'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "runs" -d 'List the recordings'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "man" -d 'Write the man pages'
complete -c blockstone -n "__fish_blockstone_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l block-size -d 'Database block size' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l size -d 'Size of the test file [default: 4G, or a quarter of the free space, or what fits the time]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l max-latency -d 'Latency limit of the knee (p99) and of `max_iops` (mean)' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l rate -d 'Also measure random reads at this fixed rate a second, whatever the storage does' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l arrivals -d 'Gaps between the operations of --rate' -r -f -a "poisson\t'Exponential gaps: independent users'
fixed\t'Constant gaps'"
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l file -d 'Reuse a test file that an earlier run kept' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l destroy -d 'Name a block device a second time, to allow its content to be destroyed' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l out -d 'Write the recording to this directory (new or empty)' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l link-mbps -d 'Speed of the link to the storage in MB/s, where the kernel cannot know it' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l seed -d 'Seed of all random choices [default: drawn, and written to the manifest]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l require -d 'End with exit code 4 unless these capabilities are there' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l quick -d 'Finish within 20 s: fewer points, shorter windows'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l full -d 'Three interleaved rounds with longer windows (about 6 minutes)'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l matrix -d 'Also measure small and large reads together, as Orion\'s matrix (adds about 20 s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l read-only -d 'Leave out everything that writes (for a block device whose content is needed)'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l buffered -d 'Go through the page cache, to see what it does to the numbers'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l keep -d 'Keep the test file for --file'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand calibrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l block-size -d 'Database block size' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l size -d 'Size of the test file [default: 4G, or a quarter of the free space, or what fits the time]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l max-latency -d 'Latency limit of the knee (p99) and of `max_iops` (mean)' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l rate -d 'Also measure random reads at this fixed rate a second, whatever the storage does' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l arrivals -d 'Gaps between the operations of --rate' -r -f -a "poisson\t'Exponential gaps: independent users'
fixed\t'Constant gaps'"
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l file -d 'Reuse a test file that an earlier run kept' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l destroy -d 'Name a block device a second time, to allow its content to be destroyed' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l out -d 'Write the recording to this directory (new or empty)' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l link-mbps -d 'Speed of the link to the storage in MB/s, where the kernel cannot know it' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l seed -d 'Seed of all random choices [default: drawn, and written to the manifest]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l require -d 'End with exit code 4 unless these capabilities are there' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l quick -d 'Finish within 20 s: fewer points, shorter windows'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l full -d 'Three interleaved rounds with longer windows (about 6 minutes)'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l matrix -d 'Also measure small and large reads together, as Orion\'s matrix (adds about 20 s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l read-only -d 'Leave out everything that writes (for a block device whose content is needed)'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l buffered -d 'Go through the page cache, to see what it does to the numbers'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l keep -d 'Keep the test file for --file'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand cal" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l conf -d 'Read settings from a slob.conf or pgio.conf; options given here go before it' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l profile -d 'What the sessions do' -r -f -a "slob\t'Select and update rows, as SLOB does'
scan\t'Scan one table past the buffer cache, with every size of read and number of sessions'"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l multiblock -d 'Blocks of a read, for --profile scan [default: 4,8,16 and the most that a read takes]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l parallel -d 'Sessions that share the scan, for --profile scan [default: 1,16]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l slots -d 'Reads that each session keeps outstanding, for --profile scan [default: 2]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l noise -d 'Measure twice, the second time beside N looping writers of durable 128K, each in an area of its own, as log writers of other databases are [default N: 2]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l schemas -d 'Schemas, each with a table of its own [default: 4]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l threads -d 'Sessions on each schema [default: 4]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l sessions -d 'Sessions over all schemas, in place of --threads' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l readers -d 'Sessions that only select, each on its own schema' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l writers -d 'Sessions that only update, each on its own schema' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l scale -d 'Size of a schema, or its number of blocks [default: 256M, or less where there are many or little is free]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l work-unit -d 'Rows that a select visits; each is one block [default: 64]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l update-work-unit -d 'Rows that an update changes [default: the work unit]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l update-pct -d 'Of 100 operations, how many update: any number from 0 to 100 [default: 10]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l scan-pct -d 'Of 100 selects, how many scan a second table [default: 0]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l scan-size -d 'Size of that table, or its number of blocks [default: 1M]; with --profile scan the size of the one table that all sessions share [default: 1G, or less where little is free]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l redo-stress -d 'What an update changes: two columns or all nineteen [default: lite]' -r -f -a "lite\t''
heavy\t''"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l obfuscate -d 'The part of each row that does not compress, 0 to 1 [default: 1]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l hotspot -d 'A hot range: 8M@16M/3 sends one of 3 operations to 8 MiB from 16 MiB on' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l hot-schema -d 'Send one of N operations to the first schema' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l think -d 'Pause after one of N operations, as in 100ms..500ms/10' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l rate -d 'Start operations at this rate a second over all sessions, whatever the storage does' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l run-time -d 'How long each window is; a warm-up of at most half as long comes before [default: 30s; 15s with --noise; 4s with --profile scan]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l loops -d 'Stop after so many operations a session instead' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l seed -d 'Seed of all choices and data [default: drawn, and written to the manifest]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l target -d 'What the workload is aimed at' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l pragma -d 'Set a pragma of SQLite on each connection' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l pg-conf -d 'Start the private PostgreSQL cluster with this setting' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l pg-bin -d 'Where the programs of PostgreSQL are [default: the highest version in the usual places]' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l mariadb-conf -d 'Start the private MariaDB server with this setting' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l mariadb-bin -d 'Where the programs of MariaDB are [default: the usual places]' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l block-size -d 'Database block size: 4K to 32K' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l cache -d 'Buffer cache' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l redundancy -d 'Copies of every block: 1, 2 or 3' -r -f -a "external\t''
normal\t''
high\t''"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l allocation-unit -d 'Allocation unit of the disk group: 1M or 4M' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l torn-protection -d 'What protects blocks against writes that were cut off' -r -f -a "full-page\t''
double-write\t''
none\t''"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l redo-size -d 'Size of each of the three redo logs [default: a sixteenth of the data, 8M to 256M]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l database-writers -d 'Database writers' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l destroy -d 'Name a block device a second time, to allow its content to be destroyed' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l failure-group -d 'Disks that fail together; they need not be named as PATH again [default: each by itself]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l matrix -d 'Run at every combination of settings, as in update=0,20 sessions=1,8,64 target=instance,postgres:scratch; PATH goes before it' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l repeat -d 'Run each combination of --matrix so many times, interleaved' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l out -d 'Write the recording to this directory (new or empty)' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l require -d 'End with exit code 4 unless these capabilities are there' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l keep -d 'Keep the files; named as PATH they are used again, without loading'
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l awr-info -d 'Print only SLOB\'s `awr_info` columns, heading and values'
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand teardown" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand teardown" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand teardown" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand teardown" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand teardown" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "sim" -d 'Simulate one device under one workload, from full to steady state'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "sweep" -d 'Simulate write amplification over spare, policies and block sizes, beside the formulas'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "cliff" -d 'Say when the write cliff comes, and what is left behind it, by formula'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "fit" -d 'Read spare and write amplification of a real drive from a measured curve'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "life" -d 'Say how many years a device lives'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "explain" -d 'Show on five blocks of ten pages why flash collects garbage'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and not __fish_seen_subcommand_from sim sweep cliff fit life explain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l preset -d 'Start from this device; other options change it' -r -f -a "mlc\t'accelerator with two bits per cell, 400 of 576 GiB visible'
slc\t'accelerator with one bit per cell, 96 of 128 GiB visible'
tlc\t'drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)'
qlc\t'drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l raw -d 'All flash there is' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l visible -d 'What the host sees' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l format-level -d 'Over-provisioning in percent, in place of --visible: 44 leaves 400 of 576 visible' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l page-size -d 'A page: what is mapped, read and programmed at once' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l pages-per-block -d 'Pages of a block of one plane' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l channels -d 'Channels' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l dies -d 'Dies behind each channel' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l planes -d 'Planes of a die that work in step' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l read-time -d 'Read of a page' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l program-times -d 'Program times of the page types, the fast one first, as in 300us,2.5ms' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l erase-time -d 'Erase of a block' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l channel-rate -d 'Bytes a second of a channel; without it channels are never the limit' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l suspend -d 'What operations a read interrupts' -r -f -a "none\t'None: a read waits for all that came before it'
erase\t'Erases'
both\t'Erases and programs'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l policy -d 'How victims are chosen: greedy, fifo, random, cost-benefit or d=N' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l reserve -d 'Free blocks a die that only collection may use' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l collect -d 'Whether a write waits for a whole block, or moves are spread over writes' -r -f -a "atomic\t'A write waits for a whole block'
spread\t'A few moves after each write'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l background -d 'Collect on idle dies until so many percent of the blocks are free' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l idle-after -d 'For how long a die has to be idle before that' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l placement -d 'Where the parts of a workload go' -r -f -a "mixed\t'Into the same open blocks'
frontiers\t'Into open blocks of their own, with common spare'
pools\t'Into blocks of their own, with spare of their own'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l fast-blocks -d 'Percent of the blocks that take writes in fast pages only and are folded later' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l levelling -d 'Move data out of blocks that are so many erases behind the most worn one' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l bad-blocks -d 'Percent of the blocks that are bad from the beginning' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l wear-out -d 'P/E cycles that a block endures before it is retired [default: blocks do not wear out]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l workload -d 'uniform, sequential, zipf=0.99, hot-cold=20/80, oltp, lsm, or parts with their share of the writes, as in redo=20+datafile=70+undo=10' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l reads -d 'Percent of the requests that read' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l io-size -d 'Size of a request [default: a page]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l queue-depth -d 'Requests under way' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l rate -d 'Requests a second, whatever the device does, in place of --queue-depth' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l phase -d 'Phases in turn: 8min@2000 at 2,000 requests a second, 30s@max as fast as it goes, 1s@0 idle' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l trace -d 'Replay a trace in place of the workload, or the rates of a recording' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l trace-format -d 'Format of the trace: msr, blkparse, fio or disksim [default: recognised]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l drive-fills -d 'Visible capacities to write' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l run-time -d 'Stop after so much time of the device' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l scale -d 'Simulate one over this part of every die\'s blocks [default: what takes seconds]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l engine -d 'How pages are kept track of' -r -f -a "exact\t'Mapping tables'
counts\t'Valid counts, where pages are exchangeable'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l html -d 'Write an HTML page to this file (`-` for standard output)' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l seed -d 'Seed of all choices: the same gives the same bytes' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l separate-moves -d 'Give what is moved open blocks of its own'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l empty -d 'Begin with an empty device rather than a full one'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l against-active -d 'Also simulate it without background collection, to be seen beside'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l preset -d 'Start from this device; other options change it' -r -f -a "mlc\t'accelerator with two bits per cell, 400 of 576 GiB visible'
slc\t'accelerator with one bit per cell, 96 of 128 GiB visible'
tlc\t'drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)'
qlc\t'drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l raw -d 'All flash there is' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l visible -d 'What the host sees' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l format-level -d 'Over-provisioning in percent, in place of --visible: 44 leaves 400 of 576 visible' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l page-size -d 'A page: what is mapped, read and programmed at once' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l pages-per-block -d 'Pages of a block of one plane' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l channels -d 'Channels' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l dies -d 'Dies behind each channel' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l planes -d 'Planes of a die that work in step' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l read-time -d 'Read of a page' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l program-times -d 'Program times of the page types, the fast one first, as in 300us,2.5ms' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l erase-time -d 'Erase of a block' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l channel-rate -d 'Bytes a second of a channel; without it channels are never the limit' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l suspend -d 'What operations a read interrupts' -r -f -a "none\t'None: a read waits for all that came before it'
erase\t'Erases'
both\t'Erases and programs'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l workload -d 'What is written, as in flash sim' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l seed -d 'Seed of all choices: the same gives the same bytes' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from sweep" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l preset -d 'Start from this device; other options change it' -r -f -a "mlc\t'accelerator with two bits per cell, 400 of 576 GiB visible'
slc\t'accelerator with one bit per cell, 96 of 128 GiB visible'
tlc\t'drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)'
qlc\t'drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l raw -d 'All flash there is' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l visible -d 'What the host sees' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l format-level -d 'Over-provisioning in percent, in place of --visible: 44 leaves 400 of 576 visible' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l page-size -d 'A page: what is mapped, read and programmed at once' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l pages-per-block -d 'Pages of a block of one plane' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l channels -d 'Channels' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l dies -d 'Dies behind each channel' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l planes -d 'Planes of a die that work in step' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l read-time -d 'Read of a page' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l program-times -d 'Program times of the page types, the fast one first, as in 300us,2.5ms' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l erase-time -d 'Erase of a block' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l channel-rate -d 'Bytes a second of a channel; without it channels are never the limit' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l suspend -d 'What operations a read interrupts' -r -f -a "none\t'None: a read waits for all that came before it'
erase\t'Erases'
both\t'Erases and programs'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l policy -d 'How victims are chosen: greedy, fifo, random, cost-benefit or d=N' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l reserve -d 'Free blocks a die that only collection may use' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l collect -d 'Whether a write waits for a whole block, or moves are spread over writes' -r -f -a "atomic\t'A write waits for a whole block'
spread\t'A few moves after each write'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l background -d 'Collect on idle dies until so many percent of the blocks are free' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l idle-after -d 'For how long a die has to be idle before that' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l placement -d 'Where the parts of a workload go' -r -f -a "mixed\t'Into the same open blocks'
frontiers\t'Into open blocks of their own, with common spare'
pools\t'Into blocks of their own, with spare of their own'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l fast-blocks -d 'Percent of the blocks that take writes in fast pages only and are folded later' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l levelling -d 'Move data out of blocks that are so many erases behind the most worn one' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l bad-blocks -d 'Percent of the blocks that are bad from the beginning' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l wear-out -d 'P/E cycles that a block endures before it is retired [default: blocks do not wear out]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l write-rate -d 'Random overwrites, in bytes a second' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l separate-moves -d 'Give what is moved open blocks of its own'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from cliff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l io-size -d 'Size of an I/O of an IOPS log without one' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l preset -d 'Start from this device; other options change it' -r -f -a "mlc\t'accelerator with two bits per cell, 400 of 576 GiB visible'
slc\t'accelerator with one bit per cell, 96 of 128 GiB visible'
tlc\t'drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)'
qlc\t'drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l raw -d 'All flash there is' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l visible -d 'What the host sees' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l format-level -d 'Over-provisioning in percent, in place of --visible: 44 leaves 400 of 576 visible' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l page-size -d 'A page: what is mapped, read and programmed at once' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l pages-per-block -d 'Pages of a block of one plane' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l channels -d 'Channels' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l dies -d 'Dies behind each channel' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l planes -d 'Planes of a die that work in step' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l read-time -d 'Read of a page' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l program-times -d 'Program times of the page types, the fast one first, as in 300us,2.5ms' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l erase-time -d 'Erase of a block' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l channel-rate -d 'Bytes a second of a channel; without it channels are never the limit' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l suspend -d 'What operations a read interrupts' -r -f -a "none\t'None: a read waits for all that came before it'
erase\t'Erases'
both\t'Erases and programs'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from fit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l preset -d 'Start from this device; other options change it' -r -f -a "mlc\t'accelerator with two bits per cell, 400 of 576 GiB visible'
slc\t'accelerator with one bit per cell, 96 of 128 GiB visible'
tlc\t'drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)'
qlc\t'drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l raw -d 'All flash there is' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l visible -d 'What the host sees' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l format-level -d 'Over-provisioning in percent, in place of --visible: 44 leaves 400 of 576 visible' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l page-size -d 'A page: what is mapped, read and programmed at once' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l pages-per-block -d 'Pages of a block of one plane' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l channels -d 'Channels' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l dies -d 'Dies behind each channel' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l planes -d 'Planes of a die that work in step' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l read-time -d 'Read of a page' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l program-times -d 'Program times of the page types, the fast one first, as in 300us,2.5ms' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l erase-time -d 'Erase of a block' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l channel-rate -d 'Bytes a second of a channel; without it channels are never the limit' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l suspend -d 'What operations a read interrupts' -r -f -a "none\t'None: a read waits for all that came before it'
erase\t'Erases'
both\t'Erases and programs'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l policy -d 'How victims are chosen: greedy, fifo, random, cost-benefit or d=N' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l reserve -d 'Free blocks a die that only collection may use' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l collect -d 'Whether a write waits for a whole block, or moves are spread over writes' -r -f -a "atomic\t'A write waits for a whole block'
spread\t'A few moves after each write'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l background -d 'Collect on idle dies until so many percent of the blocks are free' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l idle-after -d 'For how long a die has to be idle before that' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l placement -d 'Where the parts of a workload go' -r -f -a "mixed\t'Into the same open blocks'
frontiers\t'Into open blocks of their own, with common spare'
pools\t'Into blocks of their own, with spare of their own'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l fast-blocks -d 'Percent of the blocks that take writes in fast pages only and are folded later' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l levelling -d 'Move data out of blocks that are so many erases behind the most worn one' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l bad-blocks -d 'Percent of the blocks that are bad from the beginning' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l wear-out -d 'P/E cycles that a block endures before it is retired [default: blocks do not wear out]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l write-rate -d 'What the host writes, in bytes a second' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l wa -d 'Write amplification [default: by formula, for uniform random writes]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l endurance -d 'P/E cycles that a block endures [default: the preset\'s]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l separate-moves -d 'Give what is moved open blocks of its own'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from life" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from explain" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from explain" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from explain" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from explain" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "sim" -d 'Simulate one device under one workload, from full to steady state'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "sweep" -d 'Simulate write amplification over spare, policies and block sizes, beside the formulas'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "cliff" -d 'Say when the write cliff comes, and what is left behind it, by formula'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "fit" -d 'Read spare and write amplification of a real drive from a measured curve'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "life" -d 'Say how many years a device lives'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Show on five blocks of ten pages why flash collects garbage'
complete -c blockstone -n "__fish_blockstone_using_subcommand flash; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l block-size -d 'Sizes of blocks to count; the model\'s is always among them' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l offset -d 'Where the first block of a file begins, in bytes' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l model -d 'The array that would store them: generic, vdo, xtremio, or a TOML file' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l codec -d 'Compressors to compare, at most 4; the model\'s is always among them' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l compress -d 'Which contents are compressed' -r -f -a "sample\t'All while they are few, then a share of them'
every\t'All'
not\t'None'"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l memory -d 'Memory to use; what does not fit is estimated from a share of all contents' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l rate -d 'Read at most so many bytes a second, as 200M' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l threads -d 'Threads that read, hash and compress [default: one a processor, at least 8]' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l save -d 'Save the scan in this directory, while it runs and at its end' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l save-every -d 'How often to save, at most' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l resume -d 'Go on with a saved scan that did not come to its end; what is counted is what it was' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l html -d 'Write an HTML page with charts to this file (`-` for standard output)' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l generate -d 'Make a data set for tests and demonstrations in a directory that does not exist yet' -r -f -a "oracle-like\t''
oracle-loaded\t''
pg-like\t''
slob\t''
random\t''
zeros\t''
text\t''
mixed\t''
shifted\t''"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l files -d 'Files of the data set' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l size -d 'Size of each of them' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l seed -d 'Seed of their content' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l no-shifts -d 'Do not look for copies that lie between blocks'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l no-headers -d 'Do not look for headers of database pages'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l buffered -d 'Read through the page cache instead of past it'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l merge -d 'Count saved scans together, as if one array stored all their files'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand reduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l interval -d 'Time between two looks' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l for -d 'End after this time' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l db -d 'Also watch this database: `postgres://user@host/database`, `mysql://user@host`, or a run in progress: `run:last`' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l sample -d 'Time between two samples of the database\'s sessions' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l profile-hz -d 'Samples a second of each processor' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l pid -d 'Also watch these processes' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l group -d 'Also watch processes whose command line matches, under this name' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l record -d 'Record to this directory (new or empty)' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l import -d 'Do not watch: record what these files of collectl (raw), sar (sadf -j) or iostat hold' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l replay -d 'Show a recording: its directory, its id, or `last`' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l from -d 'Of a replay: from this time after its beginning' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l to -d 'Of a replay: to this time after its beginning' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l view -d 'Show only these tables' -r -f -a "host\t'The host as a whole: processors, run queue, dirty memory, pressure.'
disks\t'Each block device: requests, throughput, sizes, times, queue; first all disks together.'
load\t'What the database did, a second and a transaction: calls, reads, writes, redo.'
active-sessions\t'What sessions were doing, sampled: average active sessions by wait event and on CPU.'
sessions\t'Each session that worked: how much of the time, what it does now, who blocks it.'
statements\t'The statements that took most time: executions, time, blocks and redo of each.'
database-io\t'I/O as the database counts it, by kind of process, object and context.'
durability\t'Commits and checkpoints taken apart: commits a flush, times of redo, who writes blocks.'
io-by-role\t'Requests to devices by role: those that somebody waits for and others, sizes, times.'
processes\t'Databases\' processes and threads by role: processor, run queue, system calls, storage.'
ledger\t'The same bytes in three layers: what the database says, what its processes asked for and were charged, what the disks did.'
events\t'Wait events as the database or the operating system times them, by role; CPU among them.'
wait-classes\t'Average active sessions by kind of wait, of sessions and of processes in the background.'
top-events\t'What sessions spent the database\'s time on, the most first; DB CPU and run queue, as the kernel charges them, are inside waits too, so that shares may add up to more than all.'
event-histograms\t'Which share of an event\'s waits took how long: each column from where the one before it ends, at powers of two of 1.024 µs. Of a server that does not time waits one by one, those that are one kind of system call, as the kernel times it.'
sampled-sessions\t'Sessions by how often they were sampled at work: in what, and who blocked them.'
sampled-statements\t'Statements by how often sessions were sampled in them: in what, and by how many.'
snapper\t'What single sessions and background processes did, and averages: bytes a read, time a read.'
io-by-file-type\t'Requests to devices by type of file: data, redo, temporary, control, metadata.'
files\t'Files with requests to devices: those that somebody waits for and others, sizes, times.'
system-calls\t'Reading, writing and flushing system calls by role, from the page cache or not.'
cpu-by-role\t'Who spent processor time, how much of it in the kernel, and where most.'
cpu-by-module\t'The kernel proper, its modules, programs and libraries by processor time.'
cpu-by-function\t'Functions of the kernel, and programs and libraries, by the processor time spent there.'
role-functions\t'Functions, programs and libraries by the processor time that each role spent there.'
cpu-samples\t'The samples behind the profile: how many, what they found, and what is missing.'
processors\t'Each processor: where its time went.'
memory\t'Main memory: what fills it, paging, swapping, pressure.'
network\t'Each network interface, and TCP: throughput, packets, errors, drops, retransmits.'
nfs\t'Each NFS mount: requests, throughput, time in all and at the server, retransmits.'
cgroups\t'Control groups of the watched processes: processor, throttling, memory, I/O.'
own\t'What watching costs: this process\'s processor time and writes, and late ticks.'"
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l where -d 'Of samples of sessions, look only at those whose column says this' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l listen -d 'Answer Prometheus at this address, below `/metrics`' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l no-bpf -d 'Do not have the kernel count I/O by role and file'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l profile -d 'Sample what processors execute: processor time by role, module and function of the kernel'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l once -d 'Print one interval as text, or with --json as a document, and end'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l allow-remote -d 'Allow --listen on an address that other hosts reach'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l html -d 'Write the HTML report to this file (`-` for standard output)' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l from -d 'Show what every layer did from this time after the recording\'s first tick' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l to -d 'Show what every layer did up to this time after the recording\'s first tick' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l where -d 'Of samples of sessions, show only those whose column says this' -r
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l awr-info -d 'Print only SLOB\'s `awr_info` columns of a run, heading and values'
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -l html -d 'Write an HTML page to this file (`-` for standard output)' -r -F
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand runs" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand runs" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand runs" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand runs" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand runs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand completions" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand completions" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand completions" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand completions" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand man" -l color -d 'When to use colours (`NO_COLOR` is honoured too)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c blockstone -n "__fish_blockstone_using_subcommand man" -l runs-dir -d 'Where recordings are kept' -r -f -a "(__fish_complete_directories)"
complete -c blockstone -n "__fish_blockstone_using_subcommand man" -l json -d 'Print one JSON document on standard output instead of text'
complete -c blockstone -n "__fish_blockstone_using_subcommand man" -s q -l quiet -d 'Print no progress and no notes, only the answer'
complete -c blockstone -n "__fish_blockstone_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "calibrate" -d 'Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "run" -d 'Run the SLOB method on a miniature database instance: what a database gets from a storage'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "teardown" -d 'Remove what a killed run left in a database server'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "flash" -d 'Simulate a flash device: what garbage collection does to writes and reads, and when'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "reduce" -d 'Count how far an array would shrink files: deduplication, compression, and what stops them'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "watch" -d 'Watch a host: processors, disks, memory, network, databases\' processes; live, recorded, replayed'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "report" -d 'Show a recording again, or write its HTML report anew'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "compare" -d 'Compare two recordings: faster, slower, or difference not established'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "runs" -d 'List the recordings'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "man" -d 'Write the man pages'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and not __fish_seen_subcommand_from calibrate run teardown flash reduce watch report compare runs completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "sim" -d 'Simulate one device under one workload, from full to steady state'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "sweep" -d 'Simulate write amplification over spare, policies and block sizes, beside the formulas'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "cliff" -d 'Say when the write cliff comes, and what is left behind it, by formula'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "fit" -d 'Read spare and write amplification of a real drive from a measured curve'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "life" -d 'Say how many years a device lives'
complete -c blockstone -n "__fish_blockstone_using_subcommand help; and __fish_seen_subcommand_from flash" -f -a "explain" -d 'Show on five blocks of ten pages why flash collects garbage'
