//! A table of payment card transactions whose rows depend only on a seed and their position.
//!
//! The columns, the bytes per row and the selectivity of the filter follow a published measurement
//! of storage that filters: 7.9 G rows of 83.4 bytes, of which 22,465,830 have cards that begin
//! with 4777 or 3333, the shop's own.

mod places;

use std::io::Write as _;

use blockstone_base::rng::mix;

use places::PLACES;

pub const TABLE: &str = "all_card_trans";
/// Bytes per row in the published table, including block overhead.
pub const ROW_BYTES: f64 = 83.4;
/// Share of rows with one of the shop's own cards.
pub const OWN_SHARE: f64 = 22_465_830.0 / 7_897_611_641.0;
/// Prefixes of the shop's own cards.
pub const OWN: [&str; 2] = ["4777", "3333"];
/// Seconds in the year that the table covers.
pub const SPAN_S: u64 = 365 * 86_400;

/// A column: its name, its type in the published table, and the equivalent SQL type.
pub struct Column {
    pub name: &'static str,
    pub oracle: &'static str,
    pub sql: &'static str,
}

pub const COLUMNS: [Column; 9] = [
    column("card_no", "varchar2(20)", "varchar(20)"),
    column("card_type", "char(20)", "char(20)"),
    column("mcc", "number(6)", "integer"),
    column("purchase_amt", "number(6)", "integer"),
    column("purchase_dt", "date", "timestamp(0)"),
    column("merchant_code", "number(7)", "integer"),
    column("merchant_city", "varchar2(40)", "varchar(40)"),
    column("merchant_state", "char(3)", "char(3)"),
    column("merchant_zip", "number(6)", "integer"),
];

const fn column(name: &'static str, oracle: &'static str, sql: &'static str) -> Column {
    Column { name, oracle, sql }
}

/// Merchant category codes, the most common first.
const MCCS: [u32; 24] = [
    5411, 5812, 5541, 5814, 5999, 5311, 5912, 5310, 4816, 5732, 5651, 5200, 7832, 4899, 5942, 5691,
    7011, 5813, 5045, 8011, 4511, 5944, 7230, 5661,
];
/// 2025-01-01 in days since 1970.
const FIRST_DAY: u64 = 20_089;
const MERCHANTS_MIN: u64 = 1_000;
const MERCHANTS_MAX: u64 = 5_000_000;
const ROWS_PER_MERCHANT: u64 = 1_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub card: u64,
    pub card_type: &'static str,
    pub mcc: u32,
    /// Amount in cents.
    pub amount: u32,
    /// Seconds since the start of the year.
    pub second: u64,
    pub merchant: u32,
    pub city: &'static str,
    pub state: &'static str,
    pub zip: u32,
}

/// All rows of a table of a given size; the row at any position can be computed directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cards {
    rows: u64,
    seed: u64,
    merchants: u64,
}

impl Cards {
    /// As many rows as take `bytes` in the published table, at least one.
    pub fn of_bytes(bytes: u64, seed: u64) -> Self {
        Self::new(((bytes as f64 / ROW_BYTES) as u64).max(1), seed)
    }

    pub fn new(rows: u64, seed: u64) -> Self {
        let merchants = (rows / ROWS_PER_MERCHANT).clamp(MERCHANTS_MIN, MERCHANTS_MAX);
        Self { rows, seed, merchants }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of own cards before position `at`: there is one in each stretch of 1 ÷
    /// share.
    pub fn own_before(&self, at: u64) -> u64 {
        let stretch = stretch_of(at);
        stretch + u64::from(at > self.own_at(stretch))
    }

    pub fn own(&self) -> u64 {
        self.own_before(self.rows)
    }

    /// Returns the number of rows whose card begins with this prefix, one of the shop's own.
    pub fn own_with(&self, prefix: &str) -> u64 {
        let stretches = 0..=stretch_of(self.rows - 1);
        let at = stretches.map(|stretch| self.own_at(stretch)).filter(|at| *at < self.rows);
        at.filter(|at| self.row(*at).card.to_string().starts_with(prefix)).count() as u64
    }

    /// Returns the position of the own card in a stretch.
    fn own_at(&self, stretch: u64) -> u64 {
        let (from, to) = (stretch_start(stretch), stretch_start(stretch + 1));
        from + self.draw(stretch, 7) % (to - from)
    }

    /// Returns the first position whose purchase is not before this second of the year.
    pub fn first_since(&self, second: u64) -> u64 {
        let at = u128::from(second) * u128::from(self.rows);
        (at.div_ceil(u128::from(SPAN_S)) as u64).min(self.rows)
    }

    pub fn row(&self, at: u64) -> Row {
        let own = self.own_at(stretch_of(at)) == at;
        let (card, card_type) = self.card(at, own);
        let skewed = |bound: u64, stream| {
            let unit = (self.draw(at, stream) >> 11) as f64 / (1_u64 << 53) as f64;
            (unit * unit * bound as f64) as u64
        };
        let merchant = skewed(self.merchants, 1);
        let of_merchant = mix(self.seed ^ mix(merchant ^ 0x6d65_7263));
        let (city, state, zip) = PLACES[(of_merchant % PLACES.len() as u64) as usize];
        Row {
            card,
            card_type,
            mcc: MCCS[(of_merchant >> 32) as usize % MCCS.len()],
            amount: 100 + skewed(99_900, 2) as u32,
            second: (u128::from(at) * u128::from(SPAN_S) / u128::from(self.rows)) as u64,
            // Spreads merchants over all seven-digit numbers.
            merchant: 1_000_000 + (merchant * 8_999_999 / self.merchants) as u32,
            city,
            state,
            zip: zip + (of_merchant >> 16) as u32 % 90,
        }
    }

    fn draw(&self, at: u64, stream: u64) -> u64 {
        mix(self.seed ^ mix(at.wrapping_mul(8) ^ stream))
    }

    fn card(&self, at: u64, own: bool) -> (u64, &'static str) {
        let drawn = self.draw(at, 3);
        let (kind, tail) = (drawn % 100, drawn >> 8);
        let of = |prefix: u64, digits: u32| prefix * 10_u64.pow(digits) + tail % 10_u64.pow(digits);
        if own {
            let (prefix, name) = if kind < 50 { (4777, VISA) } else { (3333, HOUSE) };
            return (of(prefix, 12), name);
        }
        match kind {
            0..50 => {
                let prefix = 4000 + self.draw(at, 4) % 1000;
                // 4777 is one of the shop's own, so the next range replaces it.
                (of(if prefix == 4777 { 4778 } else { prefix }, 12), VISA)
            }
            50..85 => (of(51 + self.draw(at, 4) % 5, 14), MASTER),
            85..95 => (of(if self.draw(at, 4) & 1 == 0 { 34 } else { 37 }, 13), AMEX),
            _ => (of(6011, 12), DISCOVER),
        }
    }
}

const VISA: &str = "VISA";
const MASTER: &str = "MASTERCARD";
const AMEX: &str = "AMERICAN EXPRESS";
const DISCOVER: &str = "DISCOVER";
const HOUSE: &str = "HOUSE CARD";

fn stretch_of(at: u64) -> u64 {
    let mut stretch = (at as f64 * OWN_SHARE) as u64;
    // The quotient may round to the next whole number.
    while stretch_start(stretch) > at {
        stretch -= 1;
    }
    while stretch_start(stretch + 1) <= at {
        stretch += 1;
    }
    stretch
}

fn stretch_start(stretch: u64) -> u64 {
    (stretch as f64 / OWN_SHARE) as u64
}

impl Row {
    pub fn is_own(&self) -> bool {
        OWN.iter().any(|own| self.card.to_string().starts_with(own))
    }

    /// Formats the time of purchase, such as `2025-07-14 09:26:53`.
    pub fn date(&self) -> String {
        let (day, second) = (FIRST_DAY + self.second / 86_400, self.second % 86_400);
        let (year, month, day) = civil(day);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}", second % 60)
    }

    /// Bytes of the row in a block of the published table: a header of three, one of length per
    /// column.
    pub fn oracle_bytes(&self) -> u64 {
        let digits = |value: u64| {
            // Two decimal digits per byte, without trailing zeros, and an exponent.
            let (mut pairs, mut rest) = (0, value);
            while rest > 0 && rest % 100 == 0 {
                rest /= 100;
            }
            while rest > 0 {
                (pairs, rest) = (pairs + 1, rest / 100);
            }
            1 + pairs
        };
        let numbers = [self.mcc, self.amount, self.merchant, self.zip];
        let numbers: u64 = numbers.iter().map(|number| digits(u64::from(*number))).sum();
        let texts = self.card.to_string().len() + 20 + 7 + self.city.len() + 3;
        3 + COLUMNS.len() as u64 + numbers + texts as u64
    }

    /// Appends a line with the columns in order, separated by `separator`. No value needs an escape
    /// in COPY's text format or in CSV.
    pub fn write(&self, separator: char, out: &mut Vec<u8>) {
        let s = separator;
        // Writing to memory does not fail.
        let _ = writeln!(
            out,
            "{}{s}{:<20}{s}{}{s}{}{s}{}{s}{}{s}{}{s}{:<3}{s}{:05}",
            self.card,
            self.card_type,
            self.mcc,
            self.amount,
            self.date(),
            self.merchant,
            self.city,
            self.state,
            self.zip
        );
    }
}

/// Converts days since 1970-01-01 to year, month and day.
fn civil(days: u64) -> (u64, u64, u64) {
    // Source: H. Hinnant, chrono-compatible low-level date algorithms (public domain).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// Returns the columns with their SQL types, in the form of CREATE TABLE.
pub fn sql_columns() -> String {
    let columns = COLUMNS.iter().map(|column| format!("{} {} NOT NULL", column.name, column.sql));
    columns.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_share_and_the_size_of_the_published_table() {
        let cards = Cards::new(500_000, 1);
        let own = (0..cards.rows()).filter(|at| cards.row(*at).is_own()).count() as u64;
        assert_eq!(own, cards.own());
        assert!((own as f64 / 500_000.0 / 0.002_844_6 - 1.0).abs() < 0.001, "{own}");
        let bytes: u64 = (0..cards.rows()).map(|at| cards.row(at).oracle_bytes()).sum();
        let mean = bytes as f64 / 500_000.0;
        // Blocks of 8 KiB add a header and a row directory.
        let with_blocks = mean * 8192.0 / (8192.0 - 110.0) + 2.0;
        assert!((with_blocks / ROW_BYTES - 1.0).abs() < 0.01, "{mean} {with_blocks}");
        let half = cards.own_before(250_000);
        let counted = (0..250_000).filter(|at| cards.row(*at).is_own()).count() as u64;
        assert_eq!(half, counted);
    }

    #[test]
    fn a_row_follows_from_seed_and_position() {
        let (one, other) = (Cards::new(1000, 1), Cards::new(1000, 2));
        assert_eq!(one.row(500), Cards::new(1000, 1).row(500));
        assert_ne!(one.row(500), other.row(500));
        let mut line = Vec::new();
        one.row(0).write('\t', &mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.trim_end_matches('\n').split('\t').count(), COLUMNS.len(), "{line}");
        assert!(line.contains("\t2025-01-01 00:00:00\t"), "{line}");
        assert!(!line.contains('\\') && !line.contains(',') && !line.contains('"'), "{line}");
    }

    #[test]
    fn purchases_cover_the_year_in_order() {
        let cards = Cards::new(10_007, 3);
        let seconds: Vec<u64> = (0..cards.rows()).map(|at| cards.row(at).second).collect();
        assert!(seconds.is_sorted() && seconds[10_006] < SPAN_S);
        for second in [0, 1, SPAN_S / 4, SPAN_S / 2, SPAN_S - 1, SPAN_S] {
            let first = cards.first_since(second) as usize;
            assert!(first == 0 || seconds[first - 1] < second);
            assert!(first == seconds.len() || seconds[first] >= second);
        }
        assert_eq!(cards.row(10_006).date().split(' ').next(), Some("2025-12-31"));
        assert_eq!(civil(FIRST_DAY), (2025, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
    }
}
