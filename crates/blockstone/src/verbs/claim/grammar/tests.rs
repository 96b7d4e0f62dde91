//! Claims as they are understood.

use super::*;
use crate::verbs::claim::stated::{Compared, Span};

fn value(span: Option<Span>) -> Option<f64> {
    span.map(Span::value)
}

#[test]
fn sizes_are_told_apart_by_the_words_around_them() {
    let claim = parse("2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM").unwrap();
    let sizes = [claim.data_bytes, claim.memory_bytes, claim.moved_bytes, claim.io_bytes];
    assert_eq!(sizes.map(value), [Some(512e6), Some(16e9), None, None]);
    assert_eq!(claim.stated_bytes_per_s(), Some(2e9));
    assert_eq!(claim.link_bytes_per_s().map(|rate| (rate / 1e6).round()), Some(413.0));

    let claim = parse("200k IOPS of 8K blocks over 2 x 8Gb FC, direct").unwrap();
    assert_eq!((claim.requests_per_s(), value(claim.io_bytes)), (Some(2e5), Some(8_192.0)));
    assert!(claim.direct);

    let claim = parse("20 GB in 180 s over GbE").unwrap();
    assert_eq!((value(claim.moved_bytes), value(claim.time_s)), (Some(20e9), Some(180.0)));

    let claim = parse("40 TB a week").unwrap();
    assert_eq!(claim.bytes_per_s().map(|rate| (rate / 1e5).round()), Some(661.0));

    let claim = parse("2.9 GB/s by 6 concurrent readers of 512 MB files at 1M").unwrap();
    assert_eq!((value(claim.data_bytes), value(claim.io_bytes)), (Some(512e6), Some(1_048_576.0)));

    let claim = parse("1 GB/s from 6 files of 512 MB with 8 GB of memory").unwrap();
    assert_eq!((value(claim.data_bytes), value(claim.memory_bytes)), (Some(3.072e9), Some(8e9)));
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
        let seen = (value(claim.in_flight), value(claim.latency_s), value(claim.time_s));
        assert_eq!(seen, expected, "{text}");
    }
    let claim = parse("128 readers at 2,400 reads/s").unwrap();
    assert_eq!(value(claim.latency_of_rate_s()).map(|s| (s * 1e3).round()), Some(53.0));
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
        let seen = (value(claim.requests), value(claim.io_bytes));
        assert_eq!(seen, (Some(requests), Some(size)), "{text}");
        let rate = requests * size / value(claim.time_s).unwrap();
        assert_eq!(claim.bytes_per_s(), Some(rate), "{text}");
    }
    let claim = parse("13,142 IOPS of 65 disks").unwrap();
    assert_eq!(claim.requests_per_s(), Some(13_142.0));
    assert_eq!(claim.disks.map(|disks| disks.count), Some(65.0));
}

#[test]
fn what_is_compared_is_told_from_what_is_claimed() {
    let compared = |text: &str| parse(text).unwrap().compared.unwrap();
    let values = |it: &Compared| it.values.map(|(a, b)| (a.value(), b.value()));
    assert_eq!(values(&compared("25.9 s against 12.4 s: 52 % less")), Some((25.9, 12.4)));
    for (text, holds) in [
        ("1,800 MB/s against 100 MB/s, 18x", true),
        ("18x: 1,800 MB/s against 100 MB/s", true),
        ("1,800 MB/s instead of 100 MB/s, 19 times faster", false),
        ("12,633 writes/s against 7,410 writes/s, 70 % more", true),
        ("12,633 writes/s against 7,410 writes/s, 85 %", false),
        ("12.4 s against 50.46 s: 75 % less", true),
        ("12.4 s against 50.46 s: 4.1 times faster", true),
        ("99.7% less: 3 ms against 1 s", true),
        ("1,766.85 s against 103.31 s: 17.1X", true),
        ("41 MB/s is 10 % of 412 MB/s", true),
        ("41 MB/s is 20 % of 412 MB/s", false),
        ("from 521 s to 23.9 s, 95 % less", true),
        ("23.9 s, down from 521 s: 21.8 times faster", true),
        ("50.46 s → 12.4 s, 4.07x, 75 % less", true),
        ("12 GB/s, twice as fast as 6 GB/s", true),
    ] {
        let compared = compared(text);
        let ratio = compared.ratio().unwrap();
        assert_eq!(compared.stated.iter().all(|it| it.is_of(ratio)), holds, "{text}");
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
        ("2 GB/s over FC", "`FC` has no speed"),
        ("7 GB/s over PCIe 4.0", "`PCIe` has no generation and number of lanes"),
        ("200 MB/s over 3Gb FC", "no document defines Fibre Channel 3 Gb/s"),
        ("2 GB/s, not cached", "`not`"),
        ("200 MB/s each", "`each`"),
        ("5 furlongs", "`5` is a number of nothing"),
        ("2 GB/s in 2008", "`2008`"),
        ("IOPS of the array", "`IOPS` has no number"),
        ("85 % more", "does not state"),
        ("2 GB/s against 5 s", "of one unit"),
    ] {
        let error = crate::testing::told(&parse(text).unwrap_err());
        assert!(error.contains(said), "{text}: {error}");
        assert!(error.contains("\nhint: "), "{text}: {error}");
    }
}

#[test]
fn rates_of_reads_and_writes_stand_beside_each_other() {
    for (text, expected) in [
        ("7,450/6,900 MB/s", vec![("read", 7.45e9), ("written", 6.9e9)]),
        (
            "7,450 MB/s sequential read, 6,900 MB/s write",
            vec![("sequential read", 7.45e9), ("sequential written", 6.9e9)],
        ),
        ("read: 7 GB/s, write: 5 GB/s", vec![("read", 7e9), ("written", 5e9)]),
        ("7000MB/s / 5000MB/s", vec![("read", 7e9), ("written", 5e9)]),
        ("1462MiB/s (1533MB/s), 1462MiB/s-1462MiB/s", vec![("", 1_462.0 * 1_048_576.0)]),
    ] {
        let claim = parse(text).unwrap();
        let seen = claim.rates.iter().map(|rate| (rate.of.to_string(), rate.span.value()));
        let expected = expected.into_iter().map(|(of, rate)| (of.to_owned(), rate));
        assert_eq!(seen.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{text}");
    }
    let claim = parse("550 MB/s sequential, 98k IOPS random 4K").unwrap();
    assert!(claim.requested_and_stated().is_empty(), "these are two measurements");
}

#[test]
fn output_of_tools_is_understood() {
    let claim = parse("read: IOPS=23.1k, BW=90.2MiB/s (94.5MB/s)(902MiB/10001msec)").unwrap();
    assert_eq!(claim.requests_per_s(), Some(23_100.0));
    assert_eq!(value(claim.moved_bytes), Some(902.0 * 1_048_576.0));
    assert_eq!(value(claim.time_s), Some(10.001));
    let text = "WRITE: bw=1462MiB/s (1533MB/s), 1462MiB/s-1462MiB/s (1533MB/s-1533MB/s), \
                io=30.0GiB (32.2GB), run=21007-21007msec";
    let claim = parse(text).unwrap();
    assert_eq!(claim.rates[0].of.to_string(), "written");
    assert_eq!(value(claim.time_s), Some(21.007));
    let claim = parse("1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.23 s, 873 MB/s").unwrap();
    assert_eq!(value(claim.moved_bytes), Some(1_073_741_824.0));
    let claim = parse("Timing cached reads: 7864 MB in 2.00 seconds = 3935.41 MB/sec").unwrap();
    assert!(claim.cached);
    let claim = parse("4K random read, iodepth=32, numjobs=4: 98k IOPS").unwrap();
    let seen = (value(claim.in_flight), value(claim.io_bytes));
    assert_eq!(seen, (Some(128.0), Some(4_096.0)));
}

#[test]
fn disks_and_ports_are_counted() {
    let claim = parse("13,142 IOPS from 65 x 15k SAS drives").unwrap();
    let disks = claim.disks.unwrap();
    assert_eq!((disks.count, disks.rpm, disks.rotating), (65.0, Some(15_000.0), true));
    let claim = parse("6 GB/s and 72 disks").unwrap();
    assert_eq!(claim.disks.map(|disks| disks.count), Some(72.0));
    let claim = parse("180 IOPS per disk, 84 disks").unwrap();
    assert_eq!(claim.requests_per_s(), Some(15_120.0));
    let claim = parse("400 MB/s per port over 4 x 4Gb FC").unwrap();
    assert_eq!(claim.bytes_per_s(), Some(1.6e9));
    let claim = parse("3 GB/s over 4 ports of 8Gb FC").unwrap();
    assert_eq!(claim.link(), "4 × Fibre Channel 8 Gb/s");
    let claim = parse("1,600 MB/s full duplex over 8Gb FC").unwrap();
    assert_eq!(claim.link_bytes_per_s().map(|rate| (rate / 1e6).round()), Some(1_653.0));
}
