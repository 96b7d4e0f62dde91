//! Sources of the screen's history: a host that is watched, or a recording.

use std::time::Duration;

use blockstone_screen::{Frame, Source};
use blockstone_servers::monitor::Server;
use blockstone_sys::clock;
use blockstone_view::History;
use blockstone_watch::Watch;

use crate::interrupt::Interrupt;

pub struct Live<'a> {
    pub watch: &'a mut Watch,
    /// Number of ticks after which the watch ends; `None` if it ends only on request.
    pub ticks: Option<u64>,
    pub taken: u64,
    pub interrupt: &'a Interrupt,
    pub title: String,
}

pub struct Recorded {
    pub history: History,
    pub title: String,
    pub interrupt: Interrupt,
}

impl Source for Live<'_> {
    fn history(&self) -> &History {
        self.watch.history()
    }

    fn due(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.watch.due_ns().saturating_sub(clock::now_ns())))
    }

    fn look(&mut self) -> Result<(), String> {
        self.taken += 1;
        self.watch.look_when_due().map_err(|error| error.to_string())
    }

    fn frame(&self) -> Frame {
        let silent = self.watch.silent().map(|why| why.lines().next().unwrap_or_default());
        let note = silent.or_else(|| self.watch.jumps().next()).map(str::to_owned);
        let servers = self.watch.servers();
        let server = |server: &Server| format!(" · {} {}", server.product, server.version);
        let server: String = servers.map(server).collect();
        Frame { title: format!("{}{server}", self.title), live: true, note }
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

    fn look(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn frame(&self) -> Frame {
        Frame { title: self.title.clone(), live: false, note: None }
    }

    fn over(&self) -> bool {
        self.interrupt.signal().is_some()
    }
}
