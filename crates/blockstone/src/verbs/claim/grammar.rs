//! A claim in words: `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`.

use crate::failure::Failure;
use crate::verbs::claim::stated::{Claim, Compared, Ratio, RatioForm};
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
const DISKS: &[&str] =
    &["disk", "disks", "spindle", "spindles", "drive", "drives", "hdd", "hdds", "ssd", "ssds"];
/// Words between a number and what it is a number of.
const KINDS: &[&str] =
    &["different", "single", "separate", "equal", "small", "large", "random", "sequential"];
/// Words before the value that another is compared with.
const AGAINST: &[&str] = &["against", "instead", "vs", "versus", "than", "compared"];
const MORE: &[&str] = &["more", "faster", "higher", "above", "better", "longer", "increase"];
const LESS: &[&str] =
    &["less", "fewer", "slower", "lower", "below", "shorter", "decrease", "reduction", "saved"];
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
    see ~ ≈ sequential queue time elapsed as is each";
const EXAMPLE: &str = "write it as in `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`, or \
                       use the options of `blockstone claim --help`";

/// Parses a claim; a word that is not understood is an error, so that nothing is silently ignored.
pub fn parse(text: &str) -> Result<Claim> {
    let mut words = Words::of(text);
    let mut claim = Claim::default();
    let (mut files, mut of_latency) = (None, false);
    // The last value that another can be compared with.
    let mut last = None;
    while let Some(word) = words.peek() {
        let expected = is_one(words.last(), OVER);
        if let Some(path) = links::path(&mut words, expected) {
            claim.links.push(path);
        } else if let Some(protocol) = links::protocol(&mut words) {
            claim.carries.protocol = Some(protocol);
        } else if let Some(mtu) = links::mtu(&mut words) {
            claim.carries.mtu = Some(mtu);
        } else if words.take_if(AGAINST) {
            words.take_if(&["of", "with", "to"]);
            compare(&mut claim, last, &mut words)?;
        } else if let Some(quantity) = words.quantity() {
            let ratio = ratio(quantity, &mut words);
            if let Some(ratio) = ratio {
                state(&mut claim, ratio)?;
                continue;
            }
            last = value(quantity).or(last);
            match quantity {
                Quantity::Count(count) => count_of(&mut claim, count, &mut files, &mut words)?,
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
    claim.settle_links();
    if claim.compared.is_some_and(|compared| compared.first.is_nan()) {
        bail!(Failure::new(
            "understand the claim: it states a ratio of values that it does not state",
            "write it as in `1,800 MB/s against 100 MB/s: 18x`"
        ));
    }
    if claim == Claim::default() {
        bail!(Failure::new("understand the claim: it states nothing", EXAMPLE));
    }
    Ok(claim)
}

/// Assigns a number without a unit to what it is a number of.
fn count_of(
    claim: &mut Claim,
    count: f64,
    files: &mut Option<f64>,
    words: &mut Words<'_>,
) -> Result<()> {
    let digits = words.last();
    if words.are_waiting(WAITING) {
        *claim.in_flight.get_or_insert(0.0) += count;
        return Ok(());
    }
    let times = words.take_if(&["x", "×"]);
    while words.take_if(KINDS) {}
    if words.is_next(DISKS) {
        words.next();
        return once(&mut claim.disks, count, "a number of disks");
    }
    if words.is_next(DATA) {
        return once(files, count, "a number of files");
    }
    if words.is_next(REQUESTS) {
        return once(&mut claim.requests, count, "a number of requests");
    }
    // `49,395 × 32K`, `2,097,152 4K writes`.
    let size = words.clone().quantity();
    match size {
        Some(Quantity::Bytes(bytes)) if bytes <= REQUEST_BYTES_MAX => {
            let mut ahead = words.clone();
            ahead.quantity();
            if !ahead.is_next(DATA) && (times || ahead.is_next(REQUESTS)) {
                *words = ahead;
                once(&mut claim.io_bytes, bytes, "the size of a request")?;
                return once(&mut claim.requests, count, "a number of requests");
            }
            once(files, count, "a number of files")
        }
        Some(Quantity::Bytes(_)) => once(files, count, "a number of files"),
        _ => bail!(Failure::new(
            format!("understand the claim: `{digits}` is a number of nothing that is known"),
            EXAMPLE
        )),
    }
}

/// Reads the rest of a ratio: `18 x`, `85 % more`, `75 % of`.
fn ratio(quantity: Quantity, words: &mut Words<'_>) -> Option<Ratio> {
    let rounding = 0.5 / 10_f64.powi(words.decimals() as i32);
    let of = |form, value| Some(Ratio { form, value, rounding });
    match quantity {
        Quantity::Percent(value) if words.take_if(MORE) => of(RatioForm::More, value),
        Quantity::Percent(value) if words.take_if(LESS) => of(RatioForm::Less, value),
        Quantity::Percent(value) if words.take_if(&["of"]) => of(RatioForm::Share, value),
        Quantity::Percent(value) => of(RatioForm::Percent, value),
        Quantity::Times(value) => of(RatioForm::Times, value),
        Quantity::Count(value) => words.attempt(|words| {
            words.take_if(&["x", "×", "times", "fold", "-fold"]).then_some(())?;
            if words.clone().quantity().is_some() {
                return None;
            }
            words.take_if(&["as"]);
            let _ = words.take_if(MORE) || words.take_if(LESS);
            of(RatioForm::Times, value)
        }),
        _ => None,
    }
}

/// Returns a quantity that can be compared with another.
fn value(quantity: Quantity) -> Option<Quantity> {
    let is_bare =
        matches!(quantity, Quantity::Count(_) | Quantity::Percent(_) | Quantity::Times(_));
    (!is_bare).then_some(quantity)
}

/// Reads the value that the last one is compared with, which has the same unit.
fn compare(claim: &mut Claim, last: Option<Quantity>, words: &mut Words<'_>) -> Result<()> {
    let of_one_unit = |first, second| match (first, second) {
        (Quantity::Bytes(a), Quantity::Bytes(b))
        | (Quantity::Bits(a), Quantity::Bits(b))
        | (Quantity::BytesPerS(a), Quantity::BytesPerS(b))
        | (Quantity::BitsPerS(a), Quantity::BitsPerS(b))
        | (Quantity::Iops(a), Quantity::Iops(b))
        | (Quantity::Seconds(a), Quantity::Seconds(b)) => Some((a, b)),
        _ => None,
    };
    let second = words.quantity();
    let pair = last.zip(second).and_then(|(first, second)| of_one_unit(first, second));
    let Some((first, second)) = pair.filter(|_| claim.compared.is_none_or(|it| it.second.is_nan()))
    else {
        bail!(Failure::new(
            "understand the claim: it does not compare two values of one unit",
            "write it as in `1,800 MB/s against 100 MB/s: 18x`"
        ));
    };
    let stated = claim.compared.and_then(|compared| compared.stated);
    claim.compared = Some(Compared { first, second, stated });
    Ok(())
}

/// Keeps a stated ratio. The values may come before it or after.
fn state(claim: &mut Claim, ratio: Ratio) -> Result<()> {
    let open = Compared { first: f64::NAN, second: f64::NAN, stated: None };
    let compared = claim.compared.get_or_insert(open);
    if compared.stated.replace(ratio).is_some() {
        bail!(Failure::new("understand the claim: it states a ratio twice", EXAMPLE));
    }
    Ok(())
}

fn take(claim: &mut Claim, quantity: Quantity, words: &mut Words<'_>) -> Result<()> {
    match quantity {
        Quantity::BytesPerS(rate) => once(&mut claim.rate, rate, "a rate"),
        Quantity::BitsPerS(rate) => once(&mut claim.rate, rate / 8.0, "a rate"),
        Quantity::Iops(iops) => once(&mut claim.iops, iops, "requests a second"),
        Quantity::Seconds(seconds) => once(&mut claim.time_s, seconds, "a time"),
        Quantity::Bytes(bytes) => take_bytes(claim, bytes, words),
        Quantity::Bits(bits) => take_bytes(claim, bits / 8.0, words),
        // Ratios and numbers without a unit are read before.
        Quantity::Count(_) | Quantity::Percent(_) | Quantity::Times(_) => Ok(()),
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
    let counts_requests = claim.iops.is_some() || claim.requests.is_some();
    let of_requests = counts_requests && claim.io_bytes.is_none();
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
        assert_eq!(claim.rate, Some(2e9));
        assert_eq!(claim.link_bytes_per_s().map(|rate| (rate / 1e6).round()), Some(413.0));

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
    fn requests_are_counted_whatever_the_order() {
        for (text, requests, size) in [
            ("2097152 writes of 4K in 283 s", 2_097_152.0, 4_096.0),
            ("2,097,152 requests of 4K in 283 s", 2_097_152.0, 4_096.0),
            ("2,097,152 blocks of 8K in 283 s", 2_097_152.0, 8_192.0),
            ("2,097,152 4K writes in 283 s", 2_097_152.0, 4_096.0),
            ("4,092,389 × 32 KiB in 82.9 s", 4_092_389.0, 32_768.0),
            ("49,395 x 32K in 9 s", 49_395.0, 32_768.0),
        ] {
            let claim = parse(text).unwrap();
            assert_eq!((claim.requests, claim.io_bytes), (Some(requests), Some(size)), "{text}");
            let rate = requests * size / claim.time_s.unwrap();
            assert_eq!(claim.bytes_per_s(), Some(rate), "{text}");
        }
        let claim = parse("13,142 IOPS of 65 disks").unwrap();
        assert_eq!((claim.iops, claim.disks), (Some(13_142.0), Some(65.0)));
    }

    #[test]
    fn what_is_compared_is_told_from_what_is_claimed() {
        let compared = |text: &str| parse(text).unwrap().compared.unwrap();
        let twice = compared("25.9 s against 12.4 s: 52 % less");
        assert_eq!((twice.first, twice.second), (25.9, 12.4));
        assert!(twice.stated.unwrap().is_of(twice.ratio()));
        for (text, holds) in [
            ("1,800 MB/s against 100 MB/s, 18x", true),
            ("18x: 1,800 MB/s against 100 MB/s", true),
            ("1,800 MB/s instead of 100 MB/s, 19 times faster", false),
            ("12,633 writes/s against 7,410 writes/s, 70 % more", true),
            ("12,633 writes/s against 7,410 writes/s, 85 %", false),
            ("12.4 s against 50.46 s: 75 % less", true),
            ("12.4 s against 50.46 s: 4.1 times faster", true),
            ("99.7% less: 3 ms against 1 s", true),
        ] {
            let compared = compared(text);
            assert_eq!(compared.stated.unwrap().is_of(compared.ratio()), holds, "{text}");
        }
    }

    #[test]
    fn protocols_and_frames_are_of_the_ethernet_beneath_them() {
        let carries = |text: &str| {
            let link = parse(text).unwrap().link_bytes_per_s().unwrap();
            (link / 1e6).round() as u32
        };
        assert_eq!(carries("110 MB/s by NFS over GbE"), 124);
        assert_eq!(carries("110 MB/s over GbE with MTU 1500"), 122);
        assert_eq!(carries("1 GB/s by iSCSI over 10GbE, MTU 1500"), 1_186);
        assert_eq!(carries("1 GB/s over 10 Gb iSCSI with jumbo frames"), 1_239);
        assert_eq!(carries("1gb/s over 1gb Ethernet"), 124);
    }

    #[test]
    fn what_is_not_understood_is_not_left_out() {
        for (text, said) in [
            ("2 GB/s over quantum foam", "`quantum`"),
            ("", "nothing"),
            ("over the", "nothing"),
            ("2 GB/s 3 GB/s", "a rate twice"),
            ("2 GB/s over FC", "`FC`"),
            ("5 furlongs", "`5` is a number of nothing"),
            ("2 GB/s in 2008", "`2008`"),
            ("85 % more", "does not state"),
            ("2 GB/s against 5 s", "of one unit"),
        ] {
            let error = crate::testing::told(&parse(text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
            assert!(error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
