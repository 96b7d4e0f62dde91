use blockstone_base::hint::Hint as _;
use blockstone_base::rng::Rng;
use blockstone_base::stats;
use blockstone_base::table::{Heading, Row, Table, bytes, count, flag, flow, share, time};
use blockstone_record::manifest::Figure;

use super::*;
use crate::render::json::schema::{Document, Tables};
use crate::render::{json, junit, terminal};

rows! {
    /// Single figures.
    struct Scalars {
        /// How long it took.
        time_ns: u64 = time("time"),
        /// Whether it was compared.
        verified: bool = flag("verified"),
    }
}

const DISKS: &[Heading] = &[
    text("disk", "disk", "Its name."),
    flow("read_bytes_per_s", "read", "Bytes a second."),
    share("busy_share", "busy", "Share of time."),
    bytes("size_bytes", "size", "Its size."),
    count("queue", "queue", "Requests."),
];
const ABOUT: &[(&str, &str)] =
    &[("commit_latency_ns_p99", "A commit."), ("max_iops", "Reads."), ("read_mbps", "Bytes.")];
const TABLES: &[Tables] = &[&[("disks", DISKS), ("any", &[])]];
const DOCUMENT: Document =
    Document::of_tables(("test", 2), "A test", Scalars::COLUMNS, TABLES).with_figures(ABOUT);

fn figure(estimate: Estimate, condemned_by: &[&str]) -> Figure {
    Figure {
        title: String::new(),
        unit: String::new(),
        estimate,
        phase: String::new(),
        condemned_by: condemned_by.iter().map(ToString::to_string).collect(),
    }
}

fn between(low: f64, value: f64, high: f64) -> Estimate {
    Estimate { value, low, high, samples: 9, duration_ns: 1 }
}

fn report() -> Report {
    let mut disks = Table::new("disks", "Disks", DISKS);
    let row = |name: &str, busy: Value| {
        Row::from([name.into(), 2e6.into(), busy, 4096_u64.into(), 3_u64.into()])
    };
    disks.push(row("sda", 0.9.into()));
    disks.push(row("sdb", 0.1.into()));
    disks.push(row("sdc", Value::default()));
    disks.push(row("sdd", 0.0.into()).condemned_by(&["hole".to_owned()]));
    let scalars = [Scalars { time_ns: 5_000_000_000, verified: true }];
    Report {
        verb: "test".into(),
        version: 2,
        sections: vec![Section::of("disks", disks)],
        scalars: Some(Scalars::table("test", "", scalars)),
        summary: [
            ("commit_latency_ns_p99", figure(between(1.8e6, 2.0e6, 2.2e6), &[])),
            ("max_iops", figure(between(900.0, 1000.0, 1100.0), &[])),
            ("read_mbps", figure(between(90.0, 100.0, 110.0), &["hole"])),
        ]
        .map(|(name, figure)| (name.to_owned(), figure))
        .into(),
        ..Report::default()
    }
}

fn became(text: &str) -> Expected {
    let mut report = report();
    let all = parse(text).unwrap();
    for one in &all {
        resolve(one, "test", &[&DOCUMENT]).unwrap();
    }
    judge(&mut report, &all);
    report.expectations.remove(0)
}

#[test]
fn a_limit_is_decided_on_the_whole_interval() {
    use Outcome::{Fail, NotEstablished, Pass};
    for (text, outcome) in [
        ("commit.p99<2.3ms", Pass),
        ("commit.p99 < 2300us", Pass),
        ("commit_latency_ns_p99<=2.2ms", Pass),
        ("commit.p99<2.2ms", NotEstablished),
        ("commit.p99<2ms", NotEstablished),
        ("commit.p99<=1.8ms", NotEstablished),
        ("commit.p99<1.8ms", Fail),
        ("iops>=900", Pass),
        ("iops>900", NotEstablished),
        ("iops>=1000", NotEstablished),
        ("iops>1100", Fail),
        ("iops>=1100", NotEstablished),
        ("iops>=1101", Fail),
        ("iops=1000", NotEstablished),
        ("iops=1200", Fail),
        ("iops!=1200", Pass),
        ("mbps>=1MB/s", NotEstablished),
        ("read.mbps<1kB/s", NotEstablished),
        ("time<6s", Pass),
        ("time<5s", Fail),
        ("verified=yes", Pass),
        ("verified!=yes", Fail),
        ("disks.busy<80%", Fail),
        ("disks[sdb].busy<80%", Pass),
        ("disks[sdc].busy<80%", NotEstablished),
        ("disks[sdd].busy<80%", NotEstablished),
        ("disks[sdx].busy<80%", NotEstablished),
        ("disks.size>=4K", NotEstablished),
        ("disks[sda].size>=4K", Pass),
        ("disks[sda].read_bytes_per_s>1MB/s", Pass),
        ("disks[sda].queue<=3", Pass),
        ("disks[sda].disk=sda", Pass),
    ] {
        let expected = became(text);
        assert_eq!(expected.outcome, outcome, "{text}: {expected:?}");
    }
    assert_eq!(became("disks.busy<80%").why.as_deref(), Some("sda"), "the row that is worst");
    assert_eq!(became("mbps>1MB/s").why.as_deref(), Some("condemned: hole"));
}

#[test]
fn what_cannot_be_decided_is_refused_with_a_hint() {
    for (text, hint) in [
        ("commit.p99", "it compares nothing"),
        ("commit.p99<", "it compares nothing"),
        ("<2ms", "it compares nothing"),
        ("commit.p99<<2ms", "it compares nothing"),
        ("iops>=20,000", "numbers have no comma"),
        ("commit.p99<2", "times are written as"),
        ("commit.p99<2MB", "times are written as"),
        ("iops>=20k", "numbers are written as"),
        ("iops>=nan", "numbers are written as"),
        ("mbps>=500", "rates are written as"),
        ("mbps>=500MB", "rates are written as"),
        ("disks.busy<80", "shares are written as"),
        ("disks.size<80", "sizes are written as"),
        ("verified>yes", "words are compared with"),
        ("comit.p99<2ms", "commit.p99 are known"),
        ("disks.speed<1", "columns of disks are disk, read, busy, size, queue"),
        ("nothing<1", "--expect help lists"),
    ] {
        let error = parse(text)
            .and_then(|all| all.iter().try_for_each(|it| resolve(it, "test", &[&DOCUMENT])));
        let error = error.unwrap_err().told();
        assert!(error.contains(hint) && error.contains("hint: "), "{text}: {error}");
    }
    let several = parse("iops>1, time<6s;\n verified=yes\n").unwrap();
    let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["iops", "time", "verified"]);
}

/// Series of a rate around a limit: the share of wrong answers is that of the interval.
#[test]
fn wrong_passes_and_wrong_fails_are_as_rare_as_the_interval_says() {
    let expectation = &parse("x>=1000").unwrap()[0];
    for (truth, offset) in [(990.0, -1.0), (1_000.0, 0.0), (1_010.0, 1.0)] {
        let mut random = Rng::new(7, 0);
        let series = 200;
        let (mut passes, mut fails) = (0, 0);
        for _ in 0..series {
            let noise = |random: &mut Rng| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            let values: Vec<f64> = (0..40).map(|_| truth + 100.0 * noise(&mut random)).collect();
            let value = stats::mean(&values).unwrap().into();
            let (outcome, _) = expectation.decide(&Found { value, measure: Measure::Count });
            passes += i32::from(outcome == Outcome::Pass);
            fails += i32::from(outcome == Outcome::Fail);
        }
        println!("truth {truth}: {passes} passes, {fails} fails of {series}");
        // 2.5 % of 200 are 5; a binomial count stays below 12 in 99.7 % of samples.
        assert!(offset > 0.0 || passes <= 11, "{passes} wrong passes at {truth}");
        assert!(offset < 0.0 || fails <= 11, "{fails} wrong fails at {truth}");
    }
}

#[test]
fn outcomes_stand_above_the_figures_in_every_medium() {
    let mut report = report();
    report.headline.subject = "/a <b> & \u{1b}[31m".to_owned();
    judge(&mut report, &parse("iops>=900, time<5s, mbps>1MB/s").unwrap());
    let style = terminal::Style { color: false, width: 80 };
    let text = terminal::text(&report, false, &style);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("not as expected: time < 5s"), "{text}");
    let at = |words: &str| lines.iter().rposition(|line| line.contains(words)).unwrap();
    assert!(at("Expectations") < at("iops >= 900"), "{text}");
    assert!(lines[at("iops >= 900")].contains("pass") && lines[at("time < 5s")].contains("FAIL"));
    assert!(lines[at("mbps > 1MB/s")].contains("not established"), "{text}");
    assert!(at("mbps > 1MB/s") < at("Disks"), "{text}");
    let document = json::document(&report);
    let first = serde_json::json!({
        "name": "iops", "limit": ">=900", "value": 1000.0, "low": 900.0, "high": 1100.0,
        "outcome": "pass",
    });
    assert_eq!(document["expectations"][0], first);
    assert!(document["tables"].get(EXPECTATIONS).is_none());
    let schema = jsonschema::validator_for(&DOCUMENT.schema()).unwrap();
    let errors: Vec<_> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.iter().all(|error| error.contains("figures")), "{errors:#?}");
    let xml = junit::document(&report).unwrap();
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
    assert!(xml.contains("name=\"blockstone test &#x2f;a &lt;b&gt; &amp; "), "{xml}");
    assert!(!xml.contains('\u{1b}'), "{xml}");
    judge(&mut report, &parse("iops>=900").unwrap());
    let is_there_once = report.sections.iter().filter(|it| it.id == EXPECTATIONS).count() == 1;
    assert!(is_there_once && report.expectations.len() == 1);
}

#[test]
fn a_limit_for_each_processor_is_multiplied_in_its_unit() {
    let times = |text: &str| parse(text).unwrap().remove(0).times(16).to_string();
    assert_eq!(times("iops>=500"), "iops>=8000");
    assert_eq!(times("mbps >= 30MB/s"), "mbps>=480MB/s");
    assert_eq!(times("mbps>=1.5GB/s"), "mbps>=24GB/s");
    assert_eq!(times("verified=yes"), "verified=yes");
}
