//! `blockstone claim`: other people's numbers, in every medium.

use std::process::Command;

use blockstone_testkit::{blockstone_binary, run};

use super::bad_input::refused;
use super::{Place, Turn};

fn claim(arguments: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.arg("claim").args(arguments);
    command
}

#[test]
fn published_numbers_are_judged_as_their_readers_judged_them() {
    let _turn = Turn::beside();
    let cases = [
        ("2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM", "memory"),
        ("815 MB/s reading one 512 MB file at 1M on 16 GB RAM", "memory"),
        ("1.46 GB/s by 2 readers of 512 MB files over 2 x 2Gb FC on 16GB of memory", "memory"),
        ("512 MB in 0.6 s on a host with 16 GB memory", "memory"),
        ("450 MB/s over 2x2Gb FC from 32 GB of data on 16 GB RAM", "above-link"),
        ("450 MB/s over 2x2Gb FC, direct", "above-link"),
        ("20 GB in 180 s over GbE", "possible"),
        ("20 GB in 180 s over 100BaseT", "above-link"),
        ("2 GB in 180 s over 100BaseT", "possible"),
        ("1850 MB/s over 20Gb InfiniBand", "possible"),
        ("1 GB/s over 1GbE", "wrong-unit"),
        ("900 MB/s, 9 GB in 80 s", "wrong-unit"),
        ("40 TB a week over GbE", "possible"),
        ("200k IOPS of 8K blocks over PCIe 3.0 x4, direct", "possible"),
        ("1.6 GB/s", "unknown"),
        ("180 s over GbE", "unknown"),
        ("1gb/s over 1gb Ethernet", "wrong-unit"),
        ("1000 MB/s, 512 MB in 2 s", "contradiction"),
        ("2097152 writes of 4K in 283 s", "unknown"),
        ("20,000 IOPS of 65 spindles", "doubtful"),
    ];
    for (text, expected) in cases {
        let ran = run(claim(&[text]).arg("--json"));
        let document = ran.json();
        assert_eq!(document["outcome"], expected, "{text}: {document:#}");
        let wrong = matches!(expected, "memory" | "above-link" | "wrong-unit" | "contradiction");
        assert_eq!(ran.code, Some(if wrong { 3 } else { 0 }), "{text}");
    }
}

#[test]
fn a_claim_is_struck_through_with_its_reasons_in_every_medium() {
    let (place, text) = (Place::beside(), "2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM");
    let page = place.runs().join("claim.html");
    let ran = run(claim(&[text, "--html"]).arg(&page));
    assert!(ran.stdout.starts_with("memory: 2 GB/s says nothing about the storage"), "{ran:#?}");
    assert!(ran.stdout.contains("~~2,000 MB/s~~  condemned: above-link, memory-test"), "{ran:#?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("the page cache can hold 100 %"), "the page has the evidence");
    let options = ["--rate", "2GB/s", "--link", "2x2Gb FC", "--data", "512MB", "--memory", "16GB"];
    let [words, options] = [&[text][..], &options].map(|it| run(claim(it).arg("--json")).json());
    assert_eq!(words, options, "options say the same as words");
    let link = options["link_bytes_per_s"].as_f64().unwrap();
    assert!((link - 413_259_668.5).abs() < 1.0, "what full frames carry: {link}");
    assert_eq!(options["tables"]["links"][0]["link"], "2 × Fibre Channel 2 Gb/s");
    assert!(options["tables"].get("figures").is_none(), "the single figures are said once");
    let csv = run(&mut claim(&[text, "--csv=figures"])).stdout;
    let mut lines = csv.lines();
    assert!(lines.next().is_some_and(|names| names.starts_with("outcome,rate")), "{csv}");
    assert!(lines.next().is_some_and(|row| row.starts_with("memory,2000000000")), "{csv}");
}

#[test]
fn what_is_not_understood_is_refused() {
    let place = Place::beside();
    let cases: &[(&[&str], &str)] = &[
        (&["2 GB/s over quantum foam"], "`quantum` is not known"),
        (&["2 GB/s", "--rate", "3GB/s"], "state it already"),
        (&["--rate", "2GB"], "not a rate"),
        (&["--rate", "2GB/s", "--link", "FC"], "not understood"),
        (&["--rate", "2GB/s", "--data", "0"], "greater than zero"),
        (&["of the"], "states nothing"),
        (&[], "required"),
    ];
    for (arguments, said) in cases {
        let what = refused(&place, &mut claim(arguments));
        assert!(what.contains(said), "{arguments:?}: {what}");
    }
}
