//! `blockstone help`: verbs and documents, through a pipe and on a terminal.

use std::process::{Command, Stdio};

use blockstone_testkit::{Ran, blockstone_binary, run};

use super::turn::Turn;
use super::watch::terminal::Terminal;

fn blockstone(words: &str) -> Ran {
    run(Command::new(blockstone_binary()).args(words.split(' ')))
}

fn page(name: &str) -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    std::fs::read_to_string(format!("{docs}/{name}")).unwrap()
}

#[test]
fn a_verb_takes_precedence_and_a_file_is_a_document() {
    let _turn = Turn::beside();
    for (topic, name) in [
        ("expect", "expect.md"),
        ("expect.md", "expect.md"),
        ("docs/expect.md", "expect.md"),
        ("flash.md", "flash.md"),
        ("docs/flash.md", "flash.md"),
    ] {
        let ran = blockstone(&format!("help {topic}"));
        assert_eq!((ran.code, ran.stdout), (Some(0), page(name)), "{topic}");
    }
    for verb in ["flash", "flash sim", "check durability", "cal", "help"] {
        let ran = blockstone(&format!("help {verb}"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.stdout, blockstone(&format!("{verb} --help")).stdout, "{verb}");
    }
    assert_eq!(blockstone("help").stdout, blockstone("--help").stdout);
    let topics = blockstone("help topics").stdout;
    assert!(topics.contains("  expect.md            Expectations: a limit, and"), "{topics}");
}

#[test]
fn an_unknown_topic_is_refused_with_one_that_is_near() {
    let _turn = Turn::beside();
    for (topic, near) in [
        ("expct.md", "did you mean `expect.md`? blockstone help topics lists the documents"),
        ("flash nosuch", "blockstone help topics lists the documents"),
        ("../README.md", "did you mean `README.md`? blockstone help topics lists the documents"),
    ] {
        let ran = blockstone(&format!("help {topic}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
        let what = "neither a verb, a document nor a word in them";
        let what = format!("error: help with `{topic}`: {what}\nhint: {near}");
        assert!(ran.stderr.starts_with(&what), "{}", ran.stderr);
    }
}

#[test]
fn a_reader_that_leaves_is_not_an_error() {
    let _turn = Turn::beside();
    for words in [&["help", "verdicts"][..], &["help", "topics"], &["run", "--help"]] {
        let mut command = Command::new(blockstone_binary());
        let (reader, writer) = std::io::pipe().unwrap();
        command.args(words).stdout(writer).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop((reader, command));
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{words:?}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{words:?}");
    }
}

#[test]
fn a_terminal_shows_prose_in_its_width_and_headings_in_bold() {
    let _turn = Turn::beside();
    let mut command = Command::new(blockstone_binary());
    let mut terminal = Terminal::start(command.args(["help", "exit-codes"]), 200, 70);
    let shown = terminal.until(|text| text.contains("The result is printed"));
    assert_eq!(terminal.end(), Some(0));
    assert!(shown.starts_with("Exit codes\n\nEach code has one meaning, "), "{shown}");
    let page = page("exit-codes.md");
    let prose = page.lines().find(|line| line.starts_with("Each code")).unwrap();
    assert!(prose.len() > 70 && !shown.contains(prose), "{shown}");
    assert!(shown.contains("| 0 | `blockstone calibrate --quick /data` |"), "{shown}");
}
