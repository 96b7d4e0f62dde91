//! A claim in words: `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`.

mod amounts;
mod labels;
mod ratios;
#[cfg(test)]
mod tests;

use anyhow::{Result, bail};

use super::links;
use super::stated::{Claim, Direction, Flow, Kind, Path, Pattern, Span, Speed};
use super::units::{self, Unit};
use super::vocabulary::{
    AGAINST, BOTH, CACHED, DATA, DIRECT, FILLERS, HOSTS, LATENCY, LINKS, MEMORY, MENTIONED, OVER,
    QUANTILES, RANDOM, READ, READ_WRITE, REQUESTS, SEQUENTIAL, THROUGH, WRITE,
};
use super::words::{Quantity, Words, is_one};
use crate::failure::Failure;

const EXAMPLE: &str = "write it as in `2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM`, or \
                       use the options of `blockstone claim --help`";

/// Parses a claim; a word that is not understood is an error, so that nothing is silently ignored.
pub fn parse(text: &str) -> Result<Claim> {
    let mut parser = Parser { words: Words::of(text), ..Parser::default() };
    while let Some(word) = parser.words.peek() {
        parser.step(word)?;
    }
    parser.finish()
}

/// The claim as far as it was read.
#[derive(Default)]
struct Parser<'a> {
    words: Words<'a>,
    claim: Claim,
    /// Number of files, of which a size is stated for each.
    files: Option<Span>,
    /// Requests in flight of each of several jobs.
    depth: Option<Span>,
    jobs: Option<Span>,
    /// Whether the next time is a latency, and whether that is not the mean.
    of_latency: bool,
    is_quantile: bool,
    /// The last value that another can be compared with.
    last: Option<Quantity>,
    /// The kind of requests that was named before their rate.
    kind: Kind,
    /// The rate that the next words may describe, and whether they say `each`.
    open: Option<Figure>,
    each: bool,
}

/// A figure that may be stated of several kinds of requests.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    Rate,
    Iops,
}

impl<'a> Parser<'a> {
    /// Reads what begins with this word.
    fn step(&mut self, word: &'a str) -> Result<()> {
        if self.link()? || self.label()? {
            return Ok(());
        }
        let down = self.words.take_all(&["down", "from"]) || self.words.take_all(&["up", "from"]);
        if down || self.words.take_if(AGAINST) {
            while self.words.take_if(&["of", "with", "to", "the", "a", "only", "about"]) {}
            return self.compare();
        }
        if self.open.is_some() && is_one(word, &["per", "each", "every"]) && self.of_one() {
            return Ok(());
        }
        if let Some(mix) = self.mix() {
            self.claim.both_directions |= mix;
            self.words.take_if(READ_WRITE);
            return Ok(());
        }
        if let Some((read, write)) = self.words.pair() {
            return self.pair(read, write);
        }
        if let Some(quantity) = self.words.quantity() {
            return self.quantity(quantity);
        }
        if let Some(ratio) = self.spelled_ratio() {
            return self.state(ratio);
        }
        if let Some(count) = self.spelled_count() {
            return self.count(Span::of(f64::from(count)), word);
        }
        if let Some(seconds) = self.words.named_time() {
            return once(&mut self.claim.time_s, Span::of(seconds), "a time");
        }
        self.word(word)
    }

    /// Reads a link, a protocol or the size of its frames.
    fn link(&mut self) -> Result<bool> {
        let before = self.words.last();
        let claim = &self.claim;
        let has_rate = !claim.rates.is_empty()
            || !claim.iops.is_empty()
            || claim.moved().or(claim.requests).is_some();
        // `over 400 MB/s` is a rate itself if none was stated before.
        let through = is_one(before, THROUGH) || (is_one(before, &["over"]) && has_rate);
        let expected = through || (is_one(before, OVER) && has_rate);
        let ahead = self.words.clone();
        if let Some(path) = links::path(&mut self.words, expected) {
            if matches!(path.link, Speed::Stated(_)) && !through {
                self.words = ahead;
                return Ok(false);
            }
            defined(&path)?;
            self.open = None;
            self.claim.links.push(path);
        } else if let Some(protocol) = links::protocol(&mut self.words) {
            once_same(&mut self.claim.carries.protocol, protocol, "a protocol")?;
        } else if let Some(mtu) = links::mtu(&mut self.words) {
            once_same(&mut self.claim.carries.mtu, mtu, "an MTU")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads `70/30`, `70:30`, `70 % read`: a mix of both directions, or of one.
    fn mix(&mut self) -> Option<bool> {
        self.words.attempt(|words| {
            let first = words.next()?;
            let share =
                |text: &str| text.parse::<f64>().ok().filter(|it| (0.0..=100.0).contains(it));
            if let Some(percent) = first
                .strip_suffix('%')
                .or_else(|| words.take_if(&["%", "percent"]).then_some(first))
            {
                let part = share(percent)?;
                words.take_if(RANDOM);
                let is_kind = words.take_if(READ) || words.take_if(WRITE) || part >= 100.0;
                let is_random = part >= 100.0 && is_one(words.last(), RANDOM);
                return (is_kind && !is_random).then_some(part > 0.0 && part < 100.0);
            }
            let (a, b) = if let Some((a, b)) = first.split_once(':') {
                (share(a)?, share(b)?)
            } else {
                words.take_if(&["/"]).then_some(())?;
                (share(first)?, share(words.next()?)?)
            };
            let has_unit = words.peek().is_some_and(|next| units::of(next).is_some());
            ((a + b - 100.0).abs() < 1e-9 && !has_unit).then_some(a > 0.0 && b > 0.0)
        })
    }

    /// Takes two rates, of reads and of writes: `7,450/6,900 MB/s`.
    fn pair(&mut self, read: Quantity, write: Quantity) -> Result<()> {
        for (quantity, direction) in [(read, Direction::Read), (write, Direction::Write)] {
            self.kind.direction = Some(direction);
            self.quantity(quantity)?;
        }
        self.words.take_if(READ_WRITE);
        Ok(())
    }

    fn quantity(&mut self, quantity: Quantity) -> Result<()> {
        if let Some(ratio) = self.ratio(quantity) {
            return self.state(ratio);
        }
        if self.is_first_of_two(quantity) {
            return Ok(());
        }
        let Quantity { unit, span } = quantity;
        if !matches!(unit, Unit::Count | Unit::Percent | Unit::Times) {
            self.last = Some(quantity);
        }
        match unit {
            Unit::Count => {
                let word = self.words.last();
                return self.count(span, word);
            }
            Unit::BytesPerS => self.flow(Figure::Rate, span),
            Unit::BitsPerS => self.flow(Figure::Rate, span.times(1.0 / 8.0)),
            Unit::Iops => {
                let last = self.words.last().to_ascii_lowercase();
                let of = last.split('/').next().unwrap_or_default();
                self.kind.direction = self.kind.direction.or(direction(of));
                self.flow(Figure::Iops, span);
            }
            Unit::Seconds => return self.time(span),
            Unit::Bytes => return self.bytes(span),
            Unit::Bits => return self.bytes(span.times(1.0 / 8.0)),
            // Ratios are read before.
            Unit::Percent | Unit::Times => {}
        }
        Ok(())
    }

    /// Takes a rate. One that follows is the same in another unit, or that of other requests.
    fn flow(&mut self, figure: Figure, span: Span) {
        let of = std::mem::take(&mut self.kind);
        let is_listed = self.words.are_listed();
        self.open = Some(figure);
        let flows = self.flows(figure);
        let same = flows.last().filter(|last| last.span.restates(span));
        let is_restated = same.is_some_and(|last| of == Kind::default() || of == last.of);
        if !is_restated {
            flows.push(Flow { of, span, is_listed });
        }
        // `7,000 MB/s / 5,000 MB/s` are those of reads and writes.
        if self.words.take_if(&["/"]) {
            let flows = self.flows(figure);
            if let Some(last) = flows.last_mut() {
                last.of.direction = last.of.direction.or(Some(Direction::Read));
            }
            self.kind.direction = Some(Direction::Write);
        }
        self.of_one();
    }

    fn flows(&mut self, figure: Figure) -> &mut Vec<Flow> {
        match figure {
            Figure::Rate => &mut self.claim.rates,
            Figure::Iops => &mut self.claim.iops,
        }
    }

    /// Reads of which thing the last rate is: `per disk`, `a port`.
    fn of_one(&mut self) -> bool {
        if let Some(disk) = self.one_disk() {
            self.claim.per_disk = true;
            if disk.rotating {
                self.claim.disks.get_or_insert(disk);
            }
            return true;
        }
        let mut of = |things: &[&str]| {
            let found = self.words.attempt(|words| {
                words.take_if(&["per", "a", "each", "every"]).then_some(())?;
                words.take_if(things).then_some(())
            });
            found.is_some()
        };
        if of(LINKS) {
            self.claim.per_link = true;
        } else if of(HOSTS) {
            self.claim.mentioned.push(format!("per {}", self.words.last()));
        } else {
            return false;
        }
        true
    }

    /// Takes the direction or the order of requests, as that of the rate before, or of the next.
    fn describe(&mut self, direction: Option<Direction>, pattern: Option<Pattern>) {
        let open = self.open;
        let described = match open {
            Some(figure) => self.flows(figure).last_mut(),
            None => None,
        };
        if let Some(flow) = described {
            let fits = (direction.is_none() || flow.of.direction.is_none())
                && (pattern.is_none() || flow.of.pattern.is_none());
            if fits {
                flow.of.direction = flow.of.direction.or(direction);
                flow.of.pattern = flow.of.pattern.or(pattern);
                return;
            }
        }
        self.kind.direction = direction.or(self.kind.direction);
        self.kind.pattern = pattern.or(self.kind.pattern);
    }

    /// Takes a word without a number.
    fn word(&mut self, word: &'a str) -> Result<()> {
        let before = self.words.last();
        let reason = links::incomplete(&self.words);
        self.words.next();
        let lower = word.to_ascii_lowercase();
        let pattern = if is_one(word, SEQUENTIAL) {
            Some(Pattern::Sequential)
        } else {
            is_one(word, RANDOM).then_some(Pattern::Random)
        };
        let direction = direction(&lower);
        if direction.is_some() || pattern.is_some() {
            self.describe(direction, pattern);
        } else if is_one(word, BOTH) {
            self.claim.both_directions = true;
            while self.words.take_if(&[
                "directions",
                "ways",
                "reads",
                "and",
                "writes",
                "read/write",
            ]) {}
        } else if is_one(word, LATENCY) {
            self.of_latency = true;
            self.words.take_if(&["time", "times"]);
        } else if is_one(word, QUANTILES)
            && (!is_one(word, &["max", "maximum"]) || self.words.is_next(LATENCY))
        {
            self.is_quantile = true;
            self.words.take_if(&["percentile"]);
        } else if is_one(word, DIRECT) {
            self.claim.direct = true;
            self.words.take_if(&["i/o", "io"]);
        } else if is_one(word, CACHED)
            || (is_one(word, &["page"]) && self.words.take_if(&["cache"]))
            || (is_one(word, MEMORY) && is_one(before, &["from", "in", "warm"]))
        {
            self.claim.cached = true;
            self.words.take_if(&["reads", "data"]);
        } else if is_one(word, &["single-sector"]) {
            once(&mut self.claim.io_bytes, Span::of(512.0), "the size of a request")?;
        } else if is_one(word, &["each", "apiece"]) {
            self.each |= self.files.is_none();
        } else if is_one(word, MENTIONED) || is_one(word, MEMORY) {
            self.claim.mentioned.push(word.to_owned());
        } else if !is_one(word, DATA)
            && !is_one(word, REQUESTS)
            && !FILLERS.split(' ').any(|filler| filler.eq_ignore_ascii_case(word))
        {
            let what = reason.unwrap_or_else(|| format!("`{word}` is not known"));
            bail!(Failure::new(format!("understand the claim: {what}"), EXAMPLE));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Claim> {
        let claim = &mut self.claim;
        for (flows, name) in [(&mut claim.rates, "a rate"), (&mut claim.iops, "requests a second")]
        {
            tell_apart(flows, name)?;
        }
        if let (Some(data), Some(files)) = (&mut claim.data_bytes, self.files) {
            *data = data.by(files);
        }
        if let Some(depth) = self.depth {
            let jobs = claim.in_flight.or(self.jobs).unwrap_or(Span::of(1.0));
            claim.in_flight = Some(depth.by(jobs));
        } else {
            claim.in_flight = claim.in_flight.or(self.jobs);
        }
        // A size beside requests a second is theirs.
        let small = claim.moved_bytes.is_some_and(|size| size.high <= amounts::REQUEST_BYTES_MAX);
        let is_request = claim.io_bytes.is_none()
            && claim.time_s.is_none()
            && (!claim.iops.is_empty() || (!claim.rates.is_empty() && self.depth.is_some()));
        if is_request && small {
            claim.io_bytes = claim.moved_bytes.take();
        }
        if self.each {
            match (claim.disks.is_some(), claim.links.iter().any(|path| path.count > 1)) {
                (true, false) => claim.per_disk = true,
                (false, true) => claim.per_link = true,
                _ => bail!(Failure::new(
                    "understand the claim: `each` does not say of what",
                    "write `per disk` or `per port`, and how many there are"
                )),
            }
        }
        claim.settle_links();
        if claim.compared.as_ref().is_some_and(|compared| compared.values.is_none()) {
            bail!(Failure::new(
                "understand the claim: it states a ratio of values that it does not state",
                "write it as in `1,800 MB/s against 100 MB/s: 18x`"
            ));
        }
        let nothing = Claim { mentioned: claim.mentioned.clone(), ..Claim::default() };
        if *claim == nothing {
            bail!(Failure::new("understand the claim: it states nothing", EXAMPLE));
        }
        Ok(self.claim)
    }
}

/// Refuses a link of a speed that no document defines.
pub fn defined(path: &Path) -> Result<()> {
    match path.link {
        Speed::Of(kind) if !kind.is_defined() => bail!(Failure::new(
            format!("understand the claim: no document defines {kind}"),
            "the speeds that are defined are in `blockstone help claim.md`"
        )),
        _ => Ok(()),
    }
}

fn direction(word: &str) -> Option<Direction> {
    if is_one(word, READ) {
        return Some(Direction::Read);
    }
    is_one(word, WRITE).then_some(Direction::Write)
}

/// Completes rates of reads and writes that are sequential or random together, and refuses two of
/// the same requests.
fn tell_apart(flows: &mut [Flow], name: &str) -> Result<()> {
    for at in 1..flows.len() {
        let [before, this] = [flows[at - 1].of, flows[at].of];
        if this.direction != before.direction {
            flows[at].of.pattern = this.pattern.or(before.pattern);
            flows[at - 1].of.pattern = before.pattern.or(this.pattern);
        }
    }
    let again = |at: usize| flows[..at].iter().any(|flow| flow.of == flows[at].of);
    if (1..flows.len()).any(again) {
        bail!(Failure::new(
            format!("understand the claim: it states {name} twice"),
            "check one at a time, or say which is of reads and which of writes"
        ));
    }
    Ok(())
}

/// Fills in what must not be stated twice, unless it is the same number.
fn once(slot: &mut Option<Span>, value: Span, what: &str) -> Result<()> {
    match slot {
        Some(before) if !before.restates(value) => {
            bail!(Failure::new(format!("understand the claim: it states {what} twice"), EXAMPLE))
        }
        Some(_) => {}
        None => *slot = Some(value),
    }
    Ok(())
}

fn once_same<T: PartialEq>(slot: &mut Option<T>, value: T, what: &str) -> Result<()> {
    if slot.replace(value).is_some_and(|before| Some(before) != *slot) {
        bail!(Failure::new(format!("understand the claim: it states {what} twice"), EXAMPLE));
    }
    Ok(())
}
