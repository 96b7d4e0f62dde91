//! The ranks as rank 0 sees them: threads of this process, or processes elsewhere.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::coherence::findings::CoherenceFindings;
use blockstone_sys::clock::now_ns;
use blockstone_sys::thread::spawn;

use super::agent::Agent;
use super::ask::{Answer, Ask, Reply};
use crate::CheckError;
use crate::meet::{Link, SILENCE};

/// Number of messages with which the offset between two clocks is measured.
const PINGS: usize = 50;

#[derive(Debug)]
pub struct Rank {
    way: Way,
    /// How far its clock is ahead of that of rank 0, and the maximum error of that, in nanoseconds.
    pub ahead_ns: i64,
    pub bound_ns: u64,
    pub can_write: bool,
}

#[derive(Debug)]
enum Way {
    Thread { asks: Sender<Ask>, replies: Receiver<Reply> },
    Process(Link),
}

impl Rank {
    /// Starts a thread of this process.
    pub fn thread(mut agent: Agent) -> Result<Self, CheckError> {
        let (asks, to_agent) = channel::<Ask>();
        let (from_agent, replies) = channel();
        // It is not waited for, because its storage may hang. It cleans up once no more requests
        // arrive.
        let work = move || {
            for ask in to_agent {
                let reply = agent.answer(&ask);
                if from_agent.send(reply).is_err() {
                    break;
                }
            }
        };
        spawn("rank", work).map_err(|source| CheckError::Thread { source })?;
        let way = Way::Thread { asks, replies };
        let mut rank = Self { way, ahead_ns: 0, bound_ns: 0, can_write: false };
        rank.can_write = matches!(rank.ask(Ask::Time)?, Answer::CanWrite(true));
        Ok(rank)
    }

    /// Adopts a process that joined. Measures how far its clock is ahead: of many round trips, the
    /// shortest has the smallest error.
    pub fn process(link: Link) -> Result<Self, CheckError> {
        let mut rank = Self { way: Way::Process(link), ahead_ns: 0, bound_ns: 0, can_write: false };
        let mut shortest_ns = u64::MAX;
        for _ in 0..PINGS {
            let sent_ns = now_ns();
            rank.send(Ask::Time)?;
            let reply = rank.receive()?;
            let back_ns = now_ns();
            rank.can_write = matches!(reply.answer, Answer::CanWrite(true));
            let trip_ns = back_ns - sent_ns;
            if trip_ns < shortest_ns {
                shortest_ns = trip_ns;
                let middle_ns = sent_ns + trip_ns / 2;
                rank.ahead_ns = reply.start_ns.wrapping_sub(middle_ns) as i64;
                rank.bound_ns = trip_ns.div_ceil(2);
            }
        }
        Ok(rank)
    }

    pub fn send(&mut self, ask: Ask) -> Result<(), CheckError> {
        match &mut self.way {
            Way::Thread { asks, .. } => asks.send(ask).map_err(|_| CheckError::RankGone),
            Way::Process(link) => Ok(link.tell(&ask)?),
        }
    }

    pub fn receive(&mut self) -> Result<Reply, CheckError> {
        match &mut self.way {
            Way::Thread { replies, .. } => {
                replies.recv_timeout(SILENCE).map_err(|_| CheckError::RankGone)
            }
            Way::Process(link) => link.hear(SILENCE)?.ok_or(CheckError::RankGone),
        }
    }

    pub fn ask(&mut self, ask: Ask) -> Result<Answer, CheckError> {
        self.send(ask)?;
        Ok(self.receive()?.answer)
    }

    /// Converts a time of its clock to that of rank 0, at the earliest and at the latest.
    pub fn at_ns(&self, its_ns: u64) -> (u64, u64) {
        let ns = its_ns.saturating_add_signed(self.ahead_ns.saturating_neg());
        (ns.saturating_sub(self.bound_ns).max(1), ns.saturating_add(self.bound_ns))
    }
}

/// Does what rank 0 asks over `link` until it says that all is done. Returns the findings of rank
/// 0, unless it ended early or was interrupted.
pub fn serve(
    mut agent: Agent,
    link: &mut Link,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<CoherenceFindings>, CheckError> {
    const SLICE: Duration = Duration::from_millis(200);
    /// Rank 0 asks without pauses.
    const IDLE_SLICES: u32 = 300;
    let mut idle = 0;
    while idle < IDLE_SLICES && !interrupted() {
        let Some(ask) = link.hear::<Ask>(SLICE)? else {
            idle += 1;
            continue;
        };
        idle = 0;
        link.tell(&agent.answer(&ask))?;
        if let Ask::End(findings) = ask {
            return Ok(findings.map(|found| *found));
        }
    }
    if idle == IDLE_SLICES { Err(CheckError::RankGone) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_other_clocks_are_as_sure_as_the_bound() {
        let (_, replies) = channel();
        let (asks, _) = channel();
        let way = Way::Thread { asks, replies };
        let rank = Rank { way, ahead_ns: -500, bound_ns: 20, can_write: true };
        assert_eq!(rank.at_ns(1_000), (1_480, 1_520));
        let rank = Rank { ahead_ns: i64::MIN, ..rank };
        assert_eq!(rank.at_ns(u64::MAX), (u64::MAX - 20, u64::MAX));
        assert_eq!(Rank { ahead_ns: 5_000, ..rank }.at_ns(10), (1, 20));
    }
}
