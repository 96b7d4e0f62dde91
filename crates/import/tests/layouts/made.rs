//! Small reports in every layout, all for the same hour: their figures are in [`TRUTH`].

pub mod global;
pub mod html;
mod markdown;

pub use global::global_text;
pub use html::{awr_html, global_html};
pub use markdown::markdown;

/// Figures of an instance between 10:00 and 11:00 on 14 May 2024, in 3,600.36 s.
pub const TRUTH: &[(&str, f64)] = &[
    ("elapsed_ns", 3_600_360_000_000.0),
    ("read_ios", 720_072.0),
    ("read_bytes", 11_797_659_648.0),
    ("write_ios", 360_036.0),
    ("write_bytes", 2_949_414_912.0),
    ("redo_bytes", 3_600_360_000.0),
    ("redo_writes", 180_018.0),
    ("data_write_ios", 180_018.0),
    ("commits", 90_009.0),
    ("logical_reads", 36_003_600.0),
    ("physical_reads", 1_800_180.0),
    ("db_time_ns", 1_800e9),
    ("cpu_ns", 600e9),
    ("background_cpu_ns", 36e9),
    ("waits_ns", 1_200e9),
    ("host_busy_ns", 7_200_720_000_000.0),
    ("host_idle_ns", 21_602_160_000_000.0),
    ("function_read_ios", 720_072.0),
    ("function_read_bytes", 11_797_659_648.0),
    ("function_write_ios", 360_036.0),
    ("function_write_bytes", 2_949_414_912.0),
    ("processors", 8.0),
    ("cores", 4.0),
    ("sockets", 2.0),
    ("host_memory_bytes", 17_179_869_184.0),
    ("shared_memory_bytes", 4_294_967_296.0),
    ("private_memory_bytes", 1_073_741_824.0),
    ("sessions", 40.0),
    ("data_ios", 900_000.0),
    ("index_ios", 0.0),
    ("undo_ios", 0.0),
    ("temporary_ios", 0.0),
    ("system_ios", 90.0),
];

const ACTIVITY: &[(&str, &str, &str)] = &[
    ("cell physical IO interconnect bytes", "14,747,074,560", "4,096,000.00"),
    ("physical read total IO requests", "720,072", "200.00"),
    ("physical read total bytes", "11,797,659,648", "3,276,800.00"),
    ("physical reads", "1,800,180", "500.00"),
    ("physical write IO requests", "180,018", "50.00"),
    ("physical write total IO requests", "360,036", "100.00"),
    ("physical write total bytes", "2,949,414,912", "819,200.00"),
    ("redo size", "3,600,360,000", "1,000,000.00"),
    ("redo writes", "180,018", "50.00"),
    ("session logical reads", "36,003,600", "10,000.00"),
    ("user commits", "90,009", "25.00"),
    ("workarea executions - optimal", "################", "##########"),
];

/// Function, then data, requests and data per second for reads, and for writes.
pub const FUNCTIONS: &[[&str; 7]] = &[
    ["Buffer Cache Reads", "11G", "200.00", "3.125", "0M", "0.00", "0M"],
    ["DBWR", "0M", "0.00", "0M", "1.4G", "50.00", ".390625"],
    ["LGWR", "0M", "0.00", "0M", "1.4G", "50.00", ".390625"],
];

/// The separators of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Locale {
    Point,
    Comma,
    /// A decimal comma, and this between groups.
    Groups(char),
    /// A decimal point, and this between groups.
    PointGroups(char),
}

pub const LOCALES: [Locale; 8] = [
    Locale::Point,
    Locale::Comma,
    Locale::Groups(' '),
    Locale::Groups('\u{a0}'),
    Locale::Groups('\u{202f}'),
    Locale::Groups('\''),
    Locale::Groups('\u{fffd}'),
    Locale::PointGroups('\''),
];

impl Locale {
    pub fn apply(self, text: &str) -> String {
        let swap = |character| match (self, character) {
            (Self::Comma | Self::Groups(_), '.') => ',',
            (Self::Comma, ',') => '.',
            (Self::Groups(group) | Self::PointGroups(group), ',') => group,
            (_, other) => other,
        };
        text.chars().map(swap).collect()
    }
}

pub fn activity_rows<'a>(head: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut rows = vec![head.to_vec()];
    rows.extend(ACTIVITY.iter().map(|(name, total, per_s)| vec![*name, *total, *per_s, "1.0"]));
    rows
}

/// Whether a statistic is one of those that 11.2.0.4 prints in a table of their own, and later
/// releases twice.
pub fn is_key(statistic: &str) -> bool {
    ["physical reads", "redo size", "session logical reads", "user commits"].contains(&statistic)
}

/// A table with columns of fixed width: the first left-aligned, the others right-aligned; names
/// that are too long are cut.
fn columns(widths: &[usize], heads: &[&[&str]], rows: &[Vec<&str>], locale: Locale) -> String {
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for (index, (width, cell)) in widths.iter().zip(cells).enumerate() {
            let is_number =
                cell.bytes().all(|byte| byte.is_ascii_digit() || b".,MGK".contains(&byte));
            let cell = if is_number { locale.apply(cell) } else { (*cell).to_owned() };
            let cell: String = cell.chars().take(*width).collect();
            line += if index == 0 { "" } else { " " };
            line += &if index == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text: String = heads.iter().map(|head| line(head)).collect();
    text += &widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join(" ");
    text += "\n";
    text + &rows.iter().map(|row| line(row)).collect::<String>()
}

const END: &str = "          -------------------------------------------------------------\n\n";

/// A section on as many pages as it has parts.
fn section(name: &str, pages: &[String]) -> String {
    let heading = format!("{name}  DB/Inst: SALES/sales1  Snaps: 100-101\n-> ordered by name\n\n");
    let pages: Vec<String> = pages.iter().map(|page| heading.clone() + page).collect();
    pages.join("\u{c}") + END
}

/// Waits of all sessions, with idle events last, and of background processes alone.
fn waits_of_10(is_statspack: bool, locale: Locale) -> String {
    let table = |name: &str, rows: &[[&str; 4]]| {
        let heads: [&[&str]; 2] =
            [&["", "", "%Tim", "Total Wait"], &[name, "Waits", "out", "Time (s)"]];
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        columns(&[28, 12, 4, 11], &heads, &rows, locale)
    };
    let events = table(
        "Event",
        &[
            ["db file sequential read", "500,000", ".0", "1,000"],
            ["log file parallel write", "180,018", ".0", "300"],
            ["log file sync", "90,009", ".0", "200"],
            ["SQL*Net message from client", "1,000", ".0", "99,999"],
        ],
    );
    let background = table(
        "Event",
        &[
            ["log file parallel write", "180,018", ".0", "300"],
            ["rdbms ipc message", "30,000", "99.0", "36,000"],
        ],
    );
    let classes = table(
        "Wait Class",
        &[
            ["User I/O", "500,000", ".0", "1,000"],
            ["System I/O", "180,018", ".0", "300"],
            ["Commit", "90,009", ".0", "200"],
        ],
    );
    let classes = if is_statspack { String::new() } else { section("Wait Class", &[classes]) };
    classes + &section("Wait Events", &[events]) + &section("Background Wait Events", &[background])
}

fn text_sections(is_statspack: bool, release: u32, locale: Locale) -> String {
    let table = |widths: &[usize], heads: &[&[&str]], rows: &[&[&str]]| {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        columns(widths, heads, &rows, locale)
    };
    let mut text = String::new();
    let name =
        |awr: &'static str, statspack: &'static str| if is_statspack { statspack } else { awr };
    if release >= 10 {
        let rows: &[&[&str]] = &[
            &["DB CPU", "600.0", "33.3"],
            &["DB time", "1,800.0"],
            &["background cpu time", "36.0"],
        ];
        let model = table(&[35, 20, 9], &[&["Statistic", "Time (s)", "% DB time"]], rows);
        text += &section(name("Time Model Statistics", "Time Model System Stats"), &[model]);
        let value = name("Value", "Total");
        let os = table(
            &[25, 22],
            &[&["Statistic", value]],
            &[
                &["BUSY_TIME", "720,072"],
                &["IDLE_TIME", "2,160,216"],
                &["NUM_CPUS", "8"],
                &["NUM_CPU_CORES", "4"],
                &["NUM_CPU_SOCKETS", "2"],
                &["PHYSICAL_MEMORY_BYTES", "17,179,869,184"],
            ],
        );
        text += &section(name("Operating System Statistics", "OS Statistics"), &[os]);
    }
    if release >= 11 {
        let waits = table(
            &[28, 12, 4, 10, 6],
            &[
                &["", "", "%Tim", "Total Wait", "% DB"],
                &["Event", "Waits", "out", "Time (s)", "time"],
            ],
            &[
                &["db file sequential read", "500,000", "0", "1,000", "55.6"],
                &["log file sync", "90,009", "0", "200", "11.1"],
                &["SQL*Net message from client", "1,000", "0", "99,999", ""],
            ],
        );
        text += &section("Foreground Wait Events", &[waits]);
    }
    if release == 10 {
        text += &waits_of_10(is_statspack, locale);
    }
    let ranked = table(
        &[16, 14, 13, 6, 13],
        &[
            &["", "", "Elapsed Time", "", ""],
            &[
                "Elapsed Time (s)",
                "Executions",
                "per Exec (s)",
                "%Total",
                name("SQL Id", "Hash Value"),
            ],
        ],
        &[&["900.5", "1,000", "0.9", "50.0", name("82ud5h0qcg0bf", "3739063178")]],
    );
    text += &section(
        "SQL ordered by Elapsed Time",
        &[ranked + "Module: secret\nselect secret from dual\n\n"],
    );
    let has_totals = release >= 10;
    let known =
        |row: &&Vec<&str>| has_totals || !(row[0].contains("total") || row[0].contains(" IO "));
    let rows: Vec<Vec<&str>> = activity_rows(&["Statistic"]).into_iter().skip(1).collect();
    let rows: Vec<Vec<&str>> = rows.iter().filter(known).cloned().collect();
    let page = |rows: &[Vec<&str>]| {
        columns(
            &[32, 18, 14, 13],
            &[&["Statistic", "Total", "per Second", "per Trans"]],
            rows,
            locale,
        )
    };
    let (key, other): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(|row| is_key(row[0]));
    let rest = if !is_statspack && release == 11 { &other } else { &rows };
    let (first, second) = rest.split_at(rest.len() / 2);
    if !is_statspack && release >= 11 {
        text += &section("Key Instance Activity Stats", &[page(&key)]);
    }
    let heading = match release {
        11 if !is_statspack => "Other Instance Activity Stats",
        _ => "Instance Activity Stats",
    };
    text += &section(heading, &[page(first), page(second)]);
    if release >= 11 {
        let is_read = |row: &&[&str; 7]| !is_statspack || row[0] != "DBWR";
        let rows: Vec<Vec<&str>> =
            FUNCTIONS.iter().filter(is_read).map(|row| row.to_vec()).collect();
        let functions = columns(
            &[15, 7, 8, 8, 7, 8, 8],
            &[
                &["", "Reads:", "Reqs", "Data", "Writes:", "Reqs", "Data"],
                &["Function Name", "Data", "per sec", "per sec", "Data", "per sec", "per sec"],
            ],
            &rows,
            locale,
        );
        text += &section(
            name("IOStat by Function summary", "IO Stat by Function - summary"),
            &[functions],
        );
    }
    let spaces = table(
        &[14, 8, 8, 8, 12],
        &[&["", "Av", "Av", "Av", ""], &["Reads", "Reads/s", "Rd(ms)", "Blks/Rd", "Writes"]],
        &[],
    );
    let rows = "SALES\n       720,000      200     -0.0      1.0      180,000\n\
                SYSTEM\n            72        0               1.0           18\n";
    let rows =
        format!("Tablespace\n------------------------------\n{spaces}{}", locale.apply(rows));
    text += &section("Tablespace IO Stats", &[rows]);
    let advice = table(
        &[3, 8, 6, 6, 14],
        &[
            &["", "", "", "Est", "Estimated"],
            &["", "Size for", "Size", "Read", "Phys Reads"],
            &["P", "Est (M)", "Factr", "Factr", "(thousands)"],
        ],
        &[&["D", "512", ".5", "2.0", "3,600"], &["D", "1,024", "1.0", "1.0", "1,800"]],
    );
    text + &section("Buffer Pool Advisory", &[advice])
}

const SNAPSHOTS: &str = "
              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:       100 14-May-24 10:00:00        39       1.5
  End Snap:       101 14-May-24 11:00:00        40       1.5
   Elapsed:               60.01 (mins)

";

/// Memory section of release 11 and later.
const MEMORY: &str = "
Memory Statistics                       Begin          End
~~~~~~~~~~~~~~~~~                ------------ ------------
                  Host Mem (MB):     16,384.0     16,384.0
                   SGA use (MB):      4,096.0      4,096.0
                   PGA use (MB):        900.0      1,024.0

";

pub fn awr_text(release: &str, locale: Locale) -> String {
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    let identity = if major < 12 {
        format!(
            "
DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
SALES               4711 sales1              1 01-May-24 08:00 {release:<11} NO
"
        )
    } else {
        format!(
            "
DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
SALES               4711 SALES       PRIMARY          EE      {release:<10} NO  NO

Instance     Inst Num Startup Time
------------ -------- ---------------
sales1              1 01-May-24 08:00
"
        )
    };
    let host = "
Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
secret-host      Linux x86 64-bit                    8     4       2      16.00
";
    let memory = if major >= 11 { locale.apply(MEMORY) } else { String::new() };
    let sections = text_sections(false, major, locale);
    format!(
        "\nWORKLOAD REPOSITORY report for\n{identity}{}{}{memory}{sections}End of Report\n",
        locale.apply(host),
        locale.apply(SNAPSHOTS)
    )
}

pub fn statspack(release: &str, locale: Locale) -> String {
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    let identity = if major < 10 {
        format!(
            "
DB Name         DB Id    Instance     Inst Num Release     Cluster Host
------------ ----------- ------------ -------- ----------- ------- ------------
SALES               4711 sales1              1 {release:<11} NO      secret-host
"
        )
    } else {
        // Some reports leave the name of the database blank.
        format!(
            "
Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC
~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---
                4711 sales1              1 01-May-24 08:00 {release:<11} NO

Host Name             Platform                CPUs Cores Sockets   Memory (G)
~~~~ ---------------- ---------------------- ----- ----- ------- ------------
     secret-host      Linux x86 64-bit           8     4       2         {}
",
            locale.apply("16.0")
        )
    };
    let memory = if major >= 11 { locale.apply(MEMORY) } else { String::new() };
    let sections = text_sections(true, major, locale);
    format!(
        "\nSTATSPACK report for\n{identity}{}{memory}{sections}End of Report ( sp.txt )\n",
        locale.apply(SNAPSHOTS)
    )
}

fn rows<'a>(rows: &[&[&'a str]]) -> Vec<Vec<&'a str>> {
    rows.iter().map(|row| row.to_vec()).collect()
}

/// The same hour for two instances; the second has no maxima.
pub fn miner() -> String {
    let os = columns(&[20, 20], &[&["STAT_NAME", "STAT_VALUE"]], &[], Locale::Point)
        + "NUM_CPUS             8\nNUM_CPU_CORES        4\nPHYSICAL_MEMORY_GB   16\n"
        + "DB_NAME              SALES\nINSTANCES            2\n";
    let memory = columns(
        &[10, 15, 10, 10],
        &[&["SNAP_ID", "INSTANCE_NUMBER", "SGA", "PGA"]],
        &rows(&[&["101", "1", "4", "1"], &["101", "2", "4", "1"]]),
        Locale::Point,
    );
    let sizes =
        columns(&[10, 10], &[&["SNAP_ID", "SIZE_GB"]], &rows(&[&["100", "500"]]), Locale::Point);
    let metrics = columns(
        &[10, 10, 14, 10, 10, 10, 13, 10, 13, 10, 10],
        &[&[
            "snap",
            "dur_m",
            "end",
            "inst",
            "os_cpu",
            "read_iops",
            "read_iops_max",
            "write_iops",
            "write_iops_max",
            "read_mb_s",
            "redo_mb_s",
        ]],
        &rows(&[
            &["101", "60", "24/05/14 11:00", "1", "25", "200", "450", "100", "220", "3.125", "1"],
            &["101", "60", "24/05/14 11:00", "2", "25", "20", "", "10", "", ".5", ".1"],
            &["102", "60", "24/05/14 12:00", "1", "25", "200", "450", "100", "220", "3.125", "1"],
        ]),
        Locale::Point,
    );
    let section =
        |name: &str, text: &str| format!("~~BEGIN-{name}~~\n\n{text}~~END-{name}~~\n\n\n");
    section("OS-INFORMATION", &os)
        + &section("MEMORY", &memory)
        + &section("SIZE-ON-DISK", &sizes)
        + &section("MAIN-METRICS", &metrics)
}

pub const CSV: &str = "\
begin,end,database,instance,reads_per_s,write_ios,read_bytes_per_s,cpu_s,cores
2024-05-14T10:00:00,2024-05-14T11:00:00,SALES,1,200,360000,3276800,600,4
2024-05-14T11:00:00,2024-05-14T12:00:00,\"SALES\",1,,360000,3276800,600,4
";
