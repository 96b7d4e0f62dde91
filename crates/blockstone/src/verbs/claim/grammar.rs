//! A claim in words: `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`.

use crate::failure::Failure;
use crate::verbs::claim::stated::Claim;
use anyhow::{Result, bail};

use super::links;
use super::words::{Quantity, Words, is_one};

/// Words that precede a link.
const OVER: &[&str] = &["over", "through", "via", "across", "on", "with", "by", "using"];
const MEMORY: &[&str] = &["ram", "memory", "dram", "cache"];
const DATA: &[&str] = &[
    "file", "files", "data", "dataset", "database", "table", "tables", "lun", "luns", "volume",
    "volumes", "device", "devices", "area", "set",
];
const REQUESTS: &[&str] = &[
    "block", "blocks", "request", "requests", "reads", "writes", "read", "write", "i/o", "i/os",
    "io", "ios", "random", "pages", "page", "each",
];
const DIRECT: &[&str] = &["direct", "o_direct", "directio", "unbuffered", "raw"];
/// Words after a number of clients that wait for one request at a time each.
const WAITING: &[&str] = &[
    "reader",
    "readers",
    "writer",
    "writers",
    "session",
    "sessions",
    "thread",
    "threads",
    "process",
    "processes",
    "stream",
    "streams",
];
const LATENCY: &[&str] = &["latency", "latencies", "response"];
/// Sizes up to this are request sizes after `at`, `of` or `in`.
const REQUEST_BYTES_MAX: f64 = 64.0 * 1024.0 * 1024.0;
/// Words without a meaning of their own.
const FILLERS: &str = "\
    a an the and of in at from to into on over through via with by per using within took \
    takes was were is are moved copied written reading writing only about some single one \
    host server machine concurrent concurrently parallel reader readers writer writers \
    stream streams process processes session sessions thread threads buffered cached dd scp \
    copy storage array main different that has have transferred x physical for we get got \
    see ~ ≈ sequential queue time";
const EXAMPLE: &str = "write it as in `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`, or \
                       use the options of `blockstone claim --help`";

/// Parses a claim; a word that is not understood is an error, so that nothing is silently ignored.
pub fn parse(text: &str) -> Result<Claim> {
    let mut words = Words::of(text);
    let mut claim = Claim::default();
    let (mut files, mut of_latency) = (None, false);
    while let Some(word) = words.peek() {
        let expected = is_one(words.last(), OVER);
        if let Some(path) = links::path(&mut words, expected) {
            claim.links.push(path);
        } else if let Some(quantity) = words.quantity() {
            match quantity {
                Quantity::Count(count) if words.take_if(&["x", "×"]) => files = Some(count),
                Quantity::Count(count) if words.is_next(DATA) => files = Some(count),
                Quantity::Count(count) if words.are_waiting(WAITING) => {
                    *claim.in_flight.get_or_insert(0.0) += count;
                }
                Quantity::Count(_) => {}
                Quantity::Seconds(seconds)
                    if std::mem::take(&mut of_latency) || words.take_if(LATENCY) =>
                {
                    once(&mut claim.latency_s, seconds, "a latency")?;
                }
                quantity => take(&mut claim, quantity, &mut words)?,
            }
        } else if let Some(seconds) = words.named_time() {
            once(&mut claim.time_s, seconds, "a time")?;
        } else if let Some(depth) = words.depth() {
            once(&mut claim.in_flight, depth, "requests in flight")?;
        } else if words.take_if(LATENCY) {
            of_latency = true;
        } else if words.take_if(DIRECT) {
            claim.direct = true;
            words.take_if(&["i/o", "io"]);
        } else if !words.take_if(MEMORY) && !words.take_if(DATA) && !words.take_if(REQUESTS) {
            if !FILLERS.split(' ').any(|filler| filler.eq_ignore_ascii_case(word)) {
                bail!(Failure::new(
                    format!("understand the claim: `{word}` is not known"),
                    EXAMPLE
                ));
            }
            words.next();
        }
    }
    if let (Some(data), Some(files)) = (&mut claim.data_bytes, files) {
        *data *= files;
    }
    if claim == Claim::default() {
        bail!(Failure::new("understand the claim: it states nothing", EXAMPLE));
    }
    Ok(claim)
}

fn take(claim: &mut Claim, quantity: Quantity, words: &mut Words<'_>) -> Result<()> {
    match quantity {
        Quantity::BytesPerS(rate) => once(&mut claim.rate, rate, "a rate"),
        Quantity::BitsPerS(rate) => once(&mut claim.rate, rate / 8.0, "a rate"),
        Quantity::Iops(iops) => once(&mut claim.iops, iops, "requests a second"),
        Quantity::Seconds(seconds) => once(&mut claim.time_s, seconds, "a time"),
        Quantity::Bytes(bytes) => take_bytes(claim, bytes, words),
        Quantity::Bits(bits) => take_bytes(claim, bits / 8.0, words),
        Quantity::Count(_) => Ok(()),
    }
}

/// Assigns a number of bytes to what it is the size of, judging by the words around it.
fn take_bytes(claim: &mut Claim, bytes: f64, words: &mut Words<'_>) -> Result<()> {
    let before = words.before_quantity();
    words.take_if(&["of"]);
    words.take_if(&["main", "physical"]);
    if words.take_if(MEMORY) {
        return once(&mut claim.memory_bytes, bytes, "memory");
    }
    let small = bytes <= REQUEST_BYTES_MAX;
    if words.is_next(DATA) {
        return once(&mut claim.data_bytes, bytes, "the size of the data");
    }
    let of_requests = claim.iops.is_some() && claim.io_bytes.is_none();
    if small && (words.is_next(REQUESTS) || is_one(before, &["at"]) || of_requests) {
        return once(&mut claim.io_bytes, bytes, "the size of a request");
    }
    if is_one(before, &["from", "of"]) {
        return once(&mut claim.data_bytes, bytes, "the size of the data");
    }
    once(&mut claim.moved_bytes, bytes, "bytes that were moved")
}

fn once(slot: &mut Option<f64>, value: f64, what: &str) -> Result<()> {
    if slot.replace(value).is_some() {
        bail!(Failure::new(format!("understand the claim: it states {what} twice"), EXAMPLE));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_apart_by_the_words_around_them() {
        let claim = parse("2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM").unwrap();
        let sizes = (claim.data_bytes, claim.memory_bytes, claim.moved_bytes, claim.io_bytes);
        assert_eq!(sizes, (Some(512e6), Some(16e9), None, None));
        assert_eq!((claim.rate, claim.link_bytes_per_s()), (Some(2e9), Some(400e6)));

        let claim = parse("200k IOPS of 8K blocks over 2 x 8Gb FC, direct").unwrap();
        assert_eq!((claim.iops, claim.io_bytes, claim.direct), (Some(2e5), Some(8_192.0), true));

        let claim = parse("20 GB in 180 s over GbE").unwrap();
        assert_eq!((claim.moved_bytes, claim.time_s), (Some(20e9), Some(180.0)));

        let claim = parse("40 TB a week").unwrap();
        assert_eq!(claim.bytes_per_s().map(|rate| (rate / 1e5).round()), Some(661.0));

        let claim = parse("2.9 GB/s by 6 concurrent readers of 512 MB files at 1M").unwrap();
        assert_eq!((claim.data_bytes, claim.io_bytes), (Some(512e6), Some(1_048_576.0)));

        let claim = parse("1 GB/s from 6 files of 512 MB with 8 GB of memory").unwrap();
        assert_eq!((claim.data_bytes, claim.memory_bytes), (Some(3.072e9), Some(8e9)));
    }

    #[test]
    fn requests_in_flight_and_their_latency_are_told_from_data_and_time() {
        for (text, expected) in [
            ("128 readers at 2,400 reads/s, 900 ms latency", (Some(128.0), Some(0.9), None)),
            ("latency of 7 ms from 130,000 IOPS", (None, Some(0.007), None)),
            ("2,800 reads/s of 8K at queue depth 4", (Some(4.0), None, None)),
            ("2,800 reads/s, 32 in flight, in 180 s", (Some(32.0), None, Some(180.0))),
            ("64 concurrent readers and 64 writers at 900 IOPS", (Some(128.0), None, None)),
        ] {
            let claim = parse(text).unwrap();
            assert_eq!((claim.in_flight, claim.latency_s, claim.time_s), expected, "{text}");
        }
        let claim = parse("128 readers at 2,400 reads/s").unwrap();
        assert_eq!(claim.latency_of_rate_s().map(|s| (s * 1e3).round()), Some(53.0));
    }

    #[test]
    fn what_is_not_understood_is_not_left_out() {
        for (text, said) in [
            ("2 GB/s over quantum foam", "`quantum`"),
            ("", "nothing"),
            ("over the", "nothing"),
            ("2 GB/s 3 GB/s", "a rate twice"),
            ("2 GB/s over FC", "`FC`"),
            ("5 furlongs", "`furlongs`"),
        ] {
            let error = crate::testing::told(&parse(text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
            assert!(error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
