//! Access patterns within a part.

use blockstone_base::rng::Rng;

/// Which pages of a region are written, and in what order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// All pages are equally likely.
    Uniform,
    /// A few pages get most of the writes: the k-th most frequent with probability ∝ 1/k^θ, 0 < θ <
    /// 1.
    Zipf(f64),
    /// Sequential, wrapping around at the end: online redo, undo, a log.
    Circular,
    /// Sequential, and after the last page all are trimmed: temporary segments.
    Temporary,
    /// Whole segments of this percentage of the region in random order, each trimmed before it is
    /// rewritten: the tables of a log-structured merge tree.
    Segments(u32),
}

#[derive(Clone, Debug)]
pub struct State {
    pattern: Pattern,
    pages: u32,
    step: u32,
    next: u32,
    /// End of the segment being written.
    end: u32,
    zipf: Zipf,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub page: u32,
    /// First page and number of pages.
    pub trim_first: Option<(u32, u32)>,
}

impl State {
    pub fn new(pattern: Pattern, pages: u32, step: u32) -> Self {
        let theta = if let Pattern::Zipf(theta) = pattern { theta } else { 0.5 };
        let zipf = Zipf::new(u64::from(pages / step.max(1)), theta);
        Self { pattern, pages, step, next: 0, end: 0, zipf }
    }

    fn segment(&self, hundredths: u32) -> u32 {
        let pages = (u64::from(self.pages) * u64::from(hundredths) / 100) as u32;
        (pages / self.step * self.step).max(self.step)
    }

    #[inline]
    pub fn write(&mut self, rng: &mut Rng) -> Step {
        match self.pattern {
            Pattern::Uniform | Pattern::Zipf(_) => Step { page: self.read(rng), trim_first: None },
            Pattern::Circular => self.advance(None),
            Pattern::Temporary => self.advance(Some((0, self.pages))),
            Pattern::Segments(hundredths) => {
                let segment = self.segment(hundredths);
                let mut trim_first = None;
                if self.next >= self.end {
                    self.next = rng.below(u64::from(self.pages / segment)) as u32 * segment;
                    self.end = self.next + segment;
                    trim_first = Some((self.next, segment));
                }
                self.next += self.step;
                Step { page: self.next - self.step, trim_first }
            }
        }
    }

    fn advance(&mut self, at_wrap: Option<(u32, u32)>) -> Step {
        let wraps = self.next + self.step > self.pages;
        let page = if wraps { 0 } else { self.next };
        self.next = page + self.step;
        Step { page, trim_first: at_wrap.filter(|_| wraps) }
    }

    /// Draws a page to read; logs and segments are read at random.
    #[inline]
    pub fn read(&self, rng: &mut Rng) -> u32 {
        let slots = u64::from(self.pages / self.step);
        let slot = match self.pattern {
            Pattern::Zipf(_) => {
                // The frequent pages are scattered: a step prime to the number of slots visits each
                // once.
                self.zipf.draw(rng) * 2_654_435_761 % slots
            }
            _ => rng.below(slots),
        };
        slot as u32 * self.step
    }
}

/// Zipf's law in constant time. Source: Gray et al., "Quickly generating billion-record synthetic
/// databases", SIGMOD 1994.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    items: f64,
    zeta: f64,
    theta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new(items: u64, theta: f64) -> Self {
        let zeta = zeta(items, theta);
        let n = items as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - zeta_exact(2, theta) / zeta);
        Self { items: n, zeta, theta, alpha: 1.0 / (1.0 - theta), eta }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        (self.items * (self.eta * unit - self.eta + 1.0).powf(self.alpha)) as u64
    }
}

fn zeta_exact(items: u64, theta: f64) -> f64 {
    (1..=items).map(|k| (k as f64).powf(-theta)).sum()
}

/// Σ 1/k^θ; beyond a thousand terms by the Euler–Maclaurin formula.
fn zeta(items: u64, theta: f64) -> f64 {
    const HEAD: u64 = 1000;
    if items <= HEAD {
        return zeta_exact(items, theta);
    }
    let power = |k: f64| k.powf(-theta);
    let integral = |k: f64| k.powf(1.0 - theta) / (1.0 - theta);
    let (head, n) = (HEAD as f64, items as f64);
    zeta_exact(HEAD, theta) + integral(n) - integral(head) + (power(n) - power(head)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_zipf_is_right_beyond_its_head() {
        for theta in [0.5, 0.9, 0.99] {
            let (fast, slow) = (zeta(50_000, theta), zeta_exact(50_000, theta));
            assert!((fast / slow - 1.0).abs() < 1e-6, "{theta}: {fast} for {slow}");
        }
    }

    #[test]
    fn the_most_frequent_rank_has_its_share() {
        let zipf = Zipf::new(10_000, 0.99);
        let mut rng = Rng::new(1, 0);
        let first = (0..200_000).filter(|_| zipf.draw(&mut rng) == 0).count() as f64 / 2e5;
        let expected = 1.0 / zipf.zeta;
        assert!((first / expected - 1.0).abs() < 0.03, "{first} for {expected}");
    }
}
