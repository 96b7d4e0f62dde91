//! Numbers of one claim that contradict each other.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::{format_ns, three_digits};
use blockstone_base::verdict::Weight;

use crate::verbs::claim::stated::{Claim, RATE, RATIO, Ratio, Span};

const ABOUT: About = About {
    id: "contradiction",
    weight: Weight::Condemns,
    doc: "Two numbers of a claim that arithmetic connects do not agree.",
    threshold: "In a claim: the stated rate and requests × their size, bytes ÷ time, requests ÷ \
                time differ by more than 10 %, which allows for decimal and binary prefixes; a \
                latency differs from requests in flight ÷ requests a second by more than 10 %; or \
                a ratio is not that of the two values, neither as times, nor as a share, nor as \
                percent more or less, in either order, beyond the rounding of its last digit and \
                1 % for that of the values. Rates of sequential and of random requests are not \
                compared; one that `and` joins to requests a second may be another measurement, \
                and contradicts them only if it is lower. Inconclusive if no number is stated \
                twice.",
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
    for (is_wrong, evidence) in ratios(claim) {
        if is_wrong {
            wrong.push(evidence);
            concerns.retain(|concern| concern != RATIO);
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
    let differ = |a: Span, b: Span| a.is_beside(b, ROUNDING_RATIO);
    let rate = |span: Span| format!("{} MB/s", three_digits(span.value() / 1e6));
    let mut found = Vec::new();
    for (requested, stated) in claim.requested_and_stated() {
        let text = format!("{} is stated, requests × size is {}", rate(stated), rate(requested));
        found.push((differ(stated, requested), text));
    }
    // One of the stated rates may be that of the bytes and the time.
    if let (Some(moved), false) = (claim.moved_bytes_per_s(), claim.rates.is_empty()) {
        let mut all = claim.rates.iter().map(|rate| rate.span);
        let nearest = all.clone().find(|stated| !differ(*stated, moved));
        let nearest = nearest.or_else(|| all.next_back());
        let stated = nearest.unwrap_or(moved);
        let text = format!("{} is stated, bytes ÷ time is {}", rate(stated), rate(moved));
        found.push((differ(stated, moved), text));
    }
    if let (Some(counted), Some(stated)) = (claim.counted_requests_per_s(), claim.stated_iops()) {
        let [a, b] = [stated, counted].map(|span| three_digits(span.value()));
        let text = format!("{a} requests/s are stated, requests ÷ time is {b}/s");
        found.push((differ(stated, counted), text));
    }
    found
}

/// Compares a latency with that of the requests in flight and their rate (Little's law).
fn latency(claim: &Claim) -> Option<Compared> {
    let (stated, other) = (claim.latency_s?, claim.latency_of_rate_s()?);
    let words = match claim.in_flight {
        Some(count) => format!("{} requests in flight ÷ IOPS", three_digits(count.value())),
        None => "1 ÷ IOPS".to_owned(),
    };
    // The number in flight may be unknown; then a longer latency means that there are more of them.
    let differs = match claim.in_flight {
        Some(_) => stated.is_beside(other, ROUNDING_RATIO),
        None => stated.high < 0.99 * other.low,
    };
    let time = |seconds: Span| format_ns(seconds.value() * 1e9);
    Some((differs, format!("{} is stated, {words} is {}", time(stated), time(other))))
}

/// Compares each stated ratio with that of the two values.
fn ratios(claim: &Claim) -> Vec<Compared> {
    let Some(compared) = &claim.compared else { return Vec::new() };
    let Some(of) = compared.ratio() else { return Vec::new() };
    let percent = |share: f64| three_digits((share * 100.0).abs());
    let direction = if of < 1.0 { "less" } else { "more" };
    let text = |stated: &Ratio| {
        format!(
            "the first ÷ the second is {}: {} % of it, {} % {direction}; {stated} is stated",
            three_digits(of),
            percent(of),
            percent(of - 1.0)
        )
    };
    compared.stated.iter().map(|stated| (!stated.is_of(of), text(stated))).collect()
}
