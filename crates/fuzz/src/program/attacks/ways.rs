//! How each command reaches its paths: the arguments with which it runs for some seconds at most.
//!
//! Commands that need nothing but their required arguments are not listed. The honest run of a line
//! must end well, which shows that the attacked path is reached; a line that cannot end well says
//! where it ends.

use super::fixtures::RANKS;

/// Arguments for one command.
#[derive(Debug)]
pub struct Way {
    /// Words of the command: `check direct`.
    pub of: &'static str,
    /// Whether it takes seconds: a test then makes fewer attacks on options of all verbs.
    pub measures: bool,
    /// Arguments that it is given when an option of all verbs is attacked.
    pub plain: &'static [&'static str],
    pub paths: &'static [Reach],
}

/// How one path of a command is reached.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Name of the argument in the declaration.
    pub argument: &'static str,
    pub honest: Honest,
    /// All arguments; `{}` stands for the path.
    pub with: &'static [&'static str],
    /// Reason why its honest run is refused; empty if it is not.
    pub ends: &'static str,
}

/// Content of the path without an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honest {
    /// A copy of this fixture, which is read.
    Read(&'static str),
    /// A copy of this directory, which is read with everything that links in it lead to, as
    /// documented.
    Tree(&'static str),
    /// A copy of this fixture, in which files are made.
    Within(&'static str),
    /// Nothing: a file of this name is made.
    NewFile(&'static str),
    /// Nothing: a directory of this name is made.
    NewDirectory(&'static str),
    /// A block device that must not be overwritten.
    Device,
}

impl Honest {
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read(_) | Self::Tree(_))
    }

    /// Returns the name of the path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read(name)
            | Self::Tree(name)
            | Self::Within(name)
            | Self::NewFile(name)
            | Self::NewDirectory(name) => name,
            Self::Device => "device",
        }
    }
}

use Honest::{Device, NewDirectory, NewFile, Read, Tree, Within};

const fn reach(argument: &'static str, honest: Honest, with: &'static [&'static str]) -> Reach {
    Reach { argument, honest, with, ends: "" }
}

/// Describes a path whose honest run ends in an error after the path has been reached.
const fn ends(
    argument: &'static str,
    honest: Honest,
    with: &'static [&'static str],
    ends: &'static str,
) -> Reach {
    Reach { argument, honest, with, ends }
}

/// Address where nothing listens.
const NOWHERE: &str = "postgres://nobody@127.0.0.1:1/none";
const NO_SERVER: &str = "no server is there";
const NOT_OURS: &str = "the file was not left by this program";
const NOT_EMPTY: &str = "the device is not empty";

pub const WAYS: &[Way] = &[
    Way {
        of: "calibrate",
        measures: true,
        plain: &["--quick", "--size", "64M", "data"],
        paths: &[
            reach("paths", Within("data"), &["--quick", "--size", "64M", "{}"]),
            ends("file", Read("large"), &["--quick", "--file", "{}"], NOT_OURS),
            ends("file", Read("large"), &["--quick", "--read-only", "--file", "{}"], NOT_OURS),
            reach(
                "orion",
                NewDirectory("orion"),
                &["--quick", "--matrix", "--size", "64M", "--orion", "{}", "data"],
            ),
            ends("destroy", Device, &["--quick", "--destroy", "{}", "{}"], NOT_EMPTY),
        ],
    },
    Way {
        of: "run",
        measures: true,
        plain: &["--schemas", "1", "--threads", "1", "--scale", "1M", "--loops", "1", "data"],
        paths: &[
            reach(
                "path",
                Within("data"),
                &["--schemas", "1", "--threads", "1", "--scale", "1M", "--loops", "1", "{}"],
            ),
            reach(
                "target",
                Within("data"),
                &[
                    "--target",
                    "sqlite:{}",
                    "--schemas",
                    "1",
                    "--threads",
                    "1",
                    "--scale",
                    "1M",
                    "--loops",
                    "1",
                ],
            ),
            reach(
                "failure_group",
                Within("data"),
                &[
                    "--schemas",
                    "1",
                    "--threads",
                    "1",
                    "--scale",
                    "1M",
                    "--loops",
                    "1",
                    "--failure-group",
                    "a={}",
                ],
            ),
            ends(
                "password_file",
                Read("password"),
                &["--target", NOWHERE, "--password-file", "{}"],
                NO_SERVER,
            ),
            ends("conf", Read("conf"), &["--target", NOWHERE, "--conf", "{}"], NO_SERVER),
            ends("destroy", Device, &["--scale", "1M", "--destroy", "{}", "{}"], NOT_EMPTY),
        ],
    },
    Way {
        of: "noise",
        measures: true,
        plain: &["--area", "16M", "--for", "1s", "data"],
        paths: &[
            reach("path", Within("data"), &["--area", "16M", "--for", "1s", "{}"]),
            ends("destroy", Device, &["--for", "1s", "--destroy", "{}", "{}"], NOT_EMPTY),
            ends(
                "password_file",
                Read("password"),
                &["--area", "16M", "--for", "1s", "--db", NOWHERE, "--password-file", "{}", "data"],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "teardown",
        measures: false,
        plain: &[NOWHERE],
        paths: &[ends(
            "password_file",
            Read("password"),
            &[NOWHERE, "--destroy", NOWHERE, "--password-file", "{}"],
            NO_SERVER,
        )],
    },
    Way {
        of: "flash sim",
        measures: false,
        plain: &["--raw", "2G", "--drive-fills", "0.1"],
        paths: &[reach(
            "trace",
            Read("trace"),
            &["--raw", "2G", "--format-level", "44", "--trace", "{}"],
        )],
    },
    Way { of: "flash sweep", measures: false, plain: &["op=7,28", "policy=greedy"], paths: &[] },
    Way {
        of: "flash cliff",
        measures: false,
        plain: &["--raw", "576G", "--visible", "400G", "--write-rate", "50M"],
        paths: &[],
    },
    Way {
        of: "flash fit",
        measures: false,
        plain: &["log"],
        paths: &[reach("curve", Read("log"), &["{}"])],
    },
    Way {
        of: "flash life",
        measures: false,
        plain: &["--write-rate", "50M", "--endurance", "3000"],
        paths: &[],
    },
    Way {
        of: "reduce",
        measures: false,
        plain: &["file"],
        paths: &[
            reach("paths", Read("pages"), &["{}"]),
            reach("paths", Tree("tree"), &["{}"]),
            reach("paths", Read("scan"), &["--merge", "{}"]),
            reach(
                "paths",
                NewDirectory("made"),
                &["--generate", "oracle-like", "--files", "2", "--size", "1M", "{}"],
            ),
            reach("model", Read("model.toml"), &["--model", "{}", "file"]),
            reach("save", NewDirectory("scan"), &["--save", "{}", "file"]),
            reach("resume", Within("scan"), &["--resume", "{}"]),
        ],
    },
    Way {
        of: "copy",
        measures: false,
        plain: &["file", "out/copied"],
        paths: &[
            reach("paths", Read("file"), &["{}", "out/copied"]),
            reach("paths", Read("tree"), &["{}", "out/copied"]),
            reach("paths", NewFile("copied"), &["file", "{}"]),
            reach("paths", NewFile("copied"), &["--force", "file", "{}"]),
            reach("paths", NewFile("copied"), &["--resume", "--verify", "file", "{}"]),
            reach("paths", NewFile("copied"), &["--force", "-", "{}"]),
            reach("paths", Within("data"), &["file", "tree", "{}"]),
            reach("paths", Within("data"), &["--force", "file", "tree", "{}"]),
            reach("paths", Within("data"), &["--resume", "--verify", "file", "tree", "{}"]),
            reach("paths", Within("data"), &["--against", "cp", "large", "{}"]),
            reach("paths", Read("tree"), &["--check", "manifest.jsonl", "{}"]),
            reach("manifest", NewFile("sums"), &["--manifest", "{}", "file", "out/copied"]),
            reach("check", Read("manifest.jsonl"), &["--check", "{}", "tree"]),
            ends("destroy", Device, &["file", "{}", "--destroy", "{}"], NOT_EMPTY),
            ends(
                "password_file",
                Read("password"),
                &["--against", "cp", "--db", NOWHERE, "--password-file", "{}", "file", "out/"],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "size",
        measures: false,
        plain: &["load"],
        paths: &[
            reach("paths", Read("load"), &["{}"]),
            reach("paths", Tree("loads"), &["{}"]),
            reach("import", Read("load"), &["--import", "{}"]),
            reach("save", NewDirectory("saved"), &["--save", "{}", "load"]),
            reach("verify", Read("run"), &["--verify", "{}", "load"]),
            reach("catalogue", Read("catalogue.toml"), &["--catalogue", "{}", "load"]),
            reach("on", Read("calibrate"), &["--on", "{}", "load"]),
            ends("destroy", Device, &["--on", "{}", "--destroy", "{}", "load"], NOT_EMPTY),
            ends(
                "password_file",
                Read("password"),
                &["--db", NOWHERE, "--for", "1s", "--password-file", "{}"],
                NO_SERVER,
            ),
            reach("curve", Read("calibrate"), &["--curve", "{}", "--p99", "10ms", "load"]),
            ends(
                "core_list",
                Read("cores.csv"),
                &["--core-list", "{}", "load"],
                "the load has no processor time",
            ),
        ],
    },
    Way {
        of: "trace",
        measures: false,
        plain: &["sql.trc"],
        paths: &[
            reach("files", Read("sql.trc"), &["{}"]),
            reach("against", Read("sql.trc"), &["sql.trc", "--against", "{}"]),
        ],
    },
    Way {
        of: "subset",
        measures: false,
        plain: &["--from", NOWHERE, "--dry-run"],
        paths: &[
            ends("dir", NewDirectory("made"), &["--from", NOWHERE, "{}"], NO_SERVER),
            ends(
                "keys",
                Read("keys.toml"),
                &["--from", NOWHERE, "--keys", "{}", "out/s"],
                NO_SERVER,
            ),
            ends(
                "mask_key",
                Read("key"),
                &["--from", NOWHERE, "--mask", "a=hash", "--mask-key", "{}", "out/s"],
                NO_SERVER,
            ),
            ends(
                "password_file",
                Read("password"),
                &["--from", NOWHERE, "--password-file", "{}", "out/s"],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "subset load",
        measures: false,
        plain: &["subset", "--into", NOWHERE],
        paths: &[
            ends("dir", Read("subset"), &["{}", "--into", NOWHERE], NO_SERVER),
            ends(
                "password_file",
                Read("password"),
                &["subset", "--into", NOWHERE, "--password-file", "{}"],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "subset oracle",
        measures: false,
        plain: &["keys.csv", "out/o"],
        paths: &[
            reach("catalogue", Read("keys.csv"), &["{}", "out/o"]),
            reach("dir", NewDirectory("made"), &["keys.csv", "{}"]),
            reach("rows", Read("rows.csv"), &["keys.csv", "out/o", "--rows", "{}"]),
        ],
    },
    Way {
        of: "offload account",
        measures: false,
        plain: &["counters.csv"],
        paths: &[reach("files", Read("counters.csv"), &["{}"])],
    },
    Way {
        of: "offload model",
        measures: false,
        plain: &["--cells", "2"],
        paths: &[reach("fit", Read("counters.csv"), &["--fit", "{}", "--cells", "2"])],
    },
    Way {
        of: "offload run",
        measures: false,
        plain: &["--cells", "1", "--scale", "1M", "--pg-bin", "empty", "data"],
        paths: &[ends(
            "dir",
            Within("data"),
            &["--cells", "1", "--scale", "1M", "--pg-bin", "out", "{}"],
            "no programs are there",
        )],
    },
    Way {
        of: "offload generate",
        measures: false,
        plain: &["--scale", "1M", "out/table"],
        paths: &[reach("file", NewFile("table"), &["--scale", "1M", "{}"])],
    },
    Way {
        of: "watch",
        measures: true,
        plain: &["--once", "--interval", "100ms", "--for", "200ms", "--no-bpf"],
        paths: &[
            reach(
                "record",
                NewDirectory("recorded"),
                &["--once", "--interval", "100ms", "--for", "200ms", "--no-bpf", "--record", "{}"],
            ),
            reach("import", Read("collectl"), &["--record", "out/r", "--import", "{}"]),
            reach("replay", Read("recording"), &["--once", "--replay", "{}"]),
            reach(
                "active_set",
                Tree("tree"),
                &[
                    "--once",
                    "--interval",
                    "100ms",
                    "--for",
                    "200ms",
                    "--no-bpf",
                    "--active-set",
                    "{}",
                ],
            ),
            reach(
                "csv",
                NewFile("table.csv"),
                &["--interval", "100ms", "--for", "200ms", "--no-bpf", "--csv", "{}"],
            ),
            reach("csv", NewFile("table.csv"), &["--replay", "recording", "--csv", "{}"]),
            reach(
                "listen_token_file",
                Read("password"),
                &[
                    "--interval",
                    "100ms",
                    "--for",
                    "200ms",
                    "--no-bpf",
                    "--listen",
                    "127.0.0.1:0",
                    "--listen-token-file",
                    "{}",
                ],
            ),
            ends(
                "password_file",
                Read("password"),
                &[
                    "--once",
                    "--interval",
                    "100ms",
                    "--for",
                    "200ms",
                    "--no-bpf",
                    "--db",
                    NOWHERE,
                    "--password-file",
                    "{}",
                ],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "report",
        measures: false,
        plain: &["recording"],
        paths: &[reach("run", Read("run"), &["{}"])],
    },
    Way {
        of: "compare",
        measures: false,
        plain: &["run", "run"],
        paths: &[
            reach("first", Read("run"), &["{}", "sqlite"]),
            reach("with", Read("run"), &["sqlite", "--with", "{}"]),
        ],
    },
    Way {
        of: "merge",
        measures: false,
        plain: &RANKS,
        paths: &[reach("runs", Read(RANKS[0]), &["{}", RANKS[1]])],
    },
    Way {
        of: "check",
        measures: true,
        plain: &["data"],
        paths: &[reach("path", Within("data"), &["{}"]), reach("path", Read("large"), &["{}"])],
    },
    Way {
        of: "check direct",
        measures: false,
        plain: &["data"],
        paths: &[
            reach("path", Within("data"), &["{}"]),
            reach("path", Read("large"), &["{}"]),
            ends(
                "password_file",
                Read("password"),
                &["--db", NOWHERE, "--password-file", "{}"],
                NO_SERVER,
            ),
        ],
    },
    Way {
        of: "check write-order",
        measures: true,
        plain: &["data"],
        paths: &[
            reach("path", Within("data"), &["{}"]),
            ends("destroy", Device, &["{}", "--destroy", "{}"], NOT_EMPTY),
        ],
    },
    Way {
        of: "check coherence",
        measures: true,
        plain: &["--rounds", "5", "data"],
        paths: &[
            reach("paths", Within("data"), &["--rounds", "5", "{}"]),
            reach("prepare", Within("data"), &["--prepare", "{}"]),
            ends("destroy", Device, &["{}", "--destroy", "{}"], NOT_EMPTY),
        ],
    },
    Way {
        of: "check durability",
        measures: true,
        plain: &["data"],
        paths: &[
            reach("path", Within("data"), &["{}"]),
            ends("path", Within("data"), &["--witness", "127.0.0.1:1", "{}"], NO_SERVER),
            reach("log", NewFile("witness.log"), &["--serve", "127.0.0.1:0", "--log", "{}"]),
            ends(
                "destroy",
                Device,
                &["--witness", "127.0.0.1:1", "{}", "--destroy", "{}"],
                NOT_EMPTY,
            ),
        ],
    },
    Way {
        of: "check metadata",
        measures: true,
        plain: &["--files", "1k", "data"],
        paths: &[reach("path", Within("data"), &["--files", "1k", "{}"])],
    },
    Way {
        of: "check iosize",
        measures: true,
        plain: &["--tools", "data"],
        paths: &[
            reach("tools", Within("data"), &["--tools", "{}"]),
            reach(
                "password_file",
                Read("password"),
                &["--tools", "data", "--db", NOWHERE, "--password-file", "{}"],
            ),
        ],
    },
    Way { of: "claim", measures: false, plain: &["1 GB/s over 1GbE"], paths: &[] },
    Way {
        of: "demo",
        measures: true,
        plain: &["data"],
        paths: &[reach("dir", Within("data"), &["{}"])],
    },
    Way { of: "completions", measures: false, plain: &["bash"], paths: &[] },
    Way {
        of: "man",
        measures: false,
        plain: &["out"],
        paths: &[reach("dir", Within("data"), &["{}"])],
    },
];
