//! Runs the screen: reads keys, draws, and ticks when due.

use std::io;
use std::time::Duration;

use blockstone_base::hint::Hint;
use blockstone_view::History;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::draw::draw;
use crate::keys::{Key, press};
use crate::state::{Frame, Request, State};

pub trait Source {
    fn history(&self) -> &History;
    /// Time until the next tick is due; `None` if there are no more ticks.
    fn due(&self) -> Option<Duration>;
    /// Takes the tick that is due.
    fn look(&mut self) -> Result<(), ScreenError>;
    fn frame(&self) -> Frame;
    /// Does what a key asks for; a note in the next frames says what became of it.
    fn asked(&mut self, request: Request);
    fn over(&self) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    ByUser,
    Over,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum ScreenError {
    #[error("draw on the terminal: {0}")]
    #[hint("--once prints one interval without a terminal")]
    Terminal(#[from] io::Error),
    #[error("{why}")]
    #[hint(hint)]
    Source { why: String, hint: Option<String> },
}

/// Time to wait for a key while nothing is due.
const PATIENCE: Duration = Duration::from_millis(200);

/// Shows `source` until the user quits or it ends. The terminal is restored in any case.
pub fn show(source: &mut dyn Source, mut state: State) -> Result<Left, ScreenError> {
    let mut terminal = ratatui::try_init()?;
    let result = run(&mut terminal, source, &mut state);
    if is_hung_up_within(Duration::ZERO)? {
        // Nothing to restore, and an error message to the closed terminal would panic.
        std::mem::forget(terminal);
        return Ok(Left::Over);
    }
    ratatui::try_restore()?;
    result
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    source: &mut dyn Source,
    state: &mut State,
) -> Result<Left, ScreenError> {
    // Drawn only after a change: drawing costs more than a tick.
    let (mut rows, mut is_stale) = (0, true);
    loop {
        if source.due().is_some_and(|due| due.is_zero()) {
            source.look()?;
            is_stale = true;
        }
        if std::mem::take(&mut is_stale) {
            terminal.draw(|frame| {
                let area = frame.area();
                rows = draw(state, source.history(), &source.frame(), area, frame.buffer_mut());
            })?;
        }
        if state.leave {
            return Ok(Left::ByUser);
        }
        if source.over() {
            return Ok(Left::Over);
        }
        let wait = source.due().unwrap_or(PATIENCE).min(PATIENCE);
        if is_hung_up_within(wait)? {
            return Ok(Left::Over);
        }
        // Any event counts, not only a key: the terminal may have been resized.
        if event::poll(Duration::ZERO)? {
            is_stale = true;
            if let Event::Key(pressed) = event::read()?
                && let Some(key) = key(pressed)
            {
                press(state, key, source.history(), rows);
                if let Some(request) = state.request.take() {
                    source.asked(request);
                }
            }
        }
    }
}

/// Waits for the keyboard. Returns true as soon as the terminal is closed, which is checked first
/// because crossterm loops forever on the end of file of a closed terminal.
fn is_hung_up_within(wait: Duration) -> io::Result<bool> {
    let keyboard = io::stdin();
    let mut asked = [PollFd::new(&keyboard, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut asked, Some(&wait)) {
        // A signal: the terminal was resized, or the program was asked to exit.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(asked[0].revents().intersects(gone))
}

fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    // In raw mode Ctrl-C is a key, not a signal.
    if pressed.modifiers.contains(KeyModifiers::CONTROL) && pressed.code == Key::Char('c') {
        return Some(Key::Char('q'));
    }
    Some(pressed.code)
}
