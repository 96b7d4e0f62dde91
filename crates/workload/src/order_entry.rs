//! Order entry: five transactions in a fixed mix, as sent by the kits for transactional databases.
//! Tables, names and texts are our own; the kinds of transactions, their shares and the number of
//! lines of an order are from TPC-C (revision 5.11, clauses 2.4 to 2.8 and 5.2.3), which `HammerDB`
//! follows. In two ways it keeps locks from hiding the storage: no row is changed by all
//! transactions, and customers and products are drawn uniformly.
//!
//! The first quarter of the rows of each schema are customers and the others products, one row per
//! block; orders have room at the end, see
//! [`TargetSpec::order_rows`](blockstone_servers::TargetSpec).

use blockstone_base::database::TRANSACTIONS;
use blockstone_base::rng::Rng;
use blockstone_servers::Statement;

/// Number of transactions of each kind in [`TRANSACTIONS`] per 100 of a session: the smallest
/// shares that TPC-C allows for all but new orders, which have the rest.
pub const SHARES: [u32; TRANSACTIONS.len()] = [45, 43, 4, 4, 4];
/// One row in this many is room for orders.
const ORDERS_SHARE: u64 = 16;
/// One in this many of the other rows is a customer.
const CUSTOMERS_SHARE: u64 = 4;
/// Fewest and most lines of an order, each with a product that it changes.
const LINES: (u64, u64) = (5, 15);
/// Orders searched for a customer's last one.
const RECENT: u32 = 20;
/// Maximum number of orders that one delivery takes. With [`SHARES`], more can be delivered than
/// are created, so the number of undelivered orders is bounded.
const DELIVERED: u64 = 12;

/// Returns how many of a schema's `rows` are room for orders.
pub fn order_rows(rows: u64) -> u64 {
    (rows / ORDERS_SHARE).max(1)
}

/// Returns the number of customers and products among the `rows` of a schema.
pub fn customers_and_products(rows: u64) -> (u64, u64) {
    let keyed = rows.saturating_sub(order_rows(rows));
    let customers = keyed / CUSTOMERS_SHARE;
    (customers, keyed - customers)
}

/// Endless sequence of transactions of one session.
#[derive(Clone, Debug)]
pub struct OrderEntry {
    schema: u32,
    customers: u64,
    products: u64,
    /// Products visited by a stock-level transaction.
    work_unit: u32,
    /// Number of this session, and of all sessions of its schema: they number their orders in turn.
    session: u64,
    sessions: u64,
    /// Orders that the session has created, and how many of them are delivered.
    made: u64,
    delivered: u64,
    /// The kinds of 100 transactions, shuffled, and how many of them are left.
    deck: Vec<u8>,
    left: usize,
    statements: Vec<Statement>,
}

/// Place of a session in a schema.
#[derive(Clone, Copy, Debug)]
pub struct SessionSlot {
    pub schema: u32,
    pub rows: u64,
    pub work_unit: u32,
    /// Number of the session among the `sessions` of the schema.
    pub session: u32,
    pub sessions: u32,
}

impl OrderEntry {
    pub fn new(place: SessionSlot) -> Self {
        let (customers, products) = customers_and_products(place.rows);
        let kinds = (0_u8..).zip(SHARES);
        let deck = kinds.flat_map(|(kind, share)| vec![kind; share as usize]).collect();
        Self {
            schema: place.schema,
            customers,
            products,
            work_unit: place.work_unit,
            session: place.session.into(),
            sessions: place.sessions.into(),
            made: 0,
            delivered: 0,
            deck,
            left: 0,
            statements: Vec::new(),
        }
    }

    /// Returns the statements of the transaction that [`OrderEntry::next`] drew last.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Draws the next transaction, and returns its kind as an index into [`TRANSACTIONS`]. In each
    /// 100 transactions, counted from the first, the shares are exact.
    pub fn next(&mut self, rng: &mut Rng) -> usize {
        if self.left == 0 {
            // Shuffle after Fisher and Yates.
            for at in (1..self.deck.len()).rev() {
                self.deck.swap(at, rng.below(at as u64 + 1) as usize);
            }
            self.left = self.deck.len();
        }
        self.left -= 1;
        let kind = usize::from(self.deck[self.left]);
        self.statements.clear();
        match kind {
            0 => self.new_order(rng),
            1 => self.payment(rng),
            2 => self.order_status(rng),
            3 => self.delivery(rng),
            _ => self.stock_level(rng),
        }
        kind
    }

    fn new_order(&mut self, rng: &mut Rng) {
        let schema = self.schema;
        self.look_at_customer(rng);
        let (least, most) = LINES;
        for _ in 0..least + rng.below(most - least + 1) {
            let key = self.customers + rng.below(self.products);
            self.statements.push(Statement::Update { schema, key });
        }
        let number = self.number(self.made);
        self.statements.push(Statement::Insert { schema, number });
        self.made += 1;
    }

    fn payment(&mut self, rng: &mut Rng) {
        let key = self.look_at_customer(rng);
        self.statements.push(Statement::Update { schema: self.schema, key });
    }

    fn order_status(&mut self, rng: &mut Rng) {
        self.look_at_customer(rng);
        let last = self.number(self.made.saturating_sub(1));
        let first = last.saturating_sub(u64::from(RECENT) - 1);
        self.statements.push(Statement::Orders { schema: self.schema, first, count: RECENT });
    }

    fn delivery(&mut self, rng: &mut Rng) {
        let schema = self.schema;
        let first = self.number(self.delivered);
        self.statements.push(Statement::Orders { schema, first, count: RECENT });
        for _ in 0..DELIVERED.min(self.made - self.delivered) {
            let number = self.number(self.delivered);
            let key = rng.below(self.customers);
            self.statements.push(Statement::Delete { schema, number });
            self.statements.push(Statement::Update { schema, key });
            self.delivered += 1;
        }
    }

    fn stock_level(&mut self, rng: &mut Rng) {
        let rows = self.work_unit;
        let first = rng.below(self.products - u64::from(rows) + 1);
        let first_key = self.customers + first;
        self.statements.push(Statement::Select { schema: self.schema, first_key, rows });
    }

    fn look_at_customer(&mut self, rng: &mut Rng) -> u64 {
        let first_key = rng.below(self.customers);
        self.statements.push(Statement::Select { schema: self.schema, first_key, rows: 1 });
        first_key
    }

    /// Returns the number of the `count`th order that the session created, counted from 0.
    fn number(&self, count: u64) -> u64 {
        count * self.sessions + self.session
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ROWS: u64 = 1600;

    fn session(session: u32) -> OrderEntry {
        OrderEntry::new(SessionSlot { schema: 3, rows: ROWS, work_unit: 64, session, sessions: 4 })
    }

    #[test]
    fn any_hundred_transactions_have_the_shares() {
        let (mut entry, mut rng) = (session(0), Rng::new(1, 0));
        for _ in 0..20 {
            let mut seen = [0; TRANSACTIONS.len()];
            (0..100).for_each(|_| seen[entry.next(&mut rng)] += 1);
            assert_eq!(seen, SHARES);
        }
    }

    #[test]
    fn statements_keep_to_their_rows_and_orders_come_before_they_go() {
        let (customers, products) = customers_and_products(ROWS);
        assert_eq!((customers, products, order_rows(ROWS)), (375, 1125, 100));
        let mut all = HashSet::new();
        for index in 0..4 {
            let (mut entry, mut rng) = (session(index), Rng::new(2, index.into()));
            let mut there = HashSet::new();
            for _ in 0..5000 {
                let kind = entry.next(&mut rng);
                let writes = entry.statements().iter().any(Statement::writes);
                assert!(writes || kind >= 2, "{}", TRANSACTIONS[kind]);
                for statement in entry.statements() {
                    match *statement {
                        Statement::Select { schema, first_key, rows } => {
                            let ends = if kind == 4 { customers + products } else { customers };
                            assert!(schema == 3 && first_key + u64::from(rows) <= ends);
                        }
                        Statement::Update { key, .. } => assert_eq!(key >= customers, kind == 0),
                        Statement::Insert { number, .. } => {
                            assert!(all.insert(number), "a number is used once by all sessions");
                            there.insert(number);
                        }
                        Statement::Delete { number, .. } => assert!(there.remove(&number)),
                        Statement::Orders { count, .. } => assert_eq!(count, RECENT),
                    }
                }
                assert!(there.len() < 100, "orders pile up: {}", there.len());
            }
        }
    }

    #[test]
    fn orders_have_as_many_lines_as_they_may() {
        let (mut entry, mut rng) = (session(0), Rng::new(3, 0));
        let mut lines = HashSet::new();
        for _ in 0..1000 {
            if entry.next(&mut rng) == 0 {
                lines.insert(entry.statements().len() as u64 - 2);
            }
        }
        assert_eq!(lines, (LINES.0..=LINES.1).collect());
    }
}
