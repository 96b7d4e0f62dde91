//! Numbers of one claim that contradict each other.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::{format_ns, three_digits};
use blockstone_base::verdict::Weight;

use crate::verbs::claim::stated::{Claim, RATE, RATIO};

const ABOUT: About = About {
    id: "contradiction",
    weight: Weight::Condemns,
    doc: "Two numbers of a claim that arithmetic connects do not agree.",
    threshold: "In a claim: the stated rate and requests × their size, bytes ÷ time, requests ÷ \
                time differ by more than 10 %; a latency differs from requests in flight ÷ \
                requests a second by more than 10 %; or a ratio is not that of the two values, \
                neither as times, nor as a share, nor as percent more or less, in either order, \
                beyond the rounding of its last digit and 1 % for that of the values. Inconclusive \
                if no number is stated twice.",
    cause: "One of the numbers is of another run, another unit or another base than the claim \
            says.",
    next: "Ask for the raw output, and for what each number was divided by.",
};

pub(super) const RULE: RuleOf<Claim> = RuleOf::new(&ABOUT, check);

/// Largest difference between two rates that rounding explains.
const ROUNDING_RATIO: f64 = 0.1;

fn check(claim: &Claim) -> Judgement {
    let (mut wrong, mut right, mut concerns) = (Vec::new(), Vec::new(), Vec::new());
    for (is_wrong, evidence) in rates(claim).into_iter().chain(latency(claim)) {
        if is_wrong {
            wrong.push(evidence);
            concerns = vec![RATE.to_owned()];
        } else {
            right.push(evidence);
        }
    }
    if let Some((is_wrong, evidence)) = ratio(claim) {
        if is_wrong {
            wrong.push(evidence);
            concerns.push(RATIO.to_owned());
        } else {
            right.push(evidence);
        }
    }
    match (wrong.is_empty(), right.is_empty()) {
        (false, _) => Judgement::fail(wrong.join("; "), concerns),
        (true, false) => Judgement::pass(right.join("; ")),
        (true, true) => Judgement::inconclusive("no number is stated twice"),
    }
}

/// Returns whether two numbers differ, and how they were compared.
type Compared = (bool, String);

fn rates(claim: &Claim) -> Vec<Compared> {
    let differ = |a: f64, b: f64| (a / b - 1.0).abs() > ROUNDING_RATIO;
    let rate = |bytes_per_s: f64| format!("{} MB/s", three_digits(bytes_per_s / 1e6));
    let of_rate = [
        (claim.requested_bytes_per_s(), "requests × size"),
        (claim.moved_bytes_per_s(), "bytes ÷ time"),
    ];
    let of_rate = of_rate.into_iter().filter_map(|(other, name)| {
        let (stated, other) = (claim.rate?, other?);
        let text = format!("{} is stated, {name} is {}", rate(stated), rate(other));
        Some((differ(stated, other), text))
    });
    let of_requests = claim.iops.zip(claim.counted_requests_per_s()).map(|(stated, other)| {
        let [a, b] = [stated, other].map(three_digits);
        (differ(stated, other), format!("{a} requests/s are stated, requests ÷ time is {b}/s"))
    });
    of_rate.chain(of_requests).collect()
}

/// Compares a latency with that of the requests in flight and their rate (Little's law).
fn latency(claim: &Claim) -> Option<Compared> {
    let (stated, other) = (claim.latency_s?, claim.latency_of_rate_s()?);
    let words = match claim.in_flight {
        Some(count) => format!("{} requests in flight ÷ IOPS", three_digits(count)),
        None => "1 ÷ IOPS".to_owned(),
    };
    // The number in flight may be unknown; then a longer latency means that there are more of them.
    let differs = match claim.in_flight {
        Some(_) => (stated / other - 1.0).abs() > ROUNDING_RATIO,
        None => stated < 0.99 * other,
    };
    let time = |seconds: f64| format_ns(seconds * 1e9);
    Some((differs, format!("{} is stated, {words} is {}", time(stated), time(other))))
}

fn ratio(claim: &Claim) -> Option<Compared> {
    let compared = claim.compared?;
    let stated = compared.stated?;
    let of = compared.ratio();
    let percent = |share: f64| three_digits((share * 100.0).abs());
    let direction = if of < 1.0 { "less" } else { "more" };
    let text = format!(
        "the first ÷ the second is {}: {} % of it, {} % {direction}; {stated} is stated",
        three_digits(of),
        percent(of),
        percent(of - 1.0)
    );
    Some((!stated.is_of(of), text))
}
