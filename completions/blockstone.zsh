#compdef blockstone

autoload -U is-at-least

_blockstone() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_blockstone_commands" \
"*::: :->blockstone" \
&& ret=0
    case $state in
    (blockstone)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:blockstone-command-$line[1]:"
        case $line[1] in
            (calibrate)
_arguments "${_arguments_options[@]}" : \
'--block-size=[Database block size]:SIZE:_default' \
'--size=[Size of the test file \[default\: 4G, or a quarter of the free space, or what fits the time\]]:SIZE:_default' \
'--max-latency=[Latency limit of the knee (p99) and of \`max_iops\` (mean)]:TIME:_default' \
'--rate=[Also measure random reads at this fixed rate a second, whatever the storage does]:IOPS:_default' \
'--arrivals=[Gaps between the operations of --rate]:ARRIVALS:((poisson\:"Exponential gaps\: independent users"
fixed\:"Constant gaps"))' \
'(--size --destroy)--file=[Reuse a test file that an earlier run kept]:FILE:_files' \
'--destroy=[Name a block device a second time, to allow its content to be destroyed]:DEVICE:_files' \
'--out=[Write the recording to this directory (new or empty)]:DIR:_files -/' \
'--link-mbps=[Speed of the link to the storage in MB/s, where the kernel cannot know it]:MB/S:_default' \
'--seed=[Seed of all random choices \[default\: drawn, and written to the manifest\]]:SEED:_default' \
'*--require=[End with exit code 4 unless these capabilities are there]:NAME:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'(--full)--quick[Finish within 20 s\: fewer points, shorter windows]' \
'--full[Three interleaved rounds with longer windows (about 6 minutes)]' \
'--matrix[Also measure small and large reads together, as Orion'\''s matrix (adds about 20 s)]' \
'(--destroy)--read-only[Leave out everything that writes (for a block device whose content is needed)]' \
'--buffered[Go through the page cache, to see what it does to the numbers]' \
'(--file --destroy)--keep[Keep the test file for --file]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::path -- A directory, a file (only read) or a block device:_files' \
&& ret=0
;;
(cal)
_arguments "${_arguments_options[@]}" : \
'--block-size=[Database block size]:SIZE:_default' \
'--size=[Size of the test file \[default\: 4G, or a quarter of the free space, or what fits the time\]]:SIZE:_default' \
'--max-latency=[Latency limit of the knee (p99) and of \`max_iops\` (mean)]:TIME:_default' \
'--rate=[Also measure random reads at this fixed rate a second, whatever the storage does]:IOPS:_default' \
'--arrivals=[Gaps between the operations of --rate]:ARRIVALS:((poisson\:"Exponential gaps\: independent users"
fixed\:"Constant gaps"))' \
'(--size --destroy)--file=[Reuse a test file that an earlier run kept]:FILE:_files' \
'--destroy=[Name a block device a second time, to allow its content to be destroyed]:DEVICE:_files' \
'--out=[Write the recording to this directory (new or empty)]:DIR:_files -/' \
'--link-mbps=[Speed of the link to the storage in MB/s, where the kernel cannot know it]:MB/S:_default' \
'--seed=[Seed of all random choices \[default\: drawn, and written to the manifest\]]:SEED:_default' \
'*--require=[End with exit code 4 unless these capabilities are there]:NAME:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'(--full)--quick[Finish within 20 s\: fewer points, shorter windows]' \
'--full[Three interleaved rounds with longer windows (about 6 minutes)]' \
'--matrix[Also measure small and large reads together, as Orion'\''s matrix (adds about 20 s)]' \
'(--destroy)--read-only[Leave out everything that writes (for a block device whose content is needed)]' \
'--buffered[Go through the page cache, to see what it does to the numbers]' \
'(--file --destroy)--keep[Keep the test file for --file]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::path -- A directory, a file (only read) or a block device:_files' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'--conf=[Read settings from a slob.conf or pgio.conf; options given here go before it]:FILE:_files' \
'--profile=[What the sessions do]:PROFILE:((slob\:"Select and update rows, as SLOB does"
scan\:"Scan one table past the buffer cache, with every size of read and number of sessions"))' \
'*--multiblock=[Blocks of a read, for --profile scan \[default\: 4,8,16 and the most that a read takes\]]:BLOCKS:_default' \
'*--parallel=[Sessions that share the scan, for --profile scan \[default\: 1,16\]]:SESSIONS:_default' \
'--slots=[Reads that each session keeps outstanding, for --profile scan \[default\: 2\]]:N:_default' \
'--noise=[Measure twice, the second time beside N looping writers of durable 128K, each in an area of its own, as log writers of other databases are \[default N\: 2\]]:redo[:N]:_default' \
'--schemas=[Schemas, each with a table of its own \[default\: 4\]]:N:_default' \
'(--sessions)--threads=[Sessions on each schema \[default\: 4\]]:N:_default' \
'--sessions=[Sessions over all schemas, in place of --threads]:N:_default' \
'(--schemas --threads --sessions --update-pct)--readers=[Sessions that only select, each on its own schema]:N:_default' \
'(--schemas --threads --sessions --update-pct)--writers=[Sessions that only update, each on its own schema]:N:_default' \
'--scale=[Size of a schema, or its number of blocks \[default\: 256M, or less where there are many or little is free\]]:SIZE:_default' \
'--work-unit=[Rows that a select visits; each is one block \[default\: 64\]]:ROWS:_default' \
'--update-work-unit=[Rows that an update changes \[default\: the work unit\]]:ROWS:_default' \
'--update-pct=[Of 100 operations, how many update\: any number from 0 to 100 \[default\: 10\]]:PCT:_default' \
'--scan-pct=[Of 100 selects, how many scan a second table \[default\: 0\]]:PCT:_default' \
'--scan-size=[Size of that table, or its number of blocks \[default\: 1M\]; with --profile scan the size of the one table that all sessions share \[default\: 1G, or less where little is free\]]:SIZE:_default' \
'--redo-stress=[What an update changes\: two columns or all nineteen \[default\: lite\]]:REDO_STRESS:(lite heavy)' \
'--obfuscate=[The part of each row that does not compress, 0 to 1 \[default\: 1\]]:RATIO:_default' \
'--hotspot=[A hot range\: 8M@16M/3 sends one of 3 operations to 8 MiB from 16 MiB on]:SIZE@OFFSET/N:_default' \
'--hot-schema=[Send one of N operations to the first schema]:N:_default' \
'(--rate)--think=[Pause after one of N operations, as in 100ms..500ms/10]:MIN..MAX/N:_default' \
'--rate=[Start operations at this rate a second over all sessions, whatever the storage does]:OPS:_default' \
'(--loops)--run-time=[How long each window is; a warm-up of at most half as long comes before \[default\: 30s; 15s with --noise; 4s with --profile scan\]]:TIME:_default' \
'--loops=[Stop after so many operations a session instead]:N:_default' \
'--seed=[Seed of all choices and data \[default\: drawn, and written to the manifest\]]:SEED:_default' \
'--target=[What the workload is aimed at]:TARGET:_default' \
'*--pragma=[Set a pragma of SQLite on each connection]:NAME=VALUE:_default' \
'*--pg-conf=[Start the private PostgreSQL cluster with this setting]:NAME=VALUE:_default' \
'--pg-bin=[Where the programs of PostgreSQL are \[default\: the highest version in the usual places\]]:DIR:_files -/' \
'*--mariadb-conf=[Start the private MariaDB server with this setting]:NAME=VALUE:_default' \
'--mariadb-bin=[Where the programs of MariaDB are \[default\: the usual places\]]:DIR:_files -/' \
'--block-size=[Database block size\: 4K to 32K]:SIZE:_default' \
'--cache=[Buffer cache]:SIZE:_default' \
'--redundancy=[Copies of every block\: 1, 2 or 3]:REDUNDANCY:(external normal high)' \
'--allocation-unit=[Allocation unit of the disk group\: 1M or 4M]:SIZE:_default' \
'--torn-protection=[What protects blocks against writes that were cut off]:TORN_PROTECTION:(full-page double-write none)' \
'--redo-size=[Size of each of the three redo logs \[default\: a sixteenth of the data, 8M to 256M\]]:SIZE:_default' \
'--database-writers=[Database writers]:N:_default' \
'*--destroy=[Name a block device a second time, to allow its content to be destroyed]:DEVICE:_files' \
'*--failure-group=[Disks that fail together; they need not be named as PATH again \[default\: each by itself\]]:NAME=PATH[,PATH]:_default' \
'(--awr-info --keep --require)*--matrix=[Run at every combination of settings, as in update=0,20 sessions=1,8,64 target=instance,postgres\:scratch; PATH goes before it]:NAME=VALUE,VALUE:_default' \
'--repeat=[Run each combination of --matrix so many times, interleaved]:N:_default' \
'--out=[Write the recording to this directory (new or empty)]:DIR:_files -/' \
'*--require=[End with exit code 4 unless these capabilities are there]:NAME:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--keep[Keep the files; named as PATH they are used again, without loading]' \
'(--json)--awr-info[Print only SLOB'\''s \`awr_info\` columns, heading and values]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::path -- Disks\: directories, in which a file each is made, block devices, or what a run with --keep left, to be used again \[default\: .\]:_files' \
&& ret=0
;;
(teardown)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':target -- The server, as --target names it\: `postgres\://user@host/db`, `mysql\://user@host`:_default' \
&& ret=0
;;
(flash)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_blockstone__subcmd__flash_commands" \
"*::: :->flash" \
&& ret=0

    case $state in
    (flash)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:blockstone-flash-command-$line[1]:"
        case $line[1] in
            (sim)
_arguments "${_arguments_options[@]}" : \
'--preset=[Start from this device; other options change it]:PRESET:((mlc\:"accelerator with two bits per cell, 400 of 576 GiB visible"
slc\:"accelerator with one bit per cell, 96 of 128 GiB visible"
tlc\:"drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)"
qlc\:"drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)"))' \
'--raw=[All flash there is]:SIZE:_default' \
'(--format-level)--visible=[What the host sees]:SIZE:_default' \
'--format-level=[Over-provisioning in percent, in place of --visible\: 44 leaves 400 of 576 visible]:PCT:_default' \
'--page-size=[A page\: what is mapped, read and programmed at once]:SIZE:_default' \
'--pages-per-block=[Pages of a block of one plane]:N:_default' \
'--channels=[Channels]:N:_default' \
'--dies=[Dies behind each channel]:N:_default' \
'--planes=[Planes of a die that work in step]:N:_default' \
'--read-time=[Read of a page]:TIME:_default' \
'*--program-times=[Program times of the page types, the fast one first, as in 300us,2.5ms]:TIME[,TIME]:_default' \
'--erase-time=[Erase of a block]:TIME:_default' \
'--channel-rate=[Bytes a second of a channel; without it channels are never the limit]:SIZE:_default' \
'--suspend=[What operations a read interrupts]:SUSPEND:((none\:"None\: a read waits for all that came before it"
erase\:"Erases"
both\:"Erases and programs"))' \
'--policy=[How victims are chosen\: greedy, fifo, random, cost-benefit or d=N]:POLICY:_default' \
'--reserve=[Free blocks a die that only collection may use]:N:_default' \
'--collect=[Whether a write waits for a whole block, or moves are spread over writes]:COLLECT:((atomic\:"A write waits for a whole block"
spread\:"A few moves after each write"))' \
'--background=[Collect on idle dies until so many percent of the blocks are free]:PCT:_default' \
'--idle-after=[For how long a die has to be idle before that]:TIME:_default' \
'--placement=[Where the parts of a workload go]:PLACEMENT:((mixed\:"Into the same open blocks"
frontiers\:"Into open blocks of their own, with common spare"
pools\:"Into blocks of their own, with spare of their own"))' \
'--fast-blocks=[Percent of the blocks that take writes in fast pages only and are folded later]:PCT:_default' \
'--levelling=[Move data out of blocks that are so many erases behind the most worn one]:ERASES:_default' \
'--bad-blocks=[Percent of the blocks that are bad from the beginning]:PCT:_default' \
'--wear-out=[P/E cycles that a block endures before it is retired \[default\: blocks do not wear out\]]:CYCLES:_default' \
'--workload=[uniform, sequential, zipf=0.99, hot-cold=20/80, oltp, lsm, or parts with their share of the writes, as in redo=20+datafile=70+undo=10]:WORKLOAD:_default' \
'--reads=[Percent of the requests that read]:PCT:_default' \
'--io-size=[Size of a request \[default\: a page\]]:SIZE:_default' \
'--queue-depth=[Requests under way]:N:_default' \
'(--phase)--rate=[Requests a second, whatever the device does, in place of --queue-depth]:IOPS:_default' \
'*--phase=[Phases in turn\: 8min@2000 at 2,000 requests a second, 30s@max as fast as it goes, 1s@0 idle]:TIME@RATE:_default' \
'(--workload --reads --io-size --rate --phase)--trace=[Replay a trace in place of the workload, or the rates of a recording]:FILE|RUN:_files' \
'--trace-format=[Format of the trace\: msr, blkparse, fio or disksim \[default\: recognised\]]:TRACE_FORMAT:_default' \
'--drive-fills=[Visible capacities to write]:FILLS:_default' \
'--run-time=[Stop after so much time of the device]:TIME:_default' \
'--scale=[Simulate one over this part of every die'\''s blocks \[default\: what takes seconds\]]:N:_default' \
'--engine=[How pages are kept track of]:ENGINE:((exact\:"Mapping tables"
counts\:"Valid counts, where pages are exchangeable"))' \
'--html=[Write an HTML page to this file (\`-\` for standard output)]:FILE:_files' \
'--seed=[Seed of all choices\: the same gives the same bytes]:SEED:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--separate-moves[Give what is moved open blocks of its own]' \
'--empty[Begin with an empty device rather than a full one]' \
'--against-active[Also simulate it without background collection, to be seen beside]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(sweep)
_arguments "${_arguments_options[@]}" : \
'--preset=[Start from this device; other options change it]:PRESET:((mlc\:"accelerator with two bits per cell, 400 of 576 GiB visible"
slc\:"accelerator with one bit per cell, 96 of 128 GiB visible"
tlc\:"drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)"
qlc\:"drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)"))' \
'--raw=[All flash there is]:SIZE:_default' \
'(--format-level)--visible=[What the host sees]:SIZE:_default' \
'--format-level=[Over-provisioning in percent, in place of --visible\: 44 leaves 400 of 576 visible]:PCT:_default' \
'--page-size=[A page\: what is mapped, read and programmed at once]:SIZE:_default' \
'--pages-per-block=[Pages of a block of one plane]:N:_default' \
'--channels=[Channels]:N:_default' \
'--dies=[Dies behind each channel]:N:_default' \
'--planes=[Planes of a die that work in step]:N:_default' \
'--read-time=[Read of a page]:TIME:_default' \
'*--program-times=[Program times of the page types, the fast one first, as in 300us,2.5ms]:TIME[,TIME]:_default' \
'--erase-time=[Erase of a block]:TIME:_default' \
'--channel-rate=[Bytes a second of a channel; without it channels are never the limit]:SIZE:_default' \
'--suspend=[What operations a read interrupts]:SUSPEND:((none\:"None\: a read waits for all that came before it"
erase\:"Erases"
both\:"Erases and programs"))' \
'--workload=[What is written, as in flash sim]:WORKLOAD:_default' \
'--seed=[Seed of all choices\: the same gives the same bytes]:SEED:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::over -- What varies\: op=7,20,44 (percent), policy=greedy,fifo,d=5, pages-per-block=64,256:_default' \
&& ret=0
;;
(cliff)
_arguments "${_arguments_options[@]}" : \
'--preset=[Start from this device; other options change it]:PRESET:((mlc\:"accelerator with two bits per cell, 400 of 576 GiB visible"
slc\:"accelerator with one bit per cell, 96 of 128 GiB visible"
tlc\:"drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)"
qlc\:"drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)"))' \
'--raw=[All flash there is]:SIZE:_default' \
'(--format-level)--visible=[What the host sees]:SIZE:_default' \
'--format-level=[Over-provisioning in percent, in place of --visible\: 44 leaves 400 of 576 visible]:PCT:_default' \
'--page-size=[A page\: what is mapped, read and programmed at once]:SIZE:_default' \
'--pages-per-block=[Pages of a block of one plane]:N:_default' \
'--channels=[Channels]:N:_default' \
'--dies=[Dies behind each channel]:N:_default' \
'--planes=[Planes of a die that work in step]:N:_default' \
'--read-time=[Read of a page]:TIME:_default' \
'*--program-times=[Program times of the page types, the fast one first, as in 300us,2.5ms]:TIME[,TIME]:_default' \
'--erase-time=[Erase of a block]:TIME:_default' \
'--channel-rate=[Bytes a second of a channel; without it channels are never the limit]:SIZE:_default' \
'--suspend=[What operations a read interrupts]:SUSPEND:((none\:"None\: a read waits for all that came before it"
erase\:"Erases"
both\:"Erases and programs"))' \
'--policy=[How victims are chosen\: greedy, fifo, random, cost-benefit or d=N]:POLICY:_default' \
'--reserve=[Free blocks a die that only collection may use]:N:_default' \
'--collect=[Whether a write waits for a whole block, or moves are spread over writes]:COLLECT:((atomic\:"A write waits for a whole block"
spread\:"A few moves after each write"))' \
'--background=[Collect on idle dies until so many percent of the blocks are free]:PCT:_default' \
'--idle-after=[For how long a die has to be idle before that]:TIME:_default' \
'--placement=[Where the parts of a workload go]:PLACEMENT:((mixed\:"Into the same open blocks"
frontiers\:"Into open blocks of their own, with common spare"
pools\:"Into blocks of their own, with spare of their own"))' \
'--fast-blocks=[Percent of the blocks that take writes in fast pages only and are folded later]:PCT:_default' \
'--levelling=[Move data out of blocks that are so many erases behind the most worn one]:ERASES:_default' \
'--bad-blocks=[Percent of the blocks that are bad from the beginning]:PCT:_default' \
'--wear-out=[P/E cycles that a block endures before it is retired \[default\: blocks do not wear out\]]:CYCLES:_default' \
'--write-rate=[Random overwrites, in bytes a second]:SIZE:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--separate-moves[Give what is moved open blocks of its own]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(fit)
_arguments "${_arguments_options[@]}" : \
'--io-size=[Size of an I/O of an IOPS log without one]:SIZE:_default' \
'--preset=[Start from this device; other options change it]:PRESET:((mlc\:"accelerator with two bits per cell, 400 of 576 GiB visible"
slc\:"accelerator with one bit per cell, 96 of 128 GiB visible"
tlc\:"drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)"
qlc\:"drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)"))' \
'--raw=[All flash there is]:SIZE:_default' \
'(--format-level)--visible=[What the host sees]:SIZE:_default' \
'--format-level=[Over-provisioning in percent, in place of --visible\: 44 leaves 400 of 576 visible]:PCT:_default' \
'--page-size=[A page\: what is mapped, read and programmed at once]:SIZE:_default' \
'--pages-per-block=[Pages of a block of one plane]:N:_default' \
'--channels=[Channels]:N:_default' \
'--dies=[Dies behind each channel]:N:_default' \
'--planes=[Planes of a die that work in step]:N:_default' \
'--read-time=[Read of a page]:TIME:_default' \
'*--program-times=[Program times of the page types, the fast one first, as in 300us,2.5ms]:TIME[,TIME]:_default' \
'--erase-time=[Erase of a block]:TIME:_default' \
'--channel-rate=[Bytes a second of a channel; without it channels are never the limit]:SIZE:_default' \
'--suspend=[What operations a read interrupts]:SUSPEND:((none\:"None\: a read waits for all that came before it"
erase\:"Erases"
both\:"Erases and programs"))' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':curve -- A recording (its directory, its id, or `last`), or a log of fio\: `--write_bw_log` or `--write_iops_log`:_default' \
&& ret=0
;;
(life)
_arguments "${_arguments_options[@]}" : \
'--preset=[Start from this device; other options change it]:PRESET:((mlc\:"accelerator with two bits per cell, 400 of 576 GiB visible"
slc\:"accelerator with one bit per cell, 96 of 128 GiB visible"
tlc\:"drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)"
qlc\:"drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)"))' \
'--raw=[All flash there is]:SIZE:_default' \
'(--format-level)--visible=[What the host sees]:SIZE:_default' \
'--format-level=[Over-provisioning in percent, in place of --visible\: 44 leaves 400 of 576 visible]:PCT:_default' \
'--page-size=[A page\: what is mapped, read and programmed at once]:SIZE:_default' \
'--pages-per-block=[Pages of a block of one plane]:N:_default' \
'--channels=[Channels]:N:_default' \
'--dies=[Dies behind each channel]:N:_default' \
'--planes=[Planes of a die that work in step]:N:_default' \
'--read-time=[Read of a page]:TIME:_default' \
'*--program-times=[Program times of the page types, the fast one first, as in 300us,2.5ms]:TIME[,TIME]:_default' \
'--erase-time=[Erase of a block]:TIME:_default' \
'--channel-rate=[Bytes a second of a channel; without it channels are never the limit]:SIZE:_default' \
'--suspend=[What operations a read interrupts]:SUSPEND:((none\:"None\: a read waits for all that came before it"
erase\:"Erases"
both\:"Erases and programs"))' \
'--policy=[How victims are chosen\: greedy, fifo, random, cost-benefit or d=N]:POLICY:_default' \
'--reserve=[Free blocks a die that only collection may use]:N:_default' \
'--collect=[Whether a write waits for a whole block, or moves are spread over writes]:COLLECT:((atomic\:"A write waits for a whole block"
spread\:"A few moves after each write"))' \
'--background=[Collect on idle dies until so many percent of the blocks are free]:PCT:_default' \
'--idle-after=[For how long a die has to be idle before that]:TIME:_default' \
'--placement=[Where the parts of a workload go]:PLACEMENT:((mixed\:"Into the same open blocks"
frontiers\:"Into open blocks of their own, with common spare"
pools\:"Into blocks of their own, with spare of their own"))' \
'--fast-blocks=[Percent of the blocks that take writes in fast pages only and are folded later]:PCT:_default' \
'--levelling=[Move data out of blocks that are so many erases behind the most worn one]:ERASES:_default' \
'--bad-blocks=[Percent of the blocks that are bad from the beginning]:PCT:_default' \
'--wear-out=[P/E cycles that a block endures before it is retired \[default\: blocks do not wear out\]]:CYCLES:_default' \
'--write-rate=[What the host writes, in bytes a second]:SIZE:_default' \
'--wa=[Write amplification \[default\: by formula, for uniform random writes\]]:WA:_default' \
'--endurance=[P/E cycles that a block endures \[default\: the preset'\''s\]]:CYCLES:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--separate-moves[Give what is moved open blocks of its own]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_blockstone__subcmd__flash__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:blockstone-flash-help-command-$line[1]:"
        case $line[1] in
            (sim)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(sweep)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cliff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fit)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(life)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(reduce)
_arguments "${_arguments_options[@]}" : \
'*--block-size=[Sizes of blocks to count; the model'\''s is always among them]:SIZE:_default' \
'*--offset=[Where the first block of a file begins, in bytes]:BYTES:_default' \
'--model=[The array that would store them\: generic, vdo, xtremio, or a TOML file]:NAME|FILE:_default' \
'*--codec=[Compressors to compare, at most 4; the model'\''s is always among them]:NAME:_default' \
'--compress=[Which contents are compressed]:COMPRESS:((sample\:"All while they are few, then a share of them"
every\:"All"
not\:"None"))' \
'--memory=[Memory to use; what does not fit is estimated from a share of all contents]:SIZE:_default' \
'--rate=[Read at most so many bytes a second, as 200M]:SIZE:_default' \
'--threads=[Threads that read, hash and compress \[default\: one a processor, at least 8\]]:N:_default' \
'(--resume)--save=[Save the scan in this directory, while it runs and at its end]:DIR:_files -/' \
'--save-every=[How often to save, at most]:TIME:_default' \
'(--block-size --offset --codec --compress --no-shifts --no-headers --memory)--resume=[Go on with a saved scan that did not come to its end; what is counted is what it was]:DIR:_files -/' \
'--html=[Write an HTML page with charts to this file (\`-\` for standard output)]:FILE:_files' \
'(--save --resume --merge --html)--generate=[Make a data set for tests and demonstrations in a directory that does not exist yet]:KIND:(oracle-like oracle-loaded pg-like slob random zeros text mixed shifted)' \
'--files=[Files of the data set]:N:_default' \
'--size=[Size of each of them]:SIZE:_default' \
'--seed=[Seed of their content]:SEED:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--no-shifts[Do not look for copies that lie between blocks]' \
'--no-headers[Do not look for headers of database pages]' \
'--buffered[Read through the page cache instead of past it]' \
'(--save --resume --rate --threads --buffered --block-size --offset --codec --compress --no-shifts --no-headers --memory)--merge[Count saved scans together, as if one array stored all their files]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::paths -- Files, directories or block devices; they are only read. With --merge\: saved scans. With --generate\: the directory to make:_files' \
&& ret=0
;;
(watch)
_arguments "${_arguments_options[@]}" : \
'--interval=[Time between two looks]:TIME:_default' \
'(--replay)--for=[End after this time]:TIME:_default' \
'(--replay)--db=[Also watch this database\: \`postgres\://user@host/database\`, \`mysql\://user@host\`, or a run in progress\: \`run\:last\`]:URL:_default' \
'--sample=[Time between two samples of the database'\''s sessions]:TIME:_default' \
'--profile-hz=[Samples a second of each processor]:HZ:_default' \
'(--replay)*--pid=[Also watch these processes]:PID:_default' \
'(--replay)*--group=[Also watch processes whose command line matches, under this name]:NAME=REGEX:_default' \
'(--replay)--record=[Record to this directory (new or empty)]:DIR:_files -/' \
'(--replay --interval --for --db --sample --no-bpf --pid --group --listen --once --view --profile)*--import=[Do not watch\: record what these files of collectl (raw), sar (sadf -j) or iostat hold]:FILE:_files' \
'--replay=[Show a recording\: its directory, its id, or \`last\`]:RUN:_default' \
'--from=[Of a replay\: from this time after its beginning]:TIME:_default' \
'--to=[Of a replay\: to this time after its beginning]:TIME:_default' \
'*--view=[Show only these tables]:NAME:((host\:"The host as a whole\: processors, run queue, dirty memory, pressure."
disks\:"Each block device\: requests, throughput, sizes, times, queue; first all disks together."
load\:"What the database did, a second and a transaction\: calls, reads, writes, redo."
active-sessions\:"What sessions were doing, sampled\: average active sessions by wait event and on CPU."
sessions\:"Each session that worked\: how much of the time, what it does now, who blocks it."
statements\:"The statements that took most time\: executions, time, blocks and redo of each."
database-io\:"I/O as the database counts it, by kind of process, object and context."
durability\:"Commits and checkpoints taken apart\: commits a flush, times of redo, who writes blocks."
io-by-role\:"Requests to devices by role\: those that somebody waits for and others, sizes, times."
processes\:"Databases'\'' processes and threads by role\: processor, run queue, system calls, storage."
ledger\:"The same bytes in three layers\: what the database says, what its processes asked for and were charged, what the disks did."
events\:"Wait events as the database or the operating system times them, by role; CPU among them."
wait-classes\:"Average active sessions by kind of wait, of sessions and of processes in the background."
top-events\:"What sessions spent the database'\''s time on, the most first; DB CPU and run queue, as the kernel charges them, are inside waits too, so that shares may add up to more than all."
event-histograms\:"Which share of an event'\''s waits took how long\: each column from where the one before it ends, at powers of two of 1.024 µs. Of a server that does not time waits one by one, those that are one kind of system call, as the kernel times it."
sampled-sessions\:"Sessions by how often they were sampled at work\: in what, and who blocked them."
sampled-statements\:"Statements by how often sessions were sampled in them\: in what, and by how many."
snapper\:"What single sessions and background processes did, and averages\: bytes a read, time a read."
io-by-file-type\:"Requests to devices by type of file\: data, redo, temporary, control, metadata."
files\:"Files with requests to devices\: those that somebody waits for and others, sizes, times."
system-calls\:"Reading, writing and flushing system calls by role, from the page cache or not."
cpu-by-role\:"Who spent processor time, how much of it in the kernel, and where most."
cpu-by-module\:"The kernel proper, its modules, programs and libraries by processor time."
cpu-by-function\:"Functions of the kernel, and programs and libraries, by the processor time spent there."
role-functions\:"Functions, programs and libraries by the processor time that each role spent there."
cpu-samples\:"The samples behind the profile\: how many, what they found, and what is missing."
processors\:"Each processor\: where its time went."
memory\:"Main memory\: what fills it, paging, swapping, pressure."
network\:"Each network interface, and TCP\: throughput, packets, errors, drops, retransmits."
nfs\:"Each NFS mount\: requests, throughput, time in all and at the server, retransmits."
cgroups\:"Control groups of the watched processes\: processor, throttling, memory, I/O."
own\:"What watching costs\: this process'\''s processor time and writes, and late ticks."))' \
'*--where=[Of samples of sessions, look only at those whose column says this]:COLUMN=VALUE:_default' \
'(--replay)--listen=[Answer Prometheus at this address, below \`/metrics\`]:ADDRESS:PORT:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'(--replay)--no-bpf[Do not have the kernel count I/O by role and file]' \
'(--replay)--profile[Sample what processors execute\: processor time by role, module and function of the kernel]' \
'--once[Print one interval as text, or with --json as a document, and end]' \
'--allow-remote[Allow --listen on an address that other hosts reach]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
'--html=[Write the HTML report to this file (\`-\` for standard output)]:FILE:_files' \
'(--awr-info)--from=[Show what every layer did from this time after the recording'\''s first tick]:TIME:_default' \
'(--awr-info)--to=[Show what every layer did up to this time after the recording'\''s first tick]:TIME:_default' \
'(--awr-info --html)*--where=[Of samples of sessions, show only those whose column says this]:COLUMN=VALUE:_default' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'(--html --json)--awr-info[Print only SLOB'\''s \`awr_info\` columns of a run, heading and values]' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':run -- A recording\: its directory, its id, or `last`:_default' \
&& ret=0
;;
(compare)
_arguments "${_arguments_options[@]}" : \
'--html=[Write an HTML page to this file (\`-\` for standard output)]:FILE:_files' \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':a -- The base\: a recording'\''s directory, its id, or `last`; of what was watched also a part of its time, `night@10m..12m`:_default' \
':b -- The one that is compared with it:_default' \
&& ret=0
;;
(runs)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'--color=[When to use colours (\`NO_COLOR\` is honoured too)]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--runs-dir=[Where recordings are kept]:DIR:_files -/' \
'--json[Print one JSON document on standard output instead of text]' \
'-q[Print no progress and no notes, only the answer]' \
'--quiet[Print no progress and no notes, only the answer]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':dir -- The directory to write them to; it is created:_files -/' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_blockstone__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:blockstone-help-command-$line[1]:"
        case $line[1] in
            (calibrate)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(teardown)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(flash)
_arguments "${_arguments_options[@]}" : \
":: :_blockstone__subcmd__help__subcmd__flash_commands" \
"*::: :->flash" \
&& ret=0

    case $state in
    (flash)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:blockstone-help-flash-command-$line[1]:"
        case $line[1] in
            (sim)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(sweep)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cliff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fit)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(life)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(reduce)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(watch)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(report)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(compare)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(runs)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
}

(( $+functions[_blockstone_commands] )) ||
_blockstone_commands() {
    local commands; commands=(
'calibrate:Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it' \
'cal:Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it' \
'run:Run the SLOB method on a miniature database instance\: what a database gets from a storage' \
'teardown:Remove what a killed run left in a database server' \
'flash:Simulate a flash device\: what garbage collection does to writes and reads, and when' \
'reduce:Count how far an array would shrink files\: deduplication, compression, and what stops them' \
'watch:Watch a host\: processors, disks, memory, network, databases'\'' processes; live, recorded, replayed' \
'report:Show a recording again, or write its HTML report anew' \
'compare:Compare two recordings\: faster, slower, or difference not established' \
'runs:List the recordings' \
'completions:Print a completion script for a shell' \
'man:Write the man pages' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'blockstone commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__calibrate_commands] )) ||
_blockstone__subcmd__calibrate_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone calibrate commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__compare_commands] )) ||
_blockstone__subcmd__compare_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone compare commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__completions_commands] )) ||
_blockstone__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone completions commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash_commands] )) ||
_blockstone__subcmd__flash_commands() {
    local commands; commands=(
'sim:Simulate one device under one workload, from full to steady state' \
'sweep:Simulate write amplification over spare, policies and block sizes, beside the formulas' \
'cliff:Say when the write cliff comes, and what is left behind it, by formula' \
'fit:Read spare and write amplification of a real drive from a measured curve' \
'life:Say how many years a device lives' \
'explain:Show on five blocks of ten pages why flash collects garbage' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'blockstone flash commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__cliff_commands] )) ||
_blockstone__subcmd__flash__subcmd__cliff_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash cliff commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__explain_commands] )) ||
_blockstone__subcmd__flash__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash explain commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__fit_commands] )) ||
_blockstone__subcmd__flash__subcmd__fit_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash fit commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help_commands] )) ||
_blockstone__subcmd__flash__subcmd__help_commands() {
    local commands; commands=(
'sim:Simulate one device under one workload, from full to steady state' \
'sweep:Simulate write amplification over spare, policies and block sizes, beside the formulas' \
'cliff:Say when the write cliff comes, and what is left behind it, by formula' \
'fit:Read spare and write amplification of a real drive from a measured curve' \
'life:Say how many years a device lives' \
'explain:Show on five blocks of ten pages why flash collects garbage' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'blockstone flash help commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__cliff_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__cliff_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help cliff commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__explain_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help explain commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__fit_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__fit_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help fit commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__help_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help help commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__life_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__life_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help life commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__sim_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__sim_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help sim commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__help__subcmd__sweep_commands] )) ||
_blockstone__subcmd__flash__subcmd__help__subcmd__sweep_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash help sweep commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__life_commands] )) ||
_blockstone__subcmd__flash__subcmd__life_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash life commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__sim_commands] )) ||
_blockstone__subcmd__flash__subcmd__sim_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash sim commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__flash__subcmd__sweep_commands] )) ||
_blockstone__subcmd__flash__subcmd__sweep_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone flash sweep commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help_commands] )) ||
_blockstone__subcmd__help_commands() {
    local commands; commands=(
'calibrate:Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to believe it' \
'run:Run the SLOB method on a miniature database instance\: what a database gets from a storage' \
'teardown:Remove what a killed run left in a database server' \
'flash:Simulate a flash device\: what garbage collection does to writes and reads, and when' \
'reduce:Count how far an array would shrink files\: deduplication, compression, and what stops them' \
'watch:Watch a host\: processors, disks, memory, network, databases'\'' processes; live, recorded, replayed' \
'report:Show a recording again, or write its HTML report anew' \
'compare:Compare two recordings\: faster, slower, or difference not established' \
'runs:List the recordings' \
'completions:Print a completion script for a shell' \
'man:Write the man pages' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'blockstone help commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__calibrate_commands] )) ||
_blockstone__subcmd__help__subcmd__calibrate_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help calibrate commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__compare_commands] )) ||
_blockstone__subcmd__help__subcmd__compare_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help compare commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__completions_commands] )) ||
_blockstone__subcmd__help__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help completions commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash_commands] )) ||
_blockstone__subcmd__help__subcmd__flash_commands() {
    local commands; commands=(
'sim:Simulate one device under one workload, from full to steady state' \
'sweep:Simulate write amplification over spare, policies and block sizes, beside the formulas' \
'cliff:Say when the write cliff comes, and what is left behind it, by formula' \
'fit:Read spare and write amplification of a real drive from a measured curve' \
'life:Say how many years a device lives' \
'explain:Show on five blocks of ten pages why flash collects garbage' \
    )
    _describe -t commands 'blockstone help flash commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__cliff_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__cliff_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash cliff commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__explain_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash explain commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__fit_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__fit_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash fit commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__life_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__life_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash life commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__sim_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__sim_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash sim commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__flash__subcmd__sweep_commands] )) ||
_blockstone__subcmd__help__subcmd__flash__subcmd__sweep_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help flash sweep commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__help_commands] )) ||
_blockstone__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help help commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__man_commands] )) ||
_blockstone__subcmd__help__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help man commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__reduce_commands] )) ||
_blockstone__subcmd__help__subcmd__reduce_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help reduce commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__report_commands] )) ||
_blockstone__subcmd__help__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help report commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__run_commands] )) ||
_blockstone__subcmd__help__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help run commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__runs_commands] )) ||
_blockstone__subcmd__help__subcmd__runs_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help runs commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__teardown_commands] )) ||
_blockstone__subcmd__help__subcmd__teardown_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help teardown commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__help__subcmd__watch_commands] )) ||
_blockstone__subcmd__help__subcmd__watch_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone help watch commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__man_commands] )) ||
_blockstone__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone man commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__reduce_commands] )) ||
_blockstone__subcmd__reduce_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone reduce commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__report_commands] )) ||
_blockstone__subcmd__report_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone report commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__run_commands] )) ||
_blockstone__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone run commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__runs_commands] )) ||
_blockstone__subcmd__runs_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone runs commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__teardown_commands] )) ||
_blockstone__subcmd__teardown_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone teardown commands' commands "$@"
}
(( $+functions[_blockstone__subcmd__watch_commands] )) ||
_blockstone__subcmd__watch_commands() {
    local commands; commands=()
    _describe -t commands 'blockstone watch commands' commands "$@"
}

if [ "$funcstack[1]" = "_blockstone" ]; then
    _blockstone "$@"
else
    compdef _blockstone blockstone
fi
