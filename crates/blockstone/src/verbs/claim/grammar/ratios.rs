//! Ratios in a claim, and the two values that they are of: `18x`, `85 % more`, `10 % of 412 MB/s`.

use anyhow::{Result, bail};

use super::Parser;
use crate::failure::Failure;
use crate::verbs::claim::stated::{Compared, Ratio, RatioForm};
use crate::verbs::claim::units::Unit;
use crate::verbs::claim::vocabulary::{LESS, MORE};
use crate::verbs::claim::words::{Quantity, TIMES};

const SPELLED: [(&[&str], f64); 4] = [
    (&["twice", "double", "doubled", "doubles"], 2.0),
    (&["thrice", "triple", "tripled"], 3.0),
    (&["quadruple", "quadrupled"], 4.0),
    (&["half", "halved"], 0.5),
];

impl Parser<'_> {
    /// Reads the rest of a ratio: `18 x`, `85 % more`, `75 % of`.
    pub(super) fn ratio(&mut self, quantity: Quantity) -> Option<Ratio> {
        let Quantity { unit, span } = quantity;
        let words = &mut self.words;
        let of = |form| Some(Ratio { form, value: span.value(), rounding: span.rounding });
        match unit {
            Unit::Percent => {
                words.take_if(&["as", "the"]);
                if words.take_if(MORE) {
                    return of(RatioForm::More);
                }
                if words.take_if(LESS) {
                    return of(RatioForm::Less);
                }
                of(if words.take_if(&["of"]) { RatioForm::Share } else { RatioForm::Percent })
            }
            Unit::Times => of(RatioForm::Times),
            Unit::Count => {
                let is_ratio = words.attempt(|words| {
                    let is_sign = words.take_if(TIMES);
                    if !is_sign && !words.take_if(&["times", "fold"]) {
                        return None;
                    }
                    let counts = is_sign && words.clone().quantity().is_some();
                    (!counts).then_some(())
                });
                is_ratio?;
                words.take_if(&["as"]);
                let _ = words.take_if(MORE) || words.take_if(LESS);
                of(RatioForm::Times)
            }
            _ => None,
        }
    }

    /// Reads `twice`, `half`.
    pub(super) fn spelled_ratio(&mut self) -> Option<Ratio> {
        let words = &mut self.words;
        let value = SPELLED.iter().find(|(names, _)| words.take_if(names))?.1;
        words.take_if(&["as"]);
        let _ = words.take_if(MORE) || words.take_if(LESS) || words.take_if(&["fast", "much"]);
        Some(Ratio { form: RatioForm::Times, value, rounding: 0.0 })
    }

    /// Keeps a stated ratio. The values may come before it or after.
    pub(super) fn state(&mut self, ratio: Ratio) -> Result<()> {
        let open = Compared { unit: Unit::Count, values: None, stated: Vec::new() };
        let compared = self.claim.compared.get_or_insert(open);
        compared.stated.push(ratio);
        let is_open = compared.values.is_none();
        while self.words.take_if(&["as", "fast", "much", "of", "the", "that"]) {}
        // `10 % of 412 MB/s`.
        let mut ahead = self.words.clone();
        let next = ahead.quantity().map(|next| next.unit);
        if is_open && self.last.is_some_and(|last| Some(last.unit) == next) {
            return self.compare();
        }
        Ok(())
    }

    /// Reads the value that the last one is compared with, which has the same unit.
    pub(super) fn compare(&mut self) -> Result<()> {
        let second = self.words.quantity();
        let pair = self.last.zip(second).filter(|(first, second)| first.unit == second.unit);
        let has_values = self.claim.compared.as_ref().is_some_and(|it| it.values.is_some());
        let Some((first, second)) = pair.filter(|_| !has_values) else {
            bail!(Failure::new(
                "understand the claim: it does not compare two values of one unit",
                "write it as in `1,800 MB/s against 100 MB/s: 18x`"
            ));
        };
        self.compared(first, second);
        self.open = None;
        Ok(())
    }

    /// Whether this is the first of two values: `from 50 s to 12 s`. Then it takes both.
    pub(super) fn is_first_of_two(&mut self, first: Quantity) -> bool {
        if !self.words.before_quantity().eq_ignore_ascii_case("from") {
            return false;
        }
        let second = self.words.attempt(|words| {
            words.take_if(&["to", "→", "-"]).then_some(())?;
            words.take_if(&["about", "only"]);
            words.quantity().filter(|second| second.unit == first.unit)
        });
        let is_open = self.claim.compared.as_ref().is_none_or(|it| it.values.is_none());
        let Some(second) = second.filter(|_| is_open) else { return false };
        self.compared(second, first);
        true
    }

    pub(super) fn compared(&mut self, first: Quantity, second: Quantity) {
        let stated = self.claim.compared.take().map(|it| it.stated).unwrap_or_default();
        let values = Some((first.span, second.span));
        self.claim.compared = Some(Compared { unit: first.unit, values, stated });
    }
}
