//! Sources of the screen's history: a host that is watched, or a recording.

use std::borrow::Cow;
use std::time::Duration;

use blockstone_base::hint::Hint as _;
use blockstone_screen::{Frame, Request, ScreenError, Source};
use blockstone_servers::monitor::Server;
use blockstone_sys::clock;
use blockstone_view::History;
use blockstone_watch::Watch;

use super::found;
use super::keeper::{Keeper, one_line};
use crate::interrupt::Interrupt;

pub struct Live<'a> {
    pub watch: &'a mut Watch,
    /// Number of ticks after which the watch ends; `None` if it ends only on request.
    pub ticks: Option<u64>,
    pub taken: u64,
    pub interrupt: &'a Interrupt,
    pub title: String,
    pub keeper: Keeper,
}

pub struct Recorded {
    pub history: History,
    pub title: String,
    pub interrupt: Interrupt,
    /// Answer to the last key, if it asked for what only a live watch can do.
    pub note: Option<String>,
}

impl Live<'_> {
    /// Connects to the databases of this host, and returns what to tell the user.
    fn connected(&mut self) -> anyhow::Result<String> {
        let (addresses, refused) = found::addresses()?;
        self.watch.connect(&addresses)?;
        let shown = |server: &Server| format!("watching {} {}", server.product, server.version);
        let servers = self.watch.servers().map(shown);
        let refused = refused.into_iter().map(|why| format!("not watched: {why}"));
        Ok(servers.chain(refused).collect::<Vec<_>>().join("; "))
    }
}

impl Source for Live<'_> {
    fn history(&self) -> &History {
        self.watch.history()
    }

    fn due(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.watch.due_ns().saturating_sub(clock::now_ns())))
    }

    fn look(&mut self) -> Result<(), ScreenError> {
        self.taken += 1;
        self.keeper.look();
        self.watch.look_when_due().map_err(|error| ScreenError::Source {
            why: error.to_string(),
            hint: error.hint().map(Cow::into_owned),
        })
    }

    fn frame(&self) -> Frame {
        let silent = self.watch.silent().map(|why| why.lines().next().unwrap_or_default());
        let note = silent.or_else(|| self.watch.jumps().next()).or(self.keeper.note());
        let note = note.map(str::to_owned);
        let servers = self.watch.servers();
        let server = |server: &Server| format!(" · {} {}", server.product, server.version);
        let server: String = servers.map(server).collect();
        Frame { title: format!("{}{server}", self.title), live: true, note }
    }

    fn asked(&mut self, request: Request) {
        match request {
            Request::CountEverybody => self.watch.count_everybody(),
            Request::Keep => self.keeper.keep(self.watch),
            Request::Connect => {
                let note = self.connected().unwrap_or_else(|error| one_line(&error));
                self.keeper.say(note);
            }
        }
    }

    fn over(&self) -> bool {
        self.interrupt.signal().is_some() || self.ticks.is_some_and(|ticks| self.taken >= ticks)
    }
}

impl Source for Recorded {
    fn history(&self) -> &History {
        &self.history
    }

    fn due(&self) -> Option<Duration> {
        None
    }

    fn look(&mut self) -> Result<(), ScreenError> {
        Ok(())
    }

    fn frame(&self) -> Frame {
        Frame { title: self.title.clone(), live: false, note: self.note.clone() }
    }

    fn asked(&mut self, request: Request) {
        self.note = match request {
            Request::CountEverybody => None,
            Request::Keep => Some("K keeps a live watch; this is already a recording".to_owned()),
            Request::Connect => Some("D connects a live watch; this is a recording".to_owned()),
        };
    }

    fn over(&self) -> bool {
        self.interrupt.signal().is_some()
    }
}
