//! Reports as HTML.

use super::{FUNCTIONS, Locale, activity_rows, is_key};

/// An HTML table with the separators of numbers swapped for the locale.
fn html(summary: &str, rows: &[Vec<&str>], locale: Locale) -> String {
    let mut text = format!("<table border=\"0\" class=\"tdiff\" summary=\"{summary}\">");
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        text.push_str("<tr>");
        for cell in row {
            let number = cell.trim_end_matches(" (mins)");
            let is_number =
                number.bytes().all(|byte| byte.is_ascii_digit() || b".,MGK".contains(&byte));
            let cell = if is_number { locale.apply(cell) } else { (*cell).to_owned() };
            text.push_str(&format!("<{tag} align=\"right\" class='awrc'>{cell}</{tag}>"));
        }
        text.push_str("</tr>\n");
    }
    text + "</table>\n"
}

/// The AWR report of an instance as HTML: 10.2 has one identity table and no requests by function,
/// 12 and later have two identity tables.
pub fn awr_html(release: &str, locale: Locale) -> String {
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    let table = |summary: &str, rows: &[&[&str]]| {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        html(summary, &rows, locale)
    };
    let identity = "This table displays database instance information";
    let mut text =
        "<html lang=\"en\"><head><title>AWR Report for DB: SALES, Inst: sales1, Snaps: 100-101\
         </title></head>\n<body>\n<h1>WORKLOAD REPOSITORY report for</h1>\n"
            .to_owned();
    if major < 12 {
        text += &table(
            identity,
            &[
                &["DB Name", "DB Id", "Instance", "Inst num", "Startup Time", "Release", "RAC"],
                &["SALES", "4711", "sales1", "1", "01-May-24 08:00", release, "NO"],
            ],
        );
    } else {
        text += &table(
            identity,
            &[
                &["DB Name", "DB Id", "Unique Name", "Role", "Edition", "Release", "RAC", "CDB"],
                &["SALES", "4711", "SALES", "PRIMARY", "EE", release, "NO", "NO"],
            ],
        );
        text += &table(
            identity,
            &[&["Instance", "Inst Num", "Startup Time"], &["sales1", "1", "01-May-24 08:00"]],
        );
    }
    text += &table(
        "This table displays host information",
        &[
            &["Host Name", "Platform", "CPUs", "Cores", "Sockets", "Memory (GB)"],
            &["secret-host", "Linux x86 64-bit", "8", "4", "2", "16.00"],
        ],
    );
    text += &table(
        "This table displays snapshot information",
        &[
            &["", "Snap Id", "Snap Time", "Sessions", "Cursors/Session"],
            &["Begin Snap:", "100", "14-May-24 10:00:00", "39", "1.5"],
            &["End Snap:", "101", "14-May-24 11:00:00", "40", "1.5"],
            &["Elapsed:", "", "60.01 (mins)", "", ""],
        ],
    );
    text += &table(
        "This table displays memory statistics",
        &[
            &["", "Begin", "End"],
            &["SGA use (MB):", "4,096.0", "4,096.0"],
            &["PGA use (MB):", "900.0", "1,024.0"],
        ],
    );
    text += &table(
        "This table displays different time model statistics. For each statistic",
        &[
            &["Statistic Name", "Time (s)", "% of DB Time"],
            &["DB CPU", "600.00", "33.33"],
            &["DB time", "1,800.00", ""],
            &["background cpu time", "36.00", ""],
        ],
    );
    text += &table(
        "This table displays operating systems statistics. For each statistic",
        &[
            &["Statistic", if major < 11 { "Total" } else { "Value" }, "End Value"],
            &["BUSY_TIME", "720,072", ""],
            &["IDLE_TIME", "2,160,216", ""],
            &["NUM_CPUS", "8", ""],
            &["NUM_CPU_CORES", "4", ""],
            &["NUM_CPU_SOCKETS", "2", ""],
            &["PHYSICAL_MEMORY_BYTES", "17,179,869,184", ""],
        ],
    );
    if major >= 11 {
        text += &table(
            "This table displays foreground wait class statistics",
            &[
                &["Wait Class", "Waits", "%Time -outs", "Total Wait Time (s)", "Avg wait (ms)"],
                &["User I/O", "500,000", "0", "1,000", "2"],
                &["DB CPU", "", "", "600", ""],
                &["Commit", "90,009", "0", "200", "2"],
            ],
        );
    }
    text += &table(
        "This table displays top SQL by elapsed time",
        &[
            &["Elapsed  Time (s)", "Executions", "%Total", "SQL Id", "SQL Module", "SQL Text"],
            &["900.50", "1,000", "50.00", "82ud5h0qcg0bf", "secret-host", "select secret"],
        ],
    );
    text += &table(
        "This table displays top SQL by CPU time",
        &[
            &["CPU    Time (s)", "Executions", "%Total", "SQL Id", "SQL Text"],
            &["300.25", "1,000", "50.00", "82ud5h0qcg0bf", "select secret"],
        ],
    );
    let activity = activity_rows(&["Statistic", "Total", "per Second", "per Trans"]);
    let of = |is_wanted: fn(&str) -> bool| {
        let head = activity.iter().take(1);
        let rows = activity.iter().skip(1).filter(|row| is_wanted(row[0]));
        head.chain(rows).cloned().collect::<Vec<_>>()
    };
    let mut tables = vec![("Instance", of(|_| true))];
    if major >= 11 {
        tables.insert(0, ("Key Instance", of(is_key)));
    }
    if major == 11 {
        tables[1] = ("non-key Instance", of(|statistic| !is_key(statistic)));
    }
    for (kind, rows) in tables {
        let summary = format!("This table displays {kind} activity statistics. For each instance");
        text += &html(&summary, &rows, locale);
    }
    if major >= 11 {
        let mut rows = vec![vec![
            "Function Name",
            "Reads: Data",
            "Reqs   per sec",
            "Data   per sec",
            "Writes: Data",
            "Reqs   per sec",
            "Data   per sec",
            "Waits: Count",
            "Avg   Tm(ms)",
        ]];
        rows.extend(FUNCTIONS.iter().map(|row| [&row[..], &["0", ""]].concat()));
        text += &html(
            "This table displays the IO Statistics for different functions. IO",
            &rows,
            locale,
        );
    }
    text += &table(
        "This table displays IO Statistics for different tablespaces. IO Statistics",
        &[
            &["Tablespace", "Reads", "Av    Reads/s", "Writes", "Av Writes/s"],
            &["SALES", "720,000", "200", "180,000", "50"],
            &["SYSTEM", "72", "0", "18", "0"],
        ],
    );
    text += &table(
        "This table displays MTTR advisory. It displays size for estimate",
        &[
            &[
                "P",
                "Size for Est (M)",
                "Size Factor",
                "Est Phys Read Factor",
                "Estimated Phys Reads (thousands)",
            ],
            &["D", "512", "0.50", "2.00", "3,600"],
            &["D", "1,024", "1.00", "1.00", "1,800"],
        ],
    );
    text + "<p />\nEnd of Report\n</body></html>\n"
}

/// The AWR report of a cluster as HTML, with two instances that each did half of the work. Up to
/// 11.2, I/O by function has a row for each instance.
pub fn global_html(release: &str, locale: Locale) -> String {
    let is_old = release.starts_with("11");
    let table = |summary: &str, rows: &[&[&str]]| {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.to_vec()).collect();
        html(summary, &rows, locale)
    };
    let mut text = "<html lang=\"en\"><head><title>AWR RAC Report for DB: SALES, Snaps: 100-101\
                    </title></head>\n<body><h1>WORKLOAD REPOSITORY REPORT (RAC)</h1>\n"
        .to_owned();
    text += "<table summary=\"Database Summary\"><tr><th colspan=3>Database</th><th>Ids</th></tr>\
             <tr><th>Id</th><th>Name</th><th>RAC</th><th>Begin</th><th>End</th></tr>\
             <tr><td>4711</td><td>SALES</td><td>YES</td><td>100</td><td>101</td></tr></table>\n";
    text += &table(
        "Database Instances Included In Report. . Listed in order",
        &[
            &["I#", "Instance", "Host", "Startup", "Begin Snap Time", "End Snap Time", "Release"],
            &[
                "1",
                "sales1",
                "secret-a",
                "01-May-24 08:00",
                "14-May-24 10:00",
                "14-May-24 11:00",
                release,
            ],
            &[
                "2",
                "sales2",
                "secret-b",
                "01-May-24 08:00",
                "14-May-24 10:00",
                "14-May-24 11:00",
                release,
            ],
        ],
    );
    let os: [&str; 6] = if is_old {
        ["Num CPUs", "CPU Cores", "CPU Sckts", "Busy Time (s)", "Idle Time (s)", "Memory (M)"]
    } else {
        ["#CPUs", "#Cores", "#Sckts", "Busy", "Idle", "MB"]
    };
    let of = |id| [id, "4", "2", "1", "3,600.36", "10,801.08", "8,192.00"];
    text += &table(
        "OS Statistics By Instance. . Listed in order",
        &[
            &[&["I#"], &os[..]].concat(),
            &of("1"),
            &of("2"),
            &["Sum", "", "", "", "7,200.72", "21,602.16", ""],
        ],
    );
    text += &table(
        "Time Model",
        &[
            &["I#", "DB time (s)", "DB CPU (s)", "bg CPU (s)"],
            &["1", "900.00", "300.00", "18.00"],
            &["2", "900.00", "300.00", "18.00"],
            &["Sum", "1,800.00", "600.00", "36.00"],
        ],
    );
    text += &table(
        "Foreground Wait Classes",
        &[
            &["I#", "User I/O(s)", "Commit (s)", "Cluster (s)", "DB CPU (s)", "DB time"],
            &["1", "500.00", "100.00", "", "300.00", "900.00"],
            &["2", "500.00", "100.00", "0.00", "300.00", "900.00"],
        ],
    );
    text += "<table summary=\"System Statistics (Global). . per Second\"><tr><td>&#160;</td>\
             <td>&#160;</td><th colspan=\" 4\">per Second</th></tr></table>\n";
    let activity = activity_rows(&["Statistic", "Total", "per Second", "per Trans"]);
    text += &html("System Statistics (Global). . per Second Average", &activity, locale);
    text += &table(
        "System Statistics (Absolute Values)",
        &[
            &["I#", "Begin", "End", "Begin", "End"],
            &["1", "19", "20", "1", "2"],
            &["2", "19", "20", "1", "2"],
        ],
    );
    text += &if is_old {
        let row = |id| {
            [id, "1.5625", "1.5625", ".390625", ".390625", "100.00", "100.00", "50.00", "50.00"]
        };
        table(
            "IOStat by Function (per Second). . Total Reads",
            &[
                &[
                    "I#",
                    "Total",
                    "Buffer Cache",
                    "Total",
                    "DBWR",
                    "Total",
                    "Buffer Cache",
                    "Total",
                    "DBWR",
                ],
                &row("1"),
                &row("2"),
            ],
        )
    } else {
        table(
            "IOStat by Function",
            &[
                &[
                    "I#",
                    "Function Name",
                    "Total",
                    "IOs/s",
                    "Reads/s",
                    "Writes/s",
                    "Total",
                    "IO MB/s",
                    "Read MB/s",
                    "Write MB/s",
                ],
                &[
                    "*",
                    "Total",
                    "1,080,108",
                    "300.00",
                    "200.00",
                    "100.00",
                    "14,000",
                    "3.90625",
                    "3.125",
                    ".78125",
                ],
                &[
                    "1", "Total", "540,054", "150.00", "100.00", "50.00", "7,000", "1.95", "1.56",
                    ".39",
                ],
            ],
        )
    };
    text += &table(
        "PGA Aggregate Target Statistics. . all stats",
        &[
            &["I#", "Begin", "End", "Begin", "End", "Begin", "End"],
            &["1", "1.0", "1.0", "2.0", "2.0", "400.00", "512.00"],
            &["2", "1.0", "1.0", "2.0", "2.0", "400.00", "512.00"],
        ],
    );
    text += &table(
        "SQL ordered by Elapsed Time (Global)",
        &[
            &[
                "SQL Id",
                "Elapsed (s)",
                "CPU (s)",
                "Gets",
                "Reads",
                "Execs",
                "Elapsed (s)",
                "SQL Text",
            ],
            &[
                "82ud5h0qcg0bf",
                "900.50",
                "300.25",
                "5,000",
                "4,000",
                "1,000",
                "0.90",
                "select secret",
            ],
        ],
    );
    text + "<p />\nEnd of Report\n</body></html>\n"
}
