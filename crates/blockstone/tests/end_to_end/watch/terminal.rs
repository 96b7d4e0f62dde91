//! A terminal whose other end the test holds.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program on a terminal of its own.
pub struct Terminal {
    child: Child,
    keyboard: Option<File>,
    screen: Arc<Mutex<vt100::Parser>>,
    thread: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

impl Terminal {
    /// Starts `command` on a terminal of `rows` and `columns`.
    pub fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
        // A child that inherited one end would keep it open.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command.stdin(end(&theirs)).stdout(end(&theirs)).stderr(end(&theirs));
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let child = command.spawn().unwrap();
        // The command holds ends of the terminal too, which would keep it open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, painted) = (File::from(ours.try_clone().unwrap()), Arc::clone(&screen));
        let closed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&closed);
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !told.load(Ordering::Relaxed) {
                let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&wait)) == Ok(0) {
                    continue;
                }
                let Ok(count @ 1..) = output.read(&mut bytes) else { return };
                painted.lock().unwrap_or_else(PoisonError::into_inner).process(&bytes[..count]);
            }
        });
        let (keyboard, thread) = (Some(File::from(ours)), Some(thread));
        Self { child, keyboard, screen, thread, closed }
    }

    /// Presses keys.
    pub fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            write!(self.keyboard.as_mut().unwrap(), "{key}").unwrap();
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until the screen shows something, and returns it.
    pub fn until(&mut self, shows: impl Fn(&str) -> bool) -> String {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            let text = screen.screen().contents();
            drop(screen);
            if shows(&text) {
                return text;
            }
            assert!(Instant::now() < patience, "the screen is\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Closes the terminal, as closing its window does.
    pub fn hang_up(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.keyboard = None;
    }

    /// Waits until the program has ended, and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < patience, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
