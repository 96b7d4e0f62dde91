//! Bits mistaken for bytes.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;

use crate::verbs::claim::stated::{Claim, RATE, Span};

const ABOUT: About = About {
    id: "wrong-unit",
    weight: Weight::Condemns,
    doc: "A rate that was stated in bytes and makes sense in bits, or the reverse: the figure is \
          eight times too high or too low.",
    threshold: "In a claim: the stated rate is 8 times, or an eighth, of what the stated bytes and \
                time give, within 12 %; or more bytes a second are stated than the link carries, \
                and the same number of bits is 85 to 102 % of the link's nominal rate. \
                Inconclusive if neither bytes and time nor a link are stated.",
    cause: "The figure was measured or is published in bits, and was written with the unit of \
            bytes.",
    next: "Ask in which unit the tool printed the figure; links are named in bits, files in bytes.",
};

pub(super) const RULE: RuleOf<Claim> = RuleOf::new(&ABOUT, check);

const BITS: f64 = 8.0;
const NEAR_RATIO: f64 = 0.12;
/// Bits per second ÷ nominal rate of the link, as a busy link shows it.
const BUSY_LINK: std::ops::RangeInclusive<f64> = 0.85..=1.02;

fn check(claim: &Claim) -> Judgement {
    let Some(rate) = claim.bytes_per_s() else {
        return Judgement::inconclusive("no rate was stated");
    };
    let mut seen = Vec::new();
    let moved = claim.moved_bytes_per_s().map(Span::least);
    if let (Some(stated), Some(moved)) = (claim.stated_bytes_per_s(), moved) {
        let ratio = stated / moved;
        let evidence = format!(
            "{} MB/s are stated, bytes ÷ time are {} MB/s: {} times",
            three_digits(stated / 1e6),
            three_digits(moved / 1e6),
            three_digits(ratio)
        );
        let near = |factor: f64| (ratio / factor - 1.0).abs() <= NEAR_RATIO;
        if near(BITS) || near(1.0 / BITS) {
            return Judgement::fail(evidence, vec![RATE.to_owned()]);
        }
        seen.push(evidence);
    }
    if let (Some(carries), Some(bits)) = (claim.link_bytes_per_s(), claim.link_bits_per_s()) {
        let share = rate / bits;
        if rate > carries && BUSY_LINK.contains(&share) {
            let evidence = format!(
                "{} MB/s; as Mb/s it is {:.0} % of {}",
                three_digits(rate / 1e6),
                share * 100.0,
                claim.link()
            );
            return Judgement::fail(evidence, vec![RATE.to_owned()]);
        }
        seen.push(format!("as bits it would be {:.0} % of {}", share * 100.0, claim.link()));
    }
    if seen.is_empty() {
        return Judgement::inconclusive("neither bytes and time nor a link were stated");
    }
    Judgement::pass(seen.join("; "))
}
