//! `--for STORE`: storage is measured for a database or another store, and judged by the limits of
//! that store.

use std::ffi::OsString;
use std::fmt::Write as _;

use blockstone_base::load::Op;
use blockstone_base::units::Bytes;
use blockstone_record::manifest::Manifest;
use blockstone_report::expect::{self, Purpose};
use blockstone_stores::{ALL, Limit, Load, Store, Stream, find};
use clap::ArgMatches;

use crate::verb::Verb;
use crate::verbs;

/// Setting of a recording that names the store.
const SETTING: &str = "store";

/// Returns the verb whose `--for` takes the name of a store.
fn verb_of(words: &[OsString]) -> Option<&'static Verb> {
    let verb = words.iter().find_map(|word| verbs::find(word.to_str()?))?;
    let options = (verb.options)(clap::Command::new(""));
    options.get_arguments().any(|option| option.get_id() == SETTING).then_some(verb)
}

/// Writes `--for STORE` as `--store STORE`: a time begins with a digit, the name of a store with a
/// letter. Both are about what a measurement is for, so that people write `--for` before either.
pub fn spelled_out(words: Vec<OsString>) -> Vec<OsString> {
    if verb_of(&words).is_none() {
        return words;
    }
    let is_name = |word: &str| word.starts_with(|first: char| first.is_ascii_alphabetic());
    let mut out: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        let text = word.to_str().unwrap_or_default();
        let follows = out.last().is_some_and(|last| last == "--for");
        match text.strip_prefix("--for=") {
            Some(name) if is_name(name) => out.push(format!("--store={name}").into()),
            None if follows && is_name(text) => {
                out.pop();
                out.push(format!("--store={text}").into());
            }
            _ => out.push(word),
        }
    }
    out
}

/// Whether a command line names a store.
pub fn is_named(options: &ArgMatches) -> bool {
    options.try_get_one::<String>(SETTING).is_ok_and(|name| name.is_some())
}

/// Whether the stores are to be listed. That needs none of the arguments of the verb.
pub fn asks_for_list(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "--store=help")
        || words.windows(2).any(|pair| pair[0] == "--store" && pair[1] == "help")
}

/// Returns what a recording was made for.
pub fn purpose(manifest: &Manifest) -> Option<Purpose> {
    let store = find(manifest.settings.get(SETTING)?.as_str()?)?;
    let limits = store.limits.iter().flat_map(|limit| {
        let parsed = expect::parse(&limit.expect).unwrap_or_default();
        let times = if limit.each_cpu { manifest.host.cpus.max(1) } else { 1 };
        parsed.into_iter().map(move |it| it.times(times.into()).stated_by(limit.origin()))
    });
    let (title, note) = (store.title.clone(), store.note.clone());
    Some(Purpose { title, note, limits: limits.collect() })
}

/// Returns the number of limits that a store sets.
pub fn limits(name: &str) -> usize {
    find(name).map_or(0, |store| store.limits.len())
}

/// Lists the stores with their loads and limits.
pub fn list() -> String {
    let mut text = String::from(
        "Stores for --for, with the limits by which storage is judged for each. blockstone run\n\
         --for STORE drives the storage as the store does; blockstone help stores.md has the\n\
         sources.\n",
    );
    for store in ALL.iter() {
        let _ = writeln!(text, "\n{}: {}", store.name, store.title);
        if store.limits.is_empty() {
            let _ = writeln!(text, "  no limit is published");
        }
        for limit in &store.limits {
            let _ = writeln!(text, "  {:36} {}", written(limit), limit.origin());
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Stores: is this storage fast enough for PostgreSQL, etcd, …?
<!-- Generated from crates/stores/data/stores.toml by `cargo xtask generate`; do not edit. -->

`--for STORE` measures storage for a database or another store: with a load like that of the store,
and judged by its limits. The store itself is not needed and not used.

```sh
blockstone run --for postgresql /data
blockstone run --for etcd /mnt/new
blockstone calibrate --for sap-hana --full /hana
```

For a database, `run` drives the miniature instance with the block size and the protection against
torn blocks of that database; options on the command line take precedence. For any other store,
`run` does what `calibrate` does, and then measures each load of the store alone. Both load the
storage to its limit: measure an empty directory before the store moves in, or another volume
of the same kind, never the volume of a store that is in use.

`blockstone run --for postgresql --ladder /data` repeats the load with twice the sessions each time,
up to 64 (`--ladder=256`: up to 256), until a latency is beyond its limit. Its answer is the most
that the storage carried within all limits: `up to 3,242 commits/s with 32 sessions`. Each rung has
a window of 10 s, or of `--for`. A limit on a rate is decided on that rung.

A limit passes if the whole 95 % interval of the figure is within it, and fails if the whole
interval is beyond it; otherwise it is not established. The exit code is 1 if a limit is not met,
otherwise 3 if one is not established, otherwise 0 ([expectations](expect.md)). A *published* limit
comes from the vendor of the store or of a platform that runs it. A *rule of thumb* comes from
experience, or from a similar use. Some vendors publish no limit that can be measured on storage:
the profile of such a store reports the figures, and `--expect` takes limits of your own.
";

/// Returns docs/stores.md, ending in one newline.
pub fn stores_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for store in ALL.iter() {
        let Store { name, aliases, title, about, note, load, limits } = store;
        let also = match aliases.join(", ") {
            names if names.is_empty() => String::new(),
            names => format!(" (also {names})"),
        };
        let _ = write!(page, "\n## {name}\n{title}{also}. Load: {about}.\n");
        match load {
            Load::Instance(options) => {
                let _ = write!(page, "\n`blockstone run {}`\n", options.join(" "));
            }
            Load::Streams(streams) => {
                if !streams.is_empty() {
                    page.push_str("\n| load | operations | file |\n|---|---|---|\n");
                }
                for stream in streams {
                    let _ = writeln!(page, "| {} | {} |", stream.name, described(stream));
                }
            }
        }
        if !limits.is_empty() {
            page.push_str("\n| limit | standing | stated by | page | dated | read |\n");
            page.push_str("|---|---|---|---|---|---|\n");
        }
        for limit in limits {
            let (source, kind) = (&limit.source, limit.kind.name());
            let _ = writeln!(
                page,
                "| `{}` | {kind} | {} | {} | {} | {} |",
                written(limit),
                limit.whose,
                source.page,
                source.dated,
                source.read
            );
        }
        let _ = write!(page, "\n{note}\n");
    }
    page
}

fn written(limit: &Limit) -> String {
    let each = if limit.each_cpu { " for each processor" } else { "" };
    format!("{}{each}", limit.expect)
}

/// Returns the operations of a stream, and its file, in two cells.
fn described(stream: &Stream) -> String {
    let size = size(stream.block);
    let timed = if stream.flush_alone { ", which alone is timed" } else { "" };
    let flush =
        stream.sync.map_or(String::new(), |sync| format!(", each with {}{timed}", sync.name()));
    let (what, file) = match (stream.op, stream.reserved) {
        (Op::Commit, Some(reserved)) => {
            ("writes", format!("a new one with {reserved} reserved, through the page cache"))
        }
        (Op::Commit, None) => ("writes", "one that grows, through the page cache".to_owned()),
        (Op::Read, _) => ("reads", "the test file, past the page cache".to_owned()),
        _ => ("writes", "the test file, past the page cache".to_owned()),
    };
    let order = if stream.random { "at random places" } else { "in order" };
    format!("{what} of {size} {order}{flush}, {} in flight | {file}", stream.depth)
}

fn size(block: Bytes) -> String {
    if block.get().is_multiple_of(1 << 10) {
        block.to_string()
    } else {
        format!("{} B", block.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{calibrate, run};

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn for_takes_a_time_or_a_store() {
        let of = |text| spelled_out(words(text));
        assert_eq!(of("run --for etcd /d --for 2m"), words("run --store=etcd /d --for 2m"));
        assert_eq!(of("run --for=etcd"), words("run --store=etcd"));
        assert_eq!(of("watch --for etcd"), words("watch --for etcd"), "it measures for no store");
    }

    #[test]
    fn every_limit_is_one_that_the_verb_of_its_load_can_decide() {
        for store in ALL.iter() {
            let verb = match store.load {
                Load::Instance(_) => &run::VERB,
                Load::Streams(_) => &calibrate::VERB,
            };
            let limits: Vec<String> = store.limits.iter().map(|it| it.expect.clone()).collect();
            crate::expect::read(&limits, verb).unwrap();
        }
    }
}
