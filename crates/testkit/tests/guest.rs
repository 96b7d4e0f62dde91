//! Checks the emulated machine by the contents of its medium after a power cut.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_testkit::{Guest, GuestDisk, Power, require};

const JOB: &str = "\
    yes flushed | head -c 4096 >/flushed
    yes cached | head -c 4096 >/cached
    dd if=/flushed of=$DISK bs=4096 oflag=direct conv=fsync
    dd if=/cached of=$DISK bs=4096 oflag=direct seek=1
    echo written >/answers
    sleep 60
";

#[test]
fn a_machine_without_power_has_lost_what_it_did_not_flush() {
    require!(Qemu);
    let guest = Guest::create(Bytes::mib(4), GuestDisk::Honest).unwrap();
    guest.install(JOB, &[]).unwrap();
    guest.power(Power::On).unwrap();
    let patience = Instant::now() + Duration::from_mins(1);
    while !guest.answers().contains("written") {
        assert!(Instant::now() < patience, "{}", guest.console());
        sleep(Duration::from_millis(50));
    }
    guest.power(Power::Off).unwrap();
    let medium = fs::read(guest.backing()).unwrap();
    assert!(medium.starts_with(b"flushed\n"), "{}", guest.console());
    assert!(medium[4096..].iter().all(|&byte| byte == 0), "it was flushed too");
}
