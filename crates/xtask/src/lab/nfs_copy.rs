//! Checks that `copy` has an NFS server do the copying where it can, and says why not where it
//! cannot. A machine emulated by QEMU mounts its own kernel's server, which copies, and a server on
//! its host, which does not. The client's own counters show what went over the wire; the bytes are
//! compared outside.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use blockstone_base::Bytes;
use blockstone_testkit::{Guest, GuestDisk, NfsServer, Power, ScratchDir, build_as_tested};
use serde_json::Value;

use super::Lab;
use super::power_cut::await_within;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::packages;

const PATIENCE: Duration = Duration::from_mins(9);
const MIB: f64 = 1_048_576.0;

/// The source: data, a hole, data, and an end within a page.
const DATA_BYTES: [u64; 2] = [40 << 20, (24 << 20) + 123];
const HOLE_BYTES: u64 = 32 << 20;
const BYTES: u64 = DATA_BYTES[0] + HOLE_BYTES + DATA_BYTES[1];
/// Space in bytes that a file system may need in addition to the data.
const OTHER_BYTES: u64 = 1 << 20;
/// Traffic in MiB that names, attributes and searches for holes may cause.
const SMALL_MIB: f64 = 1.0;

/// Server that holds a source and its targets.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    /// The kernel's, in the same machine.
    Kernel,
    /// nfs-ganesha, on the host.
    Ganesha,
}

/// A copy, and its expected result.
struct Case {
    name: &'static str,
    server: Server,
    /// Mount of the source and of the target.
    mounts: [&'static str; 2],
    /// Arguments of a command that is ended by Ctrl-C before this one.
    interrupted: Option<&'static str>,
    words: &'static str,
    found: Found,
}

#[derive(Clone, Copy)]
struct Found {
    /// `None` if the copy is refused.
    method: Option<&'static str>,
    /// Part of the stated reason for the method, or for the refusal.
    why: &'static str,
    /// Verification of the target's bytes, as reported.
    verified: Option<bool>,
    /// Whether the hole is preserved: before NFS 4.2, a client does not see it.
    sparse: bool,
}

const fn by(method: &'static str, why: &'static str) -> Found {
    Found { method: Some(method), why, verified: None, sparse: true }
}

const PLAIN: Case = Case {
    name: "",
    server: Server::Kernel,
    mounts: ["/k42", "/k42"],
    interrupted: None,
    words: "",
    found: by("server", "no reflink"),
};

/// Seconds until Ctrl-C is sent.
const INTERRUPT_S: &str = "8";

const OLDER: &str = "the mount is older than NFS 4.2";
const FILLED: Found = Found { sparse: false, ..by("direct", OLDER) };
const REFUSED: &str =
    "no copy by the server: it refused, and the kernel read and wrote in its place";
const READS: &str = "no reflink: hashes are of bytes that are read";

const CASES: &[Case] = &[
    Case { name: "server", ..PLAIN },
    Case {
        name: "server-verify",
        words: "--method server --verify",
        found: Found { verified: Some(false), ..by("server", "") },
        ..PLAIN
    },
    Case {
        name: "verify",
        words: "--verify",
        found: Found { verified: Some(false), ..by("direct", READS) },
        ..PLAIN
    },
    Case {
        name: "server-resume",
        interrupted: Some("--rate 4M"),
        words: "--rate 8M --resume",
        ..PLAIN
    },
    Case {
        name: "direct-resume",
        interrupted: Some("--rate 4M --resume --method direct"),
        words: "--resume",
        found: by("direct", "an interrupted copy goes on"),
        ..PLAIN
    },
    Case {
        name: "two-mounts",
        mounts: ["/k42", "/l42"],
        found: by("direct", "the files are on two mounts"),
        ..PLAIN
    },
    Case { name: "4.1", mounts: ["/k41", "/k41"], found: FILLED, ..PLAIN },
    Case { name: "4.0", mounts: ["/k40", "/k40"], found: FILLED, ..PLAIN },
    Case {
        name: "4.1-server",
        mounts: ["/k41", "/k41"],
        words: "--method server",
        found: Found { method: None, ..FILLED },
        ..PLAIN
    },
    Case {
        name: "ganesha",
        server: Server::Ganesha,
        mounts: ["/g42", "/g42"],
        found: by("direct", REFUSED),
        ..PLAIN
    },
    Case {
        name: "ganesha-server",
        server: Server::Ganesha,
        mounts: ["/h42", "/h42"],
        words: "--method server",
        found: Found { method: None, ..by("", REFUSED) },
        ..PLAIN
    },
];

const COLUMNS: &[Column] = &[
    column("exit_code", "exit\ncode", 0),
    column("copies", "COPY\nanswered", 0),
    column("refused", "COPY\nrefused", 0),
    column("read_mib", "MiB\nread", 1),
    column("written_mib", "MiB\nwritten", 1),
    column("wire_mib", "MiB on\nthe wire", 1),
    column("seconds", "seconds", 1),
];

/// Shell functions of a job: the counters of all mounts and of one link, one copy, and an
/// interrupted copy.
const JOB: &str = r#"
wire() {
    case $LINK in
        lo) cat /sys/class/net/lo/statistics/rx_bytes ;;
        *) echo $(($(cat /sys/class/net/$LINK/statistics/rx_bytes) + \
            $(cat /sys/class/net/$LINK/statistics/tx_bytes))) ;;
    esac
}
counters() {
    awk -v wire=$(wire) '
        $1 == "COPY:" { copies += $2 - $10; refused += $10 }
        $1 == "READ:" { read += $6 }
        $1 == "WRITE:" { written += $5 }
        END { printf "{\"wire\":%d,\"copies\":%d,\"refused\":%d,\"read\":%d,\"written\":%d}",
            wire, copies, refused, read, written }' /proc/self/mountstats
}
text() { tr '\n\t"\\' "  '/" <$1; }
said() {
    [ -s /said ] || echo null >/said
    echo "{\"case\":\"$1\",\"code\":$code,\"before\":$before,\"after\":$(counters),\"stopped\":\
\"$stopped\",\"errors\":\"$(text /errors)\",\"said\":$(cat /said)}" >/answers
}
try() {
    name=$1; source=$2; target=$3; shift 3
    before=$(counters)
    blockstone copy $source/source $target/$name "$@" --json >/said 2>/errors
    code=$?
    said $name
}
interrupt() {
    name=$1; source=$2; target=$3; shift 3
    timeout -s INT $PATIENCE blockstone copy $source/source $target/$name "$@" --json \
        >/said 2>/errors
    stopped="$? $(text /errors)"
}
left() {
    # The client removes some names later.
    sleep 1
    ls -A /srv >/left
    echo "{\"case\":\"left\",\"names\":\"$(text /left)\"}" >/answers
}
"#;

pub fn run(lab: &Lab) -> Result<Results> {
    packages::guest()?;
    packages::nfs_server()?;
    eprintln!("building blockstone");
    let binary = build_as_tested("blockstone")?;
    lab.interrupt.check()?;
    let scratch = ScratchDir::on_disk()?;
    let (files, taken) = (scratch.path().join("files"), scratch.path().join("taken"));
    fs::create_dir(&files)?;
    let source = files.join("source");
    make_source(&source)?;
    let server = NfsServer::start()?;
    copy_sparse(&source, &server.exported().join("source"))?;
    let guest = Guest::create(Bytes::gib(2), GuestDisk::Honest)?;
    // Without a journal, everything is in its place as soon as the machine has synced.
    let mut make = Command::new("mkfs.ext4");
    make.args(["-q", "-F", "-O", "^has_journal", "-d"]).arg(&files).arg(guest.backing());
    ensure!(make.status().context("start mkfs.ext4")?.success(), "mkfs.ext4 failed");
    guest.install(&job(server.port()), &[&binary])?;
    eprintln!("a machine copies files of two servers");
    guest.power(Power::On)?;
    let ended = await_within(PATIENCE, || lab.interrupt.check().is_err() || !guest.runs());
    lab.interrupt.check()?;
    ended.with_context(|| format!("{}{}\n{}", guest.answers(), guest.console(), server.log()))?;
    let said = said(&guest.answers()).with_context(|| guest.console())?;
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    for case in CASES {
        let failed = || format!("{}:\n{}{}", case.name, guest.console(), server.log());
        let answer = said.get(case.name).with_context(failed)?;
        let target = match case.server {
            Server::Ganesha => server.exported().join(case.name),
            Server::Kernel => {
                take(&guest.backing(), case.name, &taken)?;
                taken.clone()
            }
        };
        let figures = Figures::of(answer).with_context(failed)?;
        case.show(answer);
        goals.extend(case.goals(answer, &figures, &source, &target)?);
        points.push(figures.point(case.name));
    }
    let left = said["left"]["names"].as_str().context("find the names that are left")?;
    let left = left.split_whitespace().filter(|name| name.starts_with('.')).count();
    goals.push(Goal::at_most("temporary files that are left", left as f64, 0.0));
    Ok(Results { columns: COLUMNS, points, goals })
}

fn job(port: u16) -> String {
    let kernels = [("k42", "4.2"), ("l42", "4.2"), ("k41", "4.1"), ("k40", "4.0")];
    let kernels = kernels.map(|(dir, version)| {
        format!("mount_nfs /{dir} 2049 vers={version},nosharecache 127.0.0.1:/ || poweroff -f\n")
    });
    let others = ["g42", "h42"]
        .map(|dir| format!("mount_nfs /{dir} {port} vers=4.2,nosharecache || poweroff -f\n"));
    let cases = CASES.iter().map(|case| {
        let Case { name, words, mounts: [source, target], .. } = case;
        let link = if case.server == Server::Kernel { "lo" } else { "eth0" };
        let first = case.interrupted.map_or_else(
            || "stopped=\n".to_owned(),
            |words| format!("interrupt {name} {source} {target} {words}\n"),
        );
        format!("LINK={link}\n{first}try {name} {source} {target} {words}\n")
    });
    let served = "mkdir /srv\nmount $DISK /srv || poweroff -f\nserve_nfs /srv\n";
    let cases: String = cases.collect();
    format!(
        "PATIENCE={INTERRUPT_S}\n{JOB}{served}{}{}{cases}sync\nleft\n",
        kernels.concat(),
        others.concat()
    )
}

/// Makes a file in which no two pages are alike.
fn make_source(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    file.set_len(BYTES)?;
    let mut random = File::open("/dev/urandom")?;
    for (offset, len) in [(0, DATA_BYTES[0]), (DATA_BYTES[0] + HOLE_BYTES, DATA_BYTES[1])] {
        let mut bytes = vec![0; len as usize];
        random.read_exact(&mut bytes)?;
        file.write_all_at(&bytes, offset)?;
    }
    file.sync_all().context("make a source")
}

fn copy_sparse(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("--sparse=always").args([from, to]).status();
    ensure!(status.context("start cp")?.success(), "cp failed");
    Ok(())
}

/// Extracts a file from an ext4 file system.
fn take(disk: &Path, name: &str, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    let request = format!("dump /{name} {}", to.display());
    let took = Command::new("debugfs").args(["-R", &request]).arg(disk).output();
    let took = took.context("start debugfs")?;
    ensure!(took.status.success(), "debugfs: {}", String::from_utf8_lossy(&took.stderr));
    Ok(())
}

/// Returns the answer for each case.
fn said(answers: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for answer in serde_json::Deserializer::from_str(answers).into_iter::<Value>() {
        let answer = answer.context("understand what the machine answered")?;
        let case = answer["case"].as_str().context("find which case it is about")?;
        all.insert(case.to_owned(), answer.clone());
    }
    Ok(all)
}

/// Cost of the last copy of a case, by the client's counters.
struct Figures {
    code: f64,
    copies: f64,
    refused: f64,
    read_mib: f64,
    written_mib: f64,
    wire_mib: f64,
    seconds: f64,
}

impl Figures {
    fn of(answer: &Value) -> Result<Self> {
        let moved = |key: &str| -> Result<f64> {
            let at = |when: &str| answer[when][key].as_f64();
            let moved = at("after").zip(at("before")).map(|(after, before)| after - before);
            moved.with_context(|| format!("find {key} in {answer}"))
        };
        Ok(Self {
            code: answer["code"].as_f64().with_context(|| format!("find its end in {answer}"))?,
            copies: moved("copies")?,
            refused: moved("refused")?,
            read_mib: moved("read")? / MIB,
            written_mib: moved("written")? / MIB,
            wire_mib: moved("wire")? / MIB,
            seconds: answer["said"]["seconds"].as_f64().unwrap_or(f64::NAN),
        })
    }

    fn point(&self, name: &str) -> Point {
        let values = vec![
            self.code,
            self.copies,
            self.refused,
            self.read_mib,
            self.written_mib,
            self.wire_mib,
            self.seconds,
        ];
        Point { name: name.to_owned(), values }
    }
}

impl Case {
    fn show(&self, answer: &Value) {
        let why = answer["said"]["reasons"][0]["why"].as_str().unwrap_or_default();
        let (stopped, errors) = (answer["stopped"].as_str(), answer["errors"].as_str());
        eprintln!("    {}: {why}", self.name);
        for text in [stopped, errors].into_iter().flatten().filter(|text| !text.is_empty()) {
            eprintln!("        {text}");
        }
    }

    fn goals(
        &self,
        answer: &Value,
        figures: &Figures,
        source: &Path,
        target: &Path,
    ) -> Result<Vec<Goal>> {
        let what = |what: &str| format!("{}: {what}", self.name);
        let is =
            |what_: &str, holds: bool| Goal::at_least(what(what_), f64::from(u8::from(holds)), 1.0);
        let said = &answer["said"];
        let hole = if self.found.sparse { HOLE_BYTES } else { 0 };
        let data = (BYTES - hole) as f64;
        let Some(method) = self.found.method else {
            let errors = answer["errors"].as_str().unwrap_or_default();
            return Ok(vec![
                Goal::within(what("exit code"), figures.code, 2.0, 2.0),
                is("says why", errors.contains(self.found.why)),
                is("left nothing", fs::metadata(target).map_or(true, |it| it.len() == 0)),
                Goal::at_most(what("MiB on the wire"), figures.wire_mib, 2.0 * SMALL_MIB + 2.0),
            ]);
        };
        let reasons = said["reasons"].as_array().into_iter().flatten();
        let mut reasons = reasons.filter_map(|reason| reason["why"].as_str());
        let (equal, blocks) = compare(source, target)?;
        let mut goals = vec![
            Goal::within(what("exit code"), figures.code, 0.0, 0.0),
            is(&format!("method is {method}"), said["method"] == method),
            is(
                "says why",
                self.found.why.is_empty() || reasons.any(|it| it.contains(self.found.why)),
            ),
            is("verified as it should be", said["verified"].as_bool() == self.found.verified),
            Goal::within(
                what("bytes of data"),
                said["data_bytes"].as_f64().unwrap_or(f64::NAN),
                data,
                data,
            ),
            Goal::within(what("bytes that are equal"), equal as f64, BYTES as f64, BYTES as f64),
        ];
        if self.server == Server::Ganesha {
            // Files that debugfs extracts have no holes.
            goals.push(Goal::at_most(
                what("bytes on disk"),
                blocks as f64,
                data + OTHER_BYTES as f64,
            ));
        }
        if method == "server" {
            goals.push(Goal::at_least(what("COPY answered"), figures.copies, 1.0));
            goals.push(Goal::at_most(what("MiB on the wire"), figures.wire_mib, SMALL_MIB));
        } else {
            goals.push(Goal::within(what("COPY answered"), figures.copies, 0.0, 0.0));
        }
        if self.interrupted.is_some() {
            let stopped = answer["stopped"].as_str().unwrap_or_default();
            goals.push(is("Ctrl-C ends with 130", stopped.starts_with("130 ")));
            let resumed = said["resumed_bytes"].as_f64().unwrap_or(f64::NAN);
            if method == "server" {
                goals.push(Goal::within(what("bytes resumed"), resumed, 0.0, 0.0));
            } else {
                goals.push(Goal::within(what("bytes resumed"), resumed, 1.0, data - 1.0));
            }
        }
        Ok(goals)
    }
}

/// Returns how many bytes of the target equal those of the source, if it has the same size, and how
/// many it takes on disk.
fn compare(source: &Path, target: &Path) -> Result<(u64, u64)> {
    let found = fs::metadata(target).with_context(|| format!("look at {}", target.display()))?;
    let [source, target] = [source, target].map(fs::read);
    let (source, target) = (source.context("read the source")?, target.context("read a target")?);
    if source.len() != target.len() {
        return Ok((0, found.blocks() * 512));
    }
    let equal = source.iter().zip(&target).filter(|(a, b)| a == b).count();
    Ok((equal as u64, found.blocks() * 512))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(wire: u64, said: &Value) -> Value {
        let counters = |wire: u64, copies: u64| {
            serde_json::json!({
                "wire": wire, "copies": copies, "refused": 0, "read": 0, "written": 0
            })
        };
        serde_json::json!({
            "case": "server", "code": 0, "stopped": "", "errors": "", "said": said,
            "before": counters(100, 1), "after": counters(wire, 4)
        })
    }

    #[test]
    fn a_copy_that_went_over_the_wire_is_missed() {
        let scratch = ScratchDir::on_disk().unwrap();
        let source = scratch.path().join("source");
        make_source(&source).unwrap();
        let said = serde_json::json!({
            "method": "server", "verified": null, "seconds": 1.5,
            "data_bytes": DATA_BYTES.iter().sum::<u64>(), "reasons": [{"why": "no reflink: x"}]
        });
        let missed = |wire: u64| {
            let answer = answer(wire, &said);
            let figures = Figures::of(&answer).unwrap();
            let goals = CASES[0].goals(&answer, &figures, &source, &source).unwrap();
            goals.iter().filter(|goal| !goal.is_met()).count()
        };
        assert_eq!([missed(4096), missed(64 << 20)], [0, 1]);
        assert!(Figures::of(&serde_json::json!({"code": 0})).is_err());
    }

    #[test]
    fn a_target_is_compared_byte_by_byte() {
        let scratch = ScratchDir::on_disk().unwrap();
        let paths = ["a", "b", "c"].map(|name| scratch.path().join(name));
        for (path, bytes) in paths.iter().zip(["abc", "abd", "ab"]) {
            fs::write(path, bytes).unwrap();
        }
        assert_eq!(compare(&paths[0], &paths[1]).unwrap().0, 2);
        assert_eq!(compare(&paths[0], &paths[2]).unwrap().0, 0);
    }

    #[test]
    fn a_job_copies_each_case_and_resumes_what_was_interrupted() {
        let job = job(2049);
        assert_eq!(job.matches("\ntry ").count(), CASES.len());
        assert_eq!(job.matches("--resume\n").count(), 2);
        assert!(job.contains("interrupt server-resume /k42 /k42 --rate 4M\n"), "{job}");
    }
}
