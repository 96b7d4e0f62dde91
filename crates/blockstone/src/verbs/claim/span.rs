//! A stated number: a value as it is rounded, or the ends of a range.

/// A value, or the ends of a range; one end is open if only a bound is stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub low: f64,
    pub high: f64,
    /// Half of the last digit that is written.
    pub rounding: f64,
    /// One of the unit in which it is written.
    unit: f64,
}

impl Span {
    pub fn of(value: f64) -> Self {
        Self::rounded(value, 0.0)
    }

    pub fn rounded(value: f64, rounding: f64) -> Self {
        Self { low: value, high: value, rounding, unit: 1.0 }
    }

    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let [low, high, rounding, unit] =
            [self.low, self.high, self.rounding, self.unit].map(|end| end * factor);
        Self { low, high, rounding, unit }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (low, high) = (self.low + other.low, self.high + other.high);
        Self { low, high, ..other }
    }

    /// Returns the range from this value to another; `None` if that is smaller.
    pub fn to(self, high: Self) -> Option<Self> {
        (self.low <= high.high).then_some(Self { low: self.low, ..high })
    }

    /// Returns what `more than` it means.
    #[must_use]
    pub fn or_more(self) -> Self {
        Self { high: f64::INFINITY, ..self }
    }

    /// Returns what `less than` it means.
    #[must_use]
    pub fn or_less(self) -> Self {
        Self { low: 0.0, ..self }
    }

    /// Returns the quotient of two.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let rounding = (self.rounding / self.value() + other.rounding / other.value())
            * (self.value() / other.value());
        Self { low: self.low / other.high, high: self.high / other.low, rounding, unit: 1.0 }
    }

    /// Returns the product of two.
    #[must_use]
    pub fn by(self, other: Self) -> Self {
        let rounding = self.rounding * other.value() + other.rounding * self.value();
        Self { low: self.low * other.low, high: self.high * other.high, rounding, unit: 1.0 }
    }

    /// Returns the value; of a range its upper end, of a bound that.
    pub fn value(self) -> f64 {
        if self.high.is_finite() { self.high } else { self.low }
    }

    /// Whether it is one value.
    pub fn is_exact(self) -> bool {
        self.low >= self.high
    }

    /// Returns the end of the range that claims least.
    pub fn least(self) -> f64 {
        if self.low > 0.0 { self.low } else { self.high }
    }

    /// Whether both are the same number, in two units each rounded as it is written.
    pub fn restates(self, other: Self) -> bool {
        let same_unit = (self.unit / other.unit - 1.0).abs() < 1e-9;
        let rounding = if same_unit { 0.0 } else { self.rounding + other.rounding };
        let near =
            |a: f64, b: f64| a.total_cmp(&b).is_eq() || (a - b).abs() <= rounding + 1e-9 * a.max(b);
        near(self.low, other.low) && near(self.high, other.high)
    }

    /// Whether the two ranges are more than this share apart.
    pub fn is_beside(self, other: Self, share: f64) -> bool {
        self.low > other.high * (1.0 + share) || self.high * (1.0 + share) < other.low
    }
}
